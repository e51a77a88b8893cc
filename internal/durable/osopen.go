package durable

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// O_NONBLOCK keeps the open of a FIFO from waiting for its other end; it means
// nothing to a regular file. O_NOCTTY: a terminal must not become ours.
const openFlags = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

// Open costs two system calls: only fstat of what was opened tells what it is.
func (d *osDir) Open(name string) (File, error) {
	return d.open("open", name, unix.O_RDONLY, 0)
}

func (d *osDir) Create(name string, perm fs.FileMode) (File, error) {
	var nfd int
	err := d.at("create", name, func(fd int) (err error) {
		nfd, err = unix.Openat(fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|openFlags, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, err
	}
	return newOSFile(nfd, name, d.join(name)), nil
}

func (d *osDir) Append(name string, perm fs.FileMode) (File, error) {
	return d.open("open for appending", name, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT, perm)
}

func (d *osDir) open(op, name string, flags int, perm fs.FileMode) (File, error) {
	fd, _, err := d.openRegular(op, name, flags, perm)
	if err != nil {
		return nil, err
	}
	return newOSFile(fd, name, d.join(name)), nil
}

func (d *osDir) openRegular(op, name string, flags int, perm fs.FileMode) (int, Info, error) {
	var (
		nfd int
		st  unix.Stat_t
	)
	err := d.at(op, name, func(fd int) (err error) {
		nfd, err = unix.Openat(fd, name, flags|openFlags, uint32(perm.Perm()))
		if err != nil {
			return openError(err)
		}
		if err := again(func() error { return unix.Fstat(nfd, &st) }); err != nil {
			unix.Close(nfd)
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			unix.Close(nfd)
			return notRegular(modeOf(st.Mode))
		}
		return nil
	})
	if err != nil {
		return -1, Info{}, err
	}
	return nfd, infoOf(name, &st), nil
}

// ReadFile costs open, fstat, one read and close.
func (d *osDir) ReadFile(name string, max int64) ([]byte, Info, error) {
	fd, info, err := d.openRegular("read", name, unix.O_RDONLY, 0)
	if err != nil {
		return nil, Info{}, err
	}
	defer unix.Close(fd)
	if info.Size > max {
		return nil, info, d.tooLarge(name, max)
	}
	// One byte more than there is: a short read is the end of the file, and
	// needs no second call to see it.
	buf := make([]byte, info.Size+1)
	n := 0
	for {
		var m int
		err := again(func() (err error) {
			m, err = unix.Read(fd, buf[n:])
			return err
		})
		if err != nil {
			return nil, info, &fs.PathError{Op: "read", Path: d.join(name), Err: err}
		}
		n += m
		if m == 0 || int64(n) == info.Size {
			return buf[:n:n], info, nil
		}
		if int64(n) > max {
			return nil, info, d.tooLarge(name, max)
		}
		if n == len(buf) { // it grew since
			buf = append(buf, make([]byte, n)...)
		}
	}
}

func (d *osDir) tooLarge(name string, max int64) error {
	return &fs.PathError{Op: "read", Path: d.join(name), Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)}
}
