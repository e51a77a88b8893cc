package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"beeyard"
	"beeyard/internal/durable"
)

// foundRun is a folder that is a run.
type foundRun struct {
	folder string // its own name
	rel    string // below the root
	path   string
	status []byte // what status.json says, nil when it cannot be read
}

// id is the run's id, by the same rule as an opened run's.
func (f *foundRun) id() string {
	if f.status == nil {
		return f.folder
	}
	c, err := beeyard.DecodeCheckpoint(f.status, f.folder)
	if err != nil {
		return f.folder
	}
	return c.RunID
}

const statusMost = 64 << 20 // a list of a million ids

// eachRun calls f for every run one or two levels below the root until it
// returns false. A run is not looked into for more; hidden folders and links
// are passed over: what a link points at is not under the root.
func (s *Root) eachRun(ctx context.Context, f func(foundRun) bool) error {
	root, err := s.open()
	if err != nil {
		return err
	}
	_, err = s.below(ctx, root, "", true, f)
	return errors.Join(err, root.Close())
}

func (s *Root) below(ctx context.Context, dir durable.Dir, rel string, deeper bool, f func(foundRun) bool) (more bool, err error) {
	var names []string
	err = dir.Each(func(e durable.Entry) bool {
		if (e.Type.IsDir() || e.Type == fs.ModeIrregular) && !strings.HasPrefix(e.Name, ".") {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return false, fmt.Errorf("list %s: %w", dir.Path(), err)
	}
	slices.Sort(names)
	for _, name := range names {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if more, err = s.look(ctx, dir, name, filepath.Join(rel, name), deeper, f); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (s *Root) look(ctx context.Context, in durable.Dir, name, rel string, deeper bool, f func(foundRun) bool) (bool, error) {
	d, err := in.OpenDir(name)
	if err != nil {
		return true, nil //nolint:nilerr // gone, a file by now, or closed to us: no run that we could list
	}
	defer closeRead(d)
	yes, err := isRun(d)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", d.Path(), err)
	case !yes && deeper:
		return s.below(ctx, d, rel, false, f)
	case !yes:
		return true, nil
	}
	run := foundRun{folder: name, rel: rel, path: filepath.Join(s.path, rel)}
	if status, _, err := d.ReadFile(fileStatus, statusMost); err == nil {
		run.status = status
	}
	return f(run), nil
}

func isRun(d durable.Dir) (bool, error) {
	yes, err := d.Exists(fileStatus)
	if err != nil || yes {
		return yes, err
	}
	info, err := d.Stat(dirPending)
	return err == nil && info.Mode.IsDir(), ignoreMissing(err)
}

// Runs lists the runs by id with their counts. One that cannot be read in full
// is listed with its Problem.
func (s *Root) Runs(ctx context.Context) ([]beeyard.RunInfo, error) {
	var runs []beeyard.RunInfo
	err := s.eachRun(ctx, func(f foundRun) bool {
		runs = append(runs, beeyard.RunInfo{ID: f.id(), Location: f.path})
		return true
	})
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := s.describe(ctx, &runs[i]); err != nil {
			runs[i].Problem = err.Error()
		}
	}
	slices.SortFunc(runs, func(a, b beeyard.RunInfo) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Location, b.Location))
	})
	return runs, nil
}

func (s *Root) describe(ctx context.Context, i *beeyard.RunInfo) (err error) {
	o := s.o
	o.ReadOnly = true
	r, err := Open(i.Location, o, s.clk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	counts, countErr := r.Counts(ctx)
	i.Counts = counts
	c, err := r.Checkpoint(ctx)
	if err == nil {
		i.Checkpoint = c
	} else if errors.Is(err, beeyard.ErrNotFound) {
		err = nil // a run without a checkpoint is a run
	}
	return errors.Join(countErr, err)
}

// OpenRun opens a run by its id or its folder's name, "folder/name" for one two
// levels down. ErrNotFound; ErrConflict when the name stands for several, which
// are then named by path.
func (s *Root) OpenRun(ctx context.Context, id string) (beeyard.Run, error) {
	path, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := Open(path, s.o, s.clk)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *Root) find(ctx context.Context, id string) (string, error) {
	if path, err := s.direct(id); err != nil || path != "" {
		return path, err
	}
	var hits []string
	err := s.eachRun(ctx, func(f foundRun) bool {
		if f.rel == id {
			hits = []string{f.path} // nobody could mean another one
			return false
		}
		if f.id() == id || f.folder == id {
			hits = append(hits, f.path)
		}
		return true
	})
	switch {
	case err != nil:
		return "", err
	case len(hits) == 0:
		return "", &beeyard.Error{Op: "open run", ID: id, Err: beeyard.Because(beeyard.ErrNotFound, "no run under "+s.path+" has this id"),
			Hint: "beeyard ls lists the runs"}
	case len(hits) > 1:
		return "", &beeyard.Error{Op: "open run", ID: id,
			Err:  beeyard.Because(beeyard.ErrConflict, "several runs go by this name: "+strings.Join(hits, ", ")),
			Hint: "name the run by its path, or by folder/name"}
	}
	return hits[0], nil
}

// direct spares the usual case a look at all other runs: the folder of that
// name is a run of that id.
func (s *Root) direct(id string) (path string, err error) {
	if durable.CheckName(id) != nil || strings.HasPrefix(id, ".") {
		return "", nil
	}
	root, err := s.open()
	if err != nil {
		return "", err
	}
	_, err = s.look(context.Background(), root, id, id, false, func(f foundRun) bool {
		if f.id() == id {
			path = filepath.Join(s.path, id)
		}
		return false
	})
	return path, errors.Join(err, root.Close())
}

// foldID is the form in which file systems that ignore case or the composition
// of letters take two names for one.
func foldID(id string) string {
	return strings.ToLower(strings.ToUpper(norm.NFC.String(id)))
}
