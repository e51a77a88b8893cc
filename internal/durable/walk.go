package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const maxLinks = 40 // as the kernel's own walk

// walker goes down a path one component at a time, holding the folder it is in.
type walker struct {
	euid     uint32
	isRoot   func(Dir) (bool, error)
	readOnly bool
	make     bool
	perm     fs.FileMode

	report Report
	todo   []string // components to go, the next one first
	done   []string // components behind, links resolved
	links  int
	fd     int // O_PATH of where it is
	at     unix.Stat_t
}

func (w *walker) refuse(why, next string) *UnsafeError {
	return &UnsafeError{Path: w.report.Path, Why: why, Next: next}
}

func (w *walker) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(w.report.Notes, n) {
		w.report.Notes = append(w.report.Notes, n)
	}
}

func (w *walker) resolved() string { return "/" + strings.Join(w.done, "/") }

func (w *walker) close() { unix.Close(w.fd) }

func components(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(c string) bool { return c == "" || c == "." })
}

// absolute refuses what no root can be by its spelling alone.
func absolute(path string) (string, error) {
	refuse := func(why, next string) error { return &UnsafeError{Path: fmt.Sprintf("%q", path), Why: why, Next: next} }
	switch {
	case path == "":
		return "", refuse("it names no folder", "name one")
	case strings.ContainsRune(path, 0):
		return "", refuse("it holds a NUL", "name a folder")
	case slices.Contains(strings.Split(path, "/"), ".."):
		return "", refuse(`it goes through ".."`, "write the path without it")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("make %q absolute: %w", path, err)
	}
	if abs == "/" {
		return "", refuse("it is the root of the file system", "name a folder made for this purpose")
	}
	return abs, nil
}

func (w *walker) start(path string) error {
	w.report.Path = path
	abs, err := absolute(path)
	if err != nil {
		return err
	}
	w.report.Path = abs
	w.todo = components(abs)
	w.fd, w.at, err = w.look(unix.AT_FDCWD, "/")
	return err
}

// look opens a name without following it and says what was opened.
func (w *walker) look(from int, name string) (fd int, st unix.Stat_t, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(from, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err == nil {
		if err = unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return -1, st, &fs.PathError{Op: "open", Path: filepath.Join(w.resolved(), name), Err: err}
	}
	return fd, st, nil
}

// move goes on to a folder that was looked at.
func (w *walker) move(fd int, st unix.Stat_t) {
	unix.Close(w.fd)
	w.fd, w.at = fd, st
}

// walk goes to the end of the path. In every case w.fd is one to close after it.
func (w *walker) walk() error {
	for len(w.todo) > 0 {
		if err := w.checkAncestor(); err != nil {
			return err
		}
		name := w.todo[0]
		w.todo = w.todo[1:]
		fd, st, err := w.look(w.fd, name)
		if w.make && errors.Is(err, fs.ErrNotExist) {
			if err := w.mkdir(name); err != nil {
				return err
			}
			fd, st, err = w.look(w.fd, name)
		}
		if err != nil {
			return err
		}
		if err := w.checkEntry(name, st.Uid); err != nil {
			unix.Close(fd)
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			err := w.follow(fd)
			unix.Close(fd)
			if err != nil {
				return err
			}
			continue
		}
		w.move(fd, st)
		if name == ".." { // from a link's target: the kernel knows the parent, whatever the text says
			w.done = w.done[:max(0, len(w.done)-1)]
		} else {
			w.done = append(w.done, name)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			e := w.refuse(w.resolved()+" is not a folder", "name a folder")
			e.Err = unix.ENOTDIR
			return e
		}
	}
	return nil
}

// mkdir makes a folder in the one at w.fd, which passed its checks.
func (w *walker) mkdir(name string) error {
	parent, err := (&osDir{h: handle{fd: w.fd}, path: w.resolved()}).reopen()
	if err != nil {
		return err
	}
	defer parent.Close()
	made, err := EnsureDir(parent, name, w.perm)
	if err != nil {
		return err
	}
	return made.Close()
}

// follow puts the target of a link before what is still to go.
func (w *walker) follow(link int) error {
	if w.links++; w.links > maxLinks {
		return &fs.PathError{Op: "open", Path: w.report.Path, Err: unix.ELOOP}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", buf)
	if err != nil {
		return &fs.PathError{Op: "read link", Path: w.report.Path, Err: err}
	}
	target := string(buf[:n])
	w.todo = append(components(target), w.todo...)
	if !strings.HasPrefix(target, "/") {
		return nil
	}
	fd, st, err := w.look(unix.AT_FDCWD, "/")
	if err != nil {
		return err
	}
	w.move(fd, st)
	w.done = nil
	return nil
}

// checkAncestor looks at a folder on the way before going on below it.
func (w *walker) checkAncestor() error {
	mode := w.at.Mode
	if mode&0o002 != 0 && mode&unix.S_ISVTX == 0 {
		return w.refuse(fmt.Sprintf("everyone may rename what is in %s (mode %04o)", w.resolved(), mode&0o7777),
			"take the write permission of others away there, or use a folder elsewhere")
	}
	if mode&0o020 != 0 && mode&unix.S_ISVTX == 0 {
		w.note("group %d may rename what is in %s (mode %04o)", w.at.Gid, w.resolved(), mode&0o7777)
	}
	if w.at.Uid != w.euid && w.at.Uid != 0 {
		w.note("user %d may rename what is in %s", w.at.Uid, w.resolved())
	}
	if w.isRoot == nil {
		return nil
	}
	d := &osDir{h: handle{fd: w.fd}, path: w.resolved()} // borrowed: not closed here
	yes, err := w.isRoot(d)
	if err != nil {
		return fmt.Errorf("look whether %s is a root: %w", d.path, err)
	}
	if yes {
		return w.refuse(fmt.Sprintf("it lies inside the root %s", d.path), "use that root, or a folder outside of it")
	}
	return nil
}

// checkEntry looks at the owner of what was found in the folder at w.fd. In one
// that everyone may add to (with the sticky bit, or the walk had ended), a
// thing's owner may still put another in its place, and the owner may be anyone.
func (w *walker) checkEntry(name string, owner uint32) error {
	if name == ".." || w.at.Mode&0o002 == 0 || owner == w.euid || owner == 0 {
		return nil
	}
	return w.refuse(fmt.Sprintf("%s belongs to user %d, who may put another in its place", filepath.Join(w.resolved(), name), owner),
		"use a folder of your own")
}
