package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pair checks both names and runs one call on the two descriptors.
func (d *osDir) pair(op, name string, to Dir, newName string, call func(from, to int) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := CheckName(newName); err != nil {
		return err
	}
	t, ok := under(to).(*osDir)
	if !ok {
		return fmt.Errorf("%s %s to %s: %w between two kinds of file system", op, d.join(name), to.Path(), errors.ErrUnsupported)
	}
	err := d.h.call(func(from int) error {
		if t == d {
			return call(from, from)
		}
		if err := t.h.acquire(); err != nil {
			return err
		}
		defer t.h.release()
		return call(from, t.h.fd)
	})
	if err != nil {
		return &os.LinkError{Op: op, Old: d.join(name), New: t.join(newName), Err: err}
	}
	return nil
}

func (d *osDir) Rename(name string, to Dir, newName string) error {
	return d.pair("rename", name, to, newName, func(a, b int) error {
		return unix.Renameat(a, name, b, newName)
	})
}

func (d *osDir) Link(name string, to Dir, newName string) error {
	return d.pair("link", name, to, newName, func(a, b int) error {
		return unix.Linkat(a, name, b, newName, 0)
	})
}

func (d *osDir) RenameExcl(name string, to Dir, newName string) error {
	return d.pair("rename without replacing", name, to, newName, func(a, b int) error {
		if d.noExcl.Load() {
			return linkUnlink(a, name, b, newName)
		}
		err := renameNoReplace(a, name, b, newName)
		if err != unix.EINVAL && err != unix.ENOSYS && err != unix.EOPNOTSUPP {
			return err
		}
		// NFS answers EINVAL, but so does every file system to a folder moved
		// into itself: only a fallback that worked is remembered.
		if ferr := linkUnlink(a, name, b, newName); ferr != unix.EPERM {
			if ferr == nil {
				d.noExcl.Store(true)
			}
			return ferr
		}
		return err // a folder, or a file system without links
	})
}

// renameNoReplace is a variable so that tests can stand in for NFS.
var renameNoReplace = func(a int, name string, b int, newName string) error {
	return unix.Renameat2(a, name, b, newName, unix.RENAME_NOREPLACE)
}

// linkUnlink publishes by the link; an error of the unlink leaves both names,
// which the caller finds by looking at the destination as after any odd error.
func linkUnlink(a int, name string, b int, newName string) error {
	if err := again(func() error { return unix.Linkat(a, name, b, newName, 0) }); err != nil {
		return err
	}
	return again(func() error { return unix.Unlinkat(a, name, 0) })
}

// layered is a Dir or File around another.
type layered[T any] interface{ inner() T }

// under takes all layers off.
func under[T any](v T) T {
	for {
		l, ok := any(v).(layered[T])
		if !ok {
			return v
		}
		v = l.inner()
	}
}
