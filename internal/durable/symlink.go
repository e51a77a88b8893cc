package durable

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Symlink makes a symbolic link below d; fs.ErrExist when the name is taken.
// Nothing of a run is ever a link: this is for what a person has installed.
func Symlink(target string, d Dir, name string) error {
	o, ok := under(d).(*osDir)
	if !ok {
		return &fs.PathError{Op: "symlink", Path: d.Path() + "/" + name, Err: unix.ENOTSUP}
	}
	return o.at("symlink", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// ReadLink gives what a link below d points to; EINVAL for what is no link.
func ReadLink(d Dir, name string) (target string, err error) {
	o, ok := under(d).(*osDir)
	if !ok {
		return "", &fs.PathError{Op: "readlink", Path: d.Path() + "/" + name, Err: unix.ENOTSUP}
	}
	buf := make([]byte, unix.PathMax)
	err = o.at("readlink", name, func(fd int) error {
		n, err := unix.Readlinkat(fd, name, buf)
		if err == nil {
			target = string(buf[:n])
		}
		return err
	})
	return target, err
}
