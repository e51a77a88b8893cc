package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Root is a folder of runs. It implements beeyard.Store.
type Root struct {
	path string
	o    Options
	clk  clock.Clock
}

var _ beeyard.Store = (*Root)(nil)

// fileRoot marks a root, so that none is made inside another. It is a file:
// every folder at the root is a person's or a run.
const fileRoot = ".beeyard-root"

const rootText = "This folder holds runs of beeyard. The file keeps another root from being made inside.\n"

// OpenStore names a root. It opens nothing yet: a root that does not exist is
// made with the first run. The folder is checked at each use.
func OpenStore(path string, o Options, clk clock.Clock) *Root {
	return &Root{path: path, o: o, clk: clk}
}

// Location is the root's path.
func (s *Root) Location() string { return s.path }

// Close releases nothing: the root is open during calls only.
func (s *Root) Close() error { return nil }

// isRoot reports whether a folder on the way to a root is a root itself, or a
// run. It may be asked of folders that are none of ours.
func isRoot(d durable.Dir) (bool, error) {
	if filepath.Base(d.Path()) == RootName {
		return true, nil
	}
	yes, err := d.Exists(fileRoot)
	if err == nil && !yes {
		// Not by status.json: that is a name which other programs use as well.
		if yes, err = d.Exists(dirPending); err == nil && yes {
			yes, err = d.Exists(dirClaimed)
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return yes, err
}

func (s *Root) options(readOnly bool) []durable.RootOption {
	opts := []durable.RootOption{durable.NotUnder(isRoot)}
	if readOnly {
		opts = append(opts, durable.ReadOnly())
	}
	return opts
}

// open opens the root for looking. ErrNotFound when there is none, ErrNotAllowed
// when it is unsafe or lies in another root.
func (s *Root) open() (durable.Dir, error) {
	d, err := durable.OpenRoot(s.path, s.options(true)...)
	return d, s.explain("open root", err)
}

func (s *Root) explain(op string, err error) error {
	var unsafe *durable.UnsafeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsafe):
		return &beeyard.Error{Op: op, ID: s.path, Err: fmt.Errorf("%w: %w", beeyard.ErrNotAllowed, err), Hint: unsafe.Next}
	case missing(err):
		return &beeyard.Error{Op: op, ID: s.path, Err: beeyard.Because(beeyard.ErrNotFound, "there is no such folder"),
			Hint: "beeyard run new makes a run and its root"}
	}
	return fmt.Errorf("%s: %w", op, err)
}

// CreateRun makes a run at the root, and the root if need be. ErrUsage for a bad
// id; ErrExists when a run has the id or the folder, also in another spelling of
// the same letters. On nil folders and checkpoint are durable.
func (s *Root) CreateRun(ctx context.Context, id string, c beeyard.Checkpoint) (beeyard.Run, error) {
	if err := beeyard.CheckID("run", id); err != nil {
		return nil, err
	}
	if err := s.ensure(); err != nil {
		return nil, err
	}
	taken := ""
	err := s.eachRun(ctx, func(f foundRun) bool {
		if foldID(f.folder) == foldID(id) || foldID(f.id()) == foldID(id) {
			taken = f.path
		}
		return taken == ""
	})
	if err != nil {
		return nil, err
	}
	if taken != "" {
		return nil, &beeyard.Error{Op: "make run", ID: id, Err: beeyard.Because(beeyard.ErrExists, "there is such a run: "+taken),
			Hint: "choose another id, or go on with that run"}
	}
	c.RunID = id
	r, err := Create(filepath.Join(s.path, id), c, s.o, s.clk)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ensure makes the root and marks it.
func (s *Root) ensure() error {
	d, err := durable.MkdirAll(s.path, folderMode, s.options(false)...)
	if err != nil {
		return s.explain("make root", err)
	}
	err = durable.WriteExcl(d, fileRoot, []byte(rootText), fileMode)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("mark root: %w", err)
	}
	return nil
}
