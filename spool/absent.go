package spool

import (
	"context"
	"io/fs"
	"time"

	"beeyard/internal/durable"
)

// absent stands for a folder that a run does not have when it is only looked
// at: empty to readers, refused to writers. Looking must not make folders.
type absent struct{ path string }

var _ durable.Dir = absent{}

func (a absent) err(op, name string) error {
	return &fs.PathError{Op: op, Path: a.path + "/" + name, Err: fs.ErrNotExist}
}

func (a absent) Path() string                                         { return a.path }
func (a absent) Open(n string) (durable.File, error)                  { return nil, a.err("open", n) }
func (a absent) Create(n string, _ fs.FileMode) (durable.File, error) { return nil, a.err("create", n) }
func (a absent) Append(n string, _ fs.FileMode) (durable.File, error) { return nil, a.err("append", n) }
func (a absent) ReadFile(n string, _ int64) ([]byte, durable.Info, error) {
	return nil, durable.Info{}, a.err("read", n)
}
func (a absent) Stat(n string) (durable.Info, error)                { return durable.Info{}, a.err("stat", n) }
func (a absent) Exists(string) (bool, error)                        { return false, nil }
func (a absent) Rename(n string, _ durable.Dir, _ string) error     { return a.err("rename", n) }
func (a absent) RenameExcl(n string, _ durable.Dir, _ string) error { return a.err("rename", n) }
func (a absent) Link(n string, _ durable.Dir, _ string) error       { return a.err("link", n) }
func (a absent) Remove(n string) error                              { return a.err("remove", n) }
func (a absent) Mkdir(n string, _ fs.FileMode) error                { return a.err("mkdir", n) }
func (a absent) Rmdir(n string) error                               { return a.err("rmdir", n) }
func (a absent) OpenDir(n string) (durable.Dir, error)              { return nil, a.err("open", n) }
func (a absent) Each(func(durable.Entry) bool) error                { return nil }
func (a absent) Touch(n string) error                               { return a.err("touch", n) }
func (a absent) Chtimes(n string, _ time.Time) error                { return a.err("touch", n) }
func (a absent) Chmod(n string, _ fs.FileMode) error                { return a.err("chmod", n) }
func (a absent) Info() (durable.Info, error)                        { return durable.Info{}, a.err("stat", "") }
func (a absent) Sync() error                                        { return a.err("sync", "") }
func (a absent) SyncFS() error                                      { return a.err("sync", "") }
func (a absent) Close() error                                       { return nil }
func (a absent) Lock(_ context.Context, n string) (func(), error)   { return nil, a.err("lock", n) }
