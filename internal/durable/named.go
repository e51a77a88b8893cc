package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
// On an error path is as it was.
func WriteNamed(path string, perm fs.FileMode, replace bool, write func(w io.Writer) error) (err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	parent, err := os.OpenFile(filepath.Dir(abs), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer parent.Close()
	temp := filepath.Join(filepath.Dir(abs), TempName("out"))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	if err = errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if !replace {
		// A link fails where the name is taken; a rename would not.
		if err = os.Link(temp, abs); err != nil {
			return err
		}
		if err = os.Remove(temp); err != nil {
			return err
		}
	} else if err = os.Rename(temp, abs); err != nil {
		return err
	}
	return parent.Sync()
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
