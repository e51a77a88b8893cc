package durable

import (
	"io/fs"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// osDir is a directory of the operating system. Each method is one system
// call on the open descriptor and one name, unless it says otherwise: no path
// is walked, so none can be swapped.
type osDir struct {
	h    handle
	path string
	// noExcl is set once RENAME_NOREPLACE was refused and the fallback worked.
	noExcl atomic.Bool
	locks  sync.Map // name to the chan that callers of Lock take turns by
}

var _ Dir = (*osDir)(nil)

func newOSDir(fd int, path string) *osDir {
	return &osDir{h: handle{fd: fd}, path: path}
}

func (d *osDir) Path() string { return d.path }

func (d *osDir) join(name string) string {
	if d.path == "/" {
		return "/" + name
	}
	return d.path + "/" + name
}

// at checks the name and runs one system call on it.
func (d *osDir) at(op, name string, call func(fd int) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := d.h.call(call); err != nil {
		return &fs.PathError{Op: op, Path: d.join(name), Err: err}
	}
	return nil
}

func (d *osDir) Stat(name string) (Info, error) {
	var st unix.Stat_t
	err := d.at("lstat", name, func(fd int) error {
		return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return Info{}, err
	}
	return infoOf(name, &st), nil
}

func (d *osDir) Exists(name string) (bool, error) {
	gone := false
	err := d.at("lstat", name, func(fd int) error {
		var st unix.Stat_t
		err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if gone = err == unix.ENOENT; gone {
			return nil
		}
		return err
	})
	return err == nil && !gone, err
}

func (d *osDir) Remove(name string) error {
	return d.at("unlink", name, func(fd int) error { return unix.Unlinkat(fd, name, 0) })
}

func (d *osDir) Mkdir(name string, perm fs.FileMode) error {
	return d.at("mkdir", name, func(fd int) error {
		return unix.Mkdirat(fd, name, uint32(perm.Perm()))
	})
}

func (d *osDir) Rmdir(name string) error {
	return d.at("rmdir", name, func(fd int) error {
		return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
	})
}

func (d *osDir) OpenDir(name string) (Dir, error) {
	var sub int
	err := d.at("open folder", name, func(fd int) (err error) {
		sub, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newOSDir(sub, d.join(name)), nil
}

// reopen opens the folder that is open once more: "." of a descriptor is what
// the descriptor is on, whatever its path names by now. The new one has a
// position of its own and may be listed and synced, even if d is O_PATH only.
func (d *osDir) reopen() (*osDir, error) {
	var again int
	err := d.h.call(func(fd int) (err error) {
		again, err = unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open folder", Path: d.path, Err: err}
	}
	return newOSDir(again, d.path), nil
}

func (d *osDir) Touch(name string) error {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	return d.at("touch", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, now, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func (d *osDir) Info() (Info, error) {
	var st unix.Stat_t
	err := d.h.call(func(fd int) error { return unix.Fstat(fd, &st) })
	if err != nil {
		return Info{}, &fs.PathError{Op: "fstat", Path: d.path, Err: err}
	}
	return infoOf(".", &st), nil
}

func (d *osDir) Sync() error {
	if err := d.h.call(unix.Fsync); err != nil {
		return &fs.PathError{Op: "fsync folder", Path: d.path, Err: err}
	}
	return nil
}

func (d *osDir) SyncFS() error {
	if err := d.h.call(unix.Syncfs); err != nil {
		return &fs.PathError{Op: "syncfs", Path: d.path, Err: err}
	}
	return nil
}

func (d *osDir) Close() error {
	if err := d.h.close(); err != nil {
		return &fs.PathError{Op: "close", Path: d.path, Err: err}
	}
	return nil
}
