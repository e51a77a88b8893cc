package durable

import (
	"errors"
	"io/fs"
)

// EnsureDir opens a folder below d and makes it if it is missing; a link is
// refused. A folder it made, and its name, are durable. One that it found is
// left as it is: who made that has flushed it before telling anyone.
func EnsureDir(d Dir, name string, perm fs.FileMode) (Dir, error) {
	sub, err := d.OpenDir(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	// Taken by now: another is at the same, and may not have flushed it yet.
	if err := d.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if sub, err = d.OpenDir(name); err != nil {
		return nil, err
	}
	if err = sub.Sync(); err == nil {
		err = d.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// MkdirAll opens a folder by its path and makes it, and those on the way to it
// that are missing; what it made is durable, one by one from the top. The way
// and the folder are checked as by OpenRoot, so that nothing is made where
// another could put something else in its place.
func MkdirAll(path string, perm fs.FileMode, opts ...RootOption) (Dir, error) {
	return OpenRoot(path, append(opts, mkdirs(perm))...)
}
