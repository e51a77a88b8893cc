package durable

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"time"

	"beeyard/internal/clock"

	"golang.org/x/sys/unix"
)

// flock that waits cannot be called off in Go (the runtime's signal handlers
// restart it) and would hold a thread, so waiting is asking again: soon at
// first, since the queue's locks are held for some hundred microseconds.
const (
	lockFirst = 50 * time.Microsecond
	lockMost  = 5 * time.Millisecond
)

func (d *osDir) Lock(ctx context.Context, name string) (func(), error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	fail := func(err error) error { return &fs.PathError{Op: "lock", Path: d.join(name), Err: err} }
	// Callers of one Dir wait in line here and only the first asks the kernel:
	// asking again and again, who came late would often win.
	v, _ := d.locks.LoadOrStore(name, make(chan struct{}, 1))
	turn := v.(chan struct{})
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fail(fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx)))
	}
	unlock, err := d.flock(ctx, name)
	if err != nil {
		<-turn
		return nil, fail(err)
	}
	return sync.OnceFunc(func() { unlock(); <-turn }), nil
}

// flock takes the lock among processes.
func (d *osDir) flock(ctx context.Context, name string) (func(), error) {
	for wait := lockFirst; ; wait = min(wait*2, lockMost) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrLocked, context.Cause(ctx))
		}
		fd, err := d.openLock(name)
		if err != nil {
			return nil, err
		}
		err = again(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
		if err == nil {
			// Closing is unlocking: no other descriptor of this open exists.
			return func() { unix.Close(fd) }, nil
		}
		// Opened anew at each attempt: if a person removed the file, who waits
		// on the old one would be alone with it.
		unix.Close(fd)
		if err != unix.EWOULDBLOCK {
			return nil, err
		}
		_ = clock.Sleep(ctx, clock.Real(), wait/2+rand.N(wait)) // the loop looks at ctx
	}
}

// openLock opens for writing, which NFS demands of an exclusive lock. Elsewhere
// a folder at that name, or a file that may only be read, locks just as well.
func (d *osDir) openLock(name string) (lock int, err error) {
	const flags = unix.O_RDWR | openFlags
	err = d.h.call(func(fd int) error {
		lock, err = unix.Openat(fd, name, flags, 0)
		if err == unix.ENOENT {
			lock, err = unix.Openat(fd, name, flags|unix.O_CREAT, lockPerm(fd))
		}
		if err == unix.EISDIR || err == unix.EACCES {
			lock, err = unix.Openat(fd, name, unix.O_RDONLY|openFlags, 0)
		}
		return err
	})
	return lock, openError(err)
}

// lockPerm lets lock whoever may write into the folder: a lock file that only
// its maker can open would shut the others of a shared run out.
func lockPerm(fd int) uint32 {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0o600
	}
	write := st.Mode & 0o022
	return 0o600 | write | write<<1
}
