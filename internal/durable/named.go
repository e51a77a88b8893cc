package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The files here are named outright by the person at the command line: an
// input list, a configuration file, where an export goes. Links are followed,
// as that person expects; nothing of a run is ever opened this way.

// ReadNamed reads a file, a pipe or a device whole, at most max bytes (else ErrTooLarge).
func ReadNamed(path string, max int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > max {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, max)}
	}
	return data, nil
}

// OpenNamed opens a file or a pipe for reading.
func OpenNamed(path string) (io.ReadCloser, error) { return os.Open(path) }

// WriteNamed writes what write produces to path, atomically and durably; a
// file that is there is replaced only when replace is set (else fs.ErrExist).
// On an error path is as it was. What a link leads to is replaced, not the
// link; a device, a pipe or a terminal is written to as it is.
func WriteNamed(path string, perm fs.FileMode, replace bool, write func(w io.Writer) error) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return writeStream(path, write)
	}
	if err == nil && !replace {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
	}
	if err == nil {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	d, err := openFolder(filepath.Dir(abs))
	if err != nil {
		return err
	}
	defer d.Close()
	move := Dir.RenameExcl
	if replace {
		move = Dir.Rename
	}
	return publish(d, filepath.Base(abs), perm, nil, func(_ string, f File) error {
		b := bufio.NewWriterSize(f, 64<<10)
		if err := write(b); err != nil {
			return err
		}
		return b.Flush()
	}, move)
}

func writeStream(path string, write func(w io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

// openFolder opens a folder by a path that its user vouches for.
func openFolder(path string) (Dir, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open folder", Path: path, Err: err}
	}
	return newOSDir(fd, path), nil
}

// NoSpace reports that a disk or a quota is full: the same call may succeed once
// there is room.
func NoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// HasNamed reports whether a path leads to something.
func HasNamed(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// IsFolder reports whether a path leads to a folder.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
