package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"beeyard/internal/durable"

	"golang.org/x/sys/unix"
)

// trace is what one operation of beeyard does to the disk, in order. Played
// again with bare system calls it is the bare loop of exactly its calls: no
// list to keep in step with the code.
type trace struct {
	mu  sync.Mutex
	on  bool
	ops []durable.Op
}

func (t *trace) wrap(d durable.Dir) durable.Dir {
	return durable.Hooked(d, func(op durable.Op) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.on {
			t.ops = append(t.ops, op)
		}
		return nil
	})
}

func (t *trace) start() { t.mu.Lock(); t.ops, t.on = nil, true; t.mu.Unlock() }
func (t *trace) stop() []durable.Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = false
	return t.ops
}

// replay plays a trace by bare system calls in a copy of the run's folders.
type replay struct {
	from, to string
	dirs     map[string]int // folder of the trace → descriptor in the copy
	id       string         // the task's id in the trace
	body     []byte         // what is written
	buf      []byte
	events   int // descriptor of the events file, 0 before the first
}

func newReplay(from, to, id string, body []byte) *replay {
	return &replay{from: from, to: to, dirs: map[string]int{}, id: id, body: body, buf: make([]byte, 64<<10)}
}

func (r *replay) dir(path string) (int, error) {
	if fd, ok := r.dirs[path]; ok {
		return fd, nil
	}
	rel, err := filepath.Rel(r.from, path)
	if err != nil {
		return -1, err
	}
	p := filepath.Join(r.to, rel)
	if err := os.MkdirAll(p, 0o700); err != nil {
		return -1, err
	}
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", p, err)
	}
	r.dirs[path] = fd
	return fd, nil
}

// name puts this round's id in place of the trace's.
func (r *replay) name(n, id string) string {
	if strings.Contains(n, r.id) {
		return strings.ReplaceAll(n, r.id, id)
	}
	if durable.IsTemp(n) {
		return n[:len(n)-len(id)] + id
	}
	return n
}

// play does the operations of the trace once, for the task id.
func (r *replay) play(ops []durable.Op, id string) error {
	fd := -1
	for _, op := range ops {
		d, err := r.dir(op.Dir)
		if err != nil {
			return err
		}
		if filepath.Base(op.Dir) == "events" {
			// One file a process, open since its first event: a write each.
			if op.Op == durable.OpWrite {
				if err := r.event(d); err != nil {
					return err
				}
			}
			continue
		}
		name := r.name(op.Name, id)
		switch op.Op {
		case durable.OpCreate:
			fd, err = unix.Openat(d, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		case durable.OpAppend:
			if fd, err = unix.Openat(d, name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600); err == nil {
				var st unix.Stat_t
				err = unix.Fstat(fd, &st)
			}
		case durable.OpOpen:
			if fd, err = unix.Openat(d, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
				var st unix.Stat_t
				err = unix.Fstat(fd, &st)
			}
		case durable.OpWrite:
			_, err = unix.Write(fd, r.body)
		case durable.OpSync:
			err = unix.Fdatasync(fd)
		case durable.OpClose:
			err = unix.Close(fd)
		case durable.OpReadFile:
			err = r.readFile(d, name)
		case durable.OpExists, durable.OpStat:
			var st unix.Stat_t
			err = unix.Fstatat(d, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		case durable.OpRename, durable.OpRenameExcl, durable.OpLink:
			to, derr := r.dir(op.To)
			if derr != nil {
				return derr
			}
			if op.Op == durable.OpRename {
				err = unix.Renameat(d, name, to, r.name(op.NewName, id))
			} else {
				err = unix.Renameat2(d, name, to, r.name(op.NewName, id), unix.RENAME_NOREPLACE)
			}
		case durable.OpRemove:
			err = unix.Unlinkat(d, name, 0)
		case durable.OpSyncDir:
			err = unix.Fsync(d)
		case durable.OpSyncFS:
			err = unix.Syncfs(d)
		case durable.OpLock:
			err = r.lock(d, name)
		case durable.OpEach:
			err = r.list(d)
		case durable.OpOpenDir:
			var sub int
			if sub, err = unix.Openat(d, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				err = unix.Close(sub)
			}
		case durable.OpInfo:
			var st unix.Stat_t
			err = unix.Fstat(d, &st)
		case durable.OpCloseDir:
			continue // counted with its open
		case durable.OpTouch, durable.OpFtouch, durable.OpTryLock, durable.OpFstat, durable.OpSeek, durable.OpRead, durable.OpMkdir:
			continue // not in a steady loop; leaving them out makes the bare loop faster
		default:
			return fmt.Errorf("no bare call for %s", op.Op)
		}
		if err != nil && err != unix.ENOENT && err != unix.EEXIST {
			return fmt.Errorf("%s %s: %w", op.Op, name, err)
		}
	}
	return nil
}

func (r *replay) event(dir int) error {
	if r.events == 0 {
		fd, err := unix.Openat(dir, "bare.jsonl", unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		r.events = fd
	}
	_, err := unix.Write(r.events, r.body[:min(len(r.body), 160)])
	return err
}

func (r *replay) readFile(d int, name string) error {
	fd, err := unix.Openat(d, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil {
		_, err = unix.Read(fd, r.buf)
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	return err
}

func (r *replay) lock(d int, name string) error {
	fd, err := unix.Openat(d, name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	return err
}

func (r *replay) list(d int) error {
	fd, err := unix.Openat(d, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for {
		n, err := unix.Getdents(fd, r.buf)
		if err != nil || n <= 0 {
			if cerr := unix.Close(fd); err == nil {
				err = cerr
			}
			return err
		}
	}
}

// calls says what a trace is made of, for the report.
func calls(ops []durable.Op) string {
	n := map[string]int{}
	var order []string
	for _, op := range ops {
		if n[op.Op] == 0 {
			order = append(order, op.Op)
		}
		n[op.Op]++
	}
	var s []string
	for _, o := range order {
		s = append(s, fmt.Sprintf("%s %d", o, n[o]))
	}
	return strings.Join(s, ", ")
}
