package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// RemoveAll is RemoveTree without an end before the end.
func RemoveAll(d Dir, name string) error {
	_, err := RemoveTree(context.Background(), d, name)
	return err
}

// RemoveTree removes a name and, if it is a folder, all that is in it, and
// gives the number of names removed. Links are removed, never followed; what
// another file system is mounted on is refused (ErrUnsafe) and left whole.
// Nothing there is no error. It stops at the first error or when ctx ends; the
// rest is then still there. The removal is durable after d.Sync.
func RemoveTree(ctx context.Context, d Dir, name string) (int, error) {
	r := remover{ctx: ctx}
	err := r.remove(d, name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r.n, err
}

// maxDepth bounds the descriptors held: what lies deeper is moved to the top
// of the tree first, so that no depth is too deep.
const maxDepth = 64

type remover struct {
	ctx   context.Context
	n     int
	top   Dir // the folder that is to go
	at    place
	moved bool // something deep was moved to the top
}

func (r *remover) remove(d Dir, name string, depth int) error {
	if r.ctx.Err() != nil {
		return fmt.Errorf("remove %s/%s: %w", d.Path(), name, context.Cause(r.ctx))
	}
	info, err := d.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode.IsDir() {
		if err := d.Remove(name); err != nil {
			return err
		}
		r.n++
		return nil
	}
	if depth > maxDepth {
		r.moved = true
		return d.Rename(name, r.top, TempName("deep"))
	}
	if info.Mode&0o700 != 0o700 {
		// Of a folder that its owner cannot write to nothing can be removed.
		// If this is not allowed either, the removal says so.
		_ = d.Chmod(name, 0o700)
	}
	sub, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	err = r.empty(sub, depth)
	if cerr := sub.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := d.Rmdir(name); err != nil {
		return err
	}
	r.n++
	return nil
}

func (r *remover) empty(d Dir, depth int) error {
	at, err := placeOf(d)
	if err != nil {
		return err
	}
	if depth == 0 {
		r.top, r.at = d, at
	}
	if at != r.at {
		return &UnsafeError{Path: d.Path(), Next: "unmount it first",
			Why: "another file system is mounted there (" + describe(at) + ")"}
	}
	for {
		r.moved = false
		var names []string // first all: what removing does to a listing under way differs by file system
		if err := d.Each(func(e Entry) bool { names = append(names, e.Name); return true }); err != nil {
			return err
		}
		for _, name := range names {
			if err := r.remove(d, name, depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if depth > 0 || !r.moved {
			return nil
		}
	}
}
