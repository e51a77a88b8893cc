package durable

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Report is what is worth telling of a folder that was accepted as a root.
type Report struct {
	Path     string // as asked for, made absolute
	Resolved string // where it is, links followed
	Info     Info
	// Notes are conditions that are accepted but let others in: a person
	// should know of them. Empty for a folder that only its owner may change.
	Notes []string
}

// UnsafeError says why a folder is refused as a root. It is ErrUnsafe.
type UnsafeError struct {
	Path string
	Why  string
	Next string // what can safely be done about it
	Err  error  // the system's error, if one was the reason
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s is refused: %s; %s", e.Path, e.Why, e.Next)
}

// Unwrap makes the error ErrUnsafe and what the system said.
func (e *UnsafeError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnsafe}
	}
	return []error{ErrUnsafe, e.Err}
}

// RootOption changes what OpenRoot and CheckRoot ask of a folder.
type RootOption func(*walker)

// NotUnder refuses a root that lies under another one, by the caller's word
// for what a root is. The Dir it is given is open for looking at names only.
func NotUnder(isRoot func(Dir) (bool, error)) RootOption {
	return func(w *walker) { w.isRoot = isRoot }
}

// ReadOnly accepts a folder that the caller may not write to.
func ReadOnly() RootOption {
	return func(w *walker) { w.readOnly = true }
}

func mkdirs(perm fs.FileMode) RootOption {
	return func(w *walker) { w.make, w.perm = true, perm }
}

// OpenRoot opens the folder that all else is below, and refuses (ErrUnsafe)
// one where others than its owner, root and its group could change what the
// caller relies on: see CheckRoot. What was checked is what is open: each
// component is opened, then examined by its descriptor, and never looked up
// again. A link on the way is followed by the same steps.
func OpenRoot(path string, opts ...RootOption) (Dir, error) {
	d, _, err := openRoot(path, opts)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// CheckRoot says whether OpenRoot would open the folder, and what is to be
// told of it. Refused are: "/" and a path with ".."; what is not a folder; a
// folder writable by all without the sticky bit, owned by neither the caller
// nor root, not writable by the caller, or on FAT; and one that anyone may
// rename, because a folder or link on its way lies in a folder open to all.
func CheckRoot(path string, opts ...RootOption) (Report, error) {
	d, r, err := openRoot(path, opts)
	if err != nil {
		return r, err
	}
	return r, d.Close()
}

func openRoot(path string, opts []RootOption) (*osDir, Report, error) {
	w := walker{euid: uint32(geteuid())}
	for _, o := range opts {
		o(&w)
	}
	if err := w.start(path); err != nil {
		return nil, w.report, err
	}
	defer w.close()
	if err := w.walk(); err != nil {
		return nil, w.report, err
	}
	if err := w.checkRoot(); err != nil {
		return nil, w.report, err
	}
	d, err := (&osDir{h: handle{fd: w.fd}, path: w.report.Path}).reopen()
	return d, w.report, err
}

func (w *walker) checkRoot() error {
	st := w.at
	w.report.Info, w.report.Resolved = infoOf(".", &st), w.resolved()
	switch {
	case w.resolved() == "/":
		return w.refuse("it is the root of the file system", "name a folder made for this purpose")
	case st.Uid != w.euid && st.Uid != 0:
		return w.refuse(fmt.Sprintf("it belongs to user %d, who could change everything in it, and you are user %d", st.Uid, w.euid),
			"use a folder of your own, or run as its owner")
	case st.Mode&0o002 != 0 && st.Mode&unix.S_ISVTX == 0:
		return w.refuse(fmt.Sprintf("everyone may write to it (mode %04o)", st.Mode&0o7777),
			"take the write permission of others away, or use a folder of your own")
	}
	if st.Mode&0o002 != 0 {
		w.note("everyone may add files to it (mode %04o)", st.Mode&0o7777)
	}
	if st.Mode&0o020 != 0 {
		w.note("its group %d may write to it (mode %04o)", st.Gid, st.Mode&0o7777)
	}
	var sfs unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(w.fd, &sfs) }); err != nil {
		return &fs.PathError{Op: "statfs", Path: w.report.Path, Err: err}
	}
	if err := refusedFS(w.report.Path, int64(sfs.Type)); err != nil {
		return err
	}
	if w.readOnly {
		return nil
	}
	err := again(func() error { return unix.Faccessat(w.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS) })
	if err != nil {
		e := w.refuse("you may not write to it", "ask its owner for write permission, or use a folder of your own")
		e.Err = err
		return e
	}
	return nil
}
