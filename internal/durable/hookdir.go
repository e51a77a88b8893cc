package durable

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

type hookedDir struct {
	dir Dir
	h   *Hooks
}

var (
	_ Dir          = (*hookedDir)(nil)
	_ layered[Dir] = (*hookedDir)(nil)
)

func (d *hookedDir) inner() Dir   { return d.dir }
func (d *hookedDir) Path() string { return d.dir.Path() }

func (d *hookedDir) on(op, name string, do func() error) error {
	return d.h.run(Op{Op: op, Dir: d.dir.Path(), Name: name}, do)
}

func (d *hookedDir) to(op, name string, to Dir, newName string, do func() error) error {
	return d.h.run(Op{Op: op, Dir: d.dir.Path(), Name: name, To: to.Path(), NewName: newName}, do)
}

// file opens one; when an After says no, what was opened is closed again.
func (d *hookedDir) file(op, name string, open func() (File, error)) (File, error) {
	var f File
	err := d.on(op, name, func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return nil, err
	}
	return &hookedFile{file: f, h: d.h, dir: d.dir.Path()}, nil
}

func (d *hookedDir) Open(name string) (File, error) {
	return d.file(OpOpen, name, func() (File, error) { return d.dir.Open(name) })
}

func (d *hookedDir) Create(name string, perm fs.FileMode) (File, error) {
	return d.file(OpCreate, name, func() (File, error) { return d.dir.Create(name, perm) })
}

func (d *hookedDir) Append(name string, perm fs.FileMode) (File, error) {
	return d.file(OpAppend, name, func() (File, error) { return d.dir.Append(name, perm) })
}

func (d *hookedDir) ReadFile(name string, max int64) (b []byte, info Info, err error) {
	err = d.on(OpReadFile, name, func() (err error) {
		b, info, err = d.dir.ReadFile(name, max)
		return err
	})
	if err != nil {
		b = nil
	}
	return b, info, err
}

func (d *hookedDir) Stat(name string) (info Info, err error) {
	err = d.on(OpStat, name, func() (err error) {
		info, err = d.dir.Stat(name)
		return err
	})
	return info, err
}

func (d *hookedDir) Exists(name string) (yes bool, err error) {
	err = d.on(OpExists, name, func() (err error) {
		yes, err = d.dir.Exists(name)
		return err
	})
	return yes && err == nil, err
}

func (d *hookedDir) Rename(name string, to Dir, newName string) error {
	return d.to(OpRename, name, to, newName, func() error { return d.dir.Rename(name, under(to), newName) })
}

func (d *hookedDir) RenameExcl(name string, to Dir, newName string) error {
	return d.to(OpRenameExcl, name, to, newName, func() error { return d.dir.RenameExcl(name, under(to), newName) })
}

func (d *hookedDir) Link(name string, to Dir, newName string) error {
	return d.to(OpLink, name, to, newName, func() error { return d.dir.Link(name, under(to), newName) })
}

func (d *hookedDir) Remove(name string) error {
	return d.on(OpRemove, name, func() error { return d.dir.Remove(name) })
}

func (d *hookedDir) Mkdir(name string, perm fs.FileMode) error {
	return d.on(OpMkdir, name, func() error { return d.dir.Mkdir(name, perm) })
}

func (d *hookedDir) Rmdir(name string) error {
	return d.on(OpRmdir, name, func() error { return d.dir.Rmdir(name) })
}

func (d *hookedDir) OpenDir(name string) (Dir, error) {
	var sub Dir
	err := d.on(OpOpenDir, name, func() (err error) {
		sub, err = d.dir.OpenDir(name)
		return err
	})
	if err != nil {
		if sub != nil {
			err = errors.Join(err, sub.Close())
		}
		return nil, err
	}
	return &hookedDir{dir: sub, h: d.h}, nil
}

func (d *hookedDir) Each(yield func(Entry) bool) error {
	return d.on(OpEach, "", func() error { return d.dir.Each(yield) })
}

func (d *hookedDir) EachName(yield func(name []byte, ino uint64, typ fs.FileMode) bool) error {
	return d.on(OpEach, "", func() error { return EachName(d.dir, yield) })
}

func (d *hookedDir) Touch(name string) error {
	return d.on(OpTouch, name, func() error { return d.dir.Touch(name) })
}

func (d *hookedDir) Chtimes(name string, mod time.Time) error {
	return d.on(OpChtimes, name, func() error { return d.dir.Chtimes(name, mod) })
}

func (d *hookedDir) Chmod(name string, perm fs.FileMode) error {
	return d.on(OpChmod, name, func() error { return d.dir.Chmod(name, perm) })
}

func (d *hookedDir) Lock(ctx context.Context, name string) (unlock func(), err error) {
	err = d.on(OpLock, name, func() (err error) {
		unlock, err = d.dir.Lock(ctx, name)
		return err
	})
	if err != nil && unlock != nil {
		unlock()
		unlock = nil
	}
	return unlock, err
}

func (d *hookedDir) Info() (info Info, err error) {
	err = d.on(OpInfo, "", func() (err error) {
		info, err = d.dir.Info()
		return err
	})
	return info, err
}

func (d *hookedDir) Sync() error   { return d.on(OpSyncDir, "", d.dir.Sync) }
func (d *hookedDir) SyncFS() error { return d.on(OpSyncFS, "", d.dir.SyncFS) }

func (d *hookedDir) Close() error {
	return d.h.end(Op{Op: OpCloseDir, Dir: d.dir.Path()}, d.dir.Close)
}
