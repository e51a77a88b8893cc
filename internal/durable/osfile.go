package durable

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

type osFile struct {
	h    handle
	name string
	path string
	// lost is the error of a Sync. The kernel reports a failed write-back once
	// and then calls the pages clean: a second Sync would answer nil for data
	// that is not on the disk. So the first answer stays the answer.
	lost atomic.Pointer[error]
}

var _ File = (*osFile)(nil)

func newOSFile(fd int, name, path string) *osFile {
	return &osFile{h: handle{fd: fd}, name: name, path: path}
}

func (f *osFile) Name() string { return f.name }

func (f *osFile) call(op string, call func(fd int) error) error {
	if err := f.h.call(call); err != nil {
		return &fs.PathError{Op: op, Path: f.path, Err: err}
	}
	return nil
}

func (f *osFile) Read(p []byte) (n int, err error) {
	err = f.call("read", func(fd int) (err error) {
		n, err = unix.Read(fd, p)
		return err
	})
	return ended(n, len(p), err)
}

func (f *osFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.path, Err: unix.EINVAL}
	}
	for n < len(p) {
		var m int
		err := f.call("read", func(fd int) (err error) {
			m, err = unix.Pread(fd, p[n:], off+int64(n))
			return err
		})
		if m, err = ended(m, len(p), err); err != nil {
			return n, err
		}
		n += m
	}
	return n, nil
}

// ended turns the kernel's "nothing read" into io.EOF.
func ended(n, want int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	if n == 0 && want > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *osFile) Write(p []byte) (n int, err error) {
	if lost := f.lost.Load(); lost != nil {
		return 0, *lost
	}
	for n < len(p) {
		var m int
		err := f.call("write", func(fd int) (err error) {
			m, err = unix.Write(fd, p[n:])
			return err
		})
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, &fs.PathError{Op: "write", Path: f.path, Err: io.ErrUnexpectedEOF}
		}
		n += m
	}
	return n, nil
}

func (f *osFile) Seek(offset int64, whence int) (pos int64, err error) {
	err = f.call("seek", func(fd int) (err error) {
		pos, err = unix.Seek(fd, offset, whence)
		return err
	})
	return pos, err
}

func (f *osFile) Sync() error {
	if lost := f.lost.Load(); lost != nil {
		return *lost
	}
	err := f.call("fdatasync", fdatasync)
	if err != nil {
		err = fmt.Errorf("%w (what was written to this file is lost for good; write a new one)", err)
		f.lost.CompareAndSwap(nil, &err)
	}
	return err
}

// fdatasync is a variable so that tests can stand in for a failing disk.
var fdatasync = unix.Fdatasync

func (f *osFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := f.call("fstat", func(fd int) error { return unix.Fstat(fd, &st) }); err != nil {
		return Info{}, err
	}
	return infoOf(f.name, &st), nil
}

func (f *osFile) Truncate(size int64) error {
	return f.call("truncate", func(fd int) error { return unix.Ftruncate(fd, size) })
}

// Touch passes no path at all, which the wrappers of package unix cannot say.
func (f *osFile) Touch() error {
	now := [2]unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	return f.call("touch", func(fd int) error {
		_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&now[0])), 0, 0, 0)
		if e != 0 {
			return e
		}
		return nil
	})
}

// Locked asks with a shared lock: see the interface.
func (f *osFile) Locked() (locked bool, err error) {
	err = f.call("flock", func(fd int) error {
		err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			locked = true
			return nil
		}
		if err != nil {
			return err
		}
		return unix.Flock(fd, unix.LOCK_UN)
	})
	return locked, err
}

// TryLock on a file opened by Open works on NFS too, where an exclusive lock
// wants a descriptor that may write: there a shared one is taken, which an
// exclusive holder excludes just as well.
func (f *osFile) TryLock() (held bool, err error) {
	err = f.call("flock", func(fd int) error {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EBADF {
			err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		}
		if err == unix.EWOULDBLOCK {
			return nil
		}
		held = err == nil
		return err
	})
	return held, err
}

func (f *osFile) OS() *os.File { return f.h.file(f.path) }

func (f *osFile) Close() error {
	if err := f.h.close(); err != nil {
		return &fs.PathError{Op: "close", Path: f.path, Err: err}
	}
	return nil
}
