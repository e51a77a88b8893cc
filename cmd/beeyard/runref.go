package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/open"
	"beeyard/spool"
)

// rootPath is the folder that holds the runs: --root, BEEYARD_ROOT, a file,
// the nearest .swarm/ upward, ~/.swarm.
func (p *program) rootPath() (string, error) {
	named := p.rootDir
	if named == "" {
		c, err := p.conf()
		if err != nil {
			return "", err
		}
		named = c.get("root", nil).text
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the current folder: %w", err)
	}
	r, err := spool.ChooseRoot(spool.RootChoice{Explicit: named, Dir: dir, Home: p.env("HOME")})
	if err != nil {
		return "", err
	}
	if r.Note != "" {
		p.notef("%s", r.Note)
	}
	return r.Path, nil
}

// runName is the run that was named: an argument, --run, BEEYARD_RUN, a file.
func (p *program) runName(arg string) (string, error) {
	if arg != "" {
		return arg, nil
	}
	if p.runRef != "" {
		return p.runRef, nil
	}
	c, err := p.conf()
	if err != nil {
		return "", err
	}
	if v := c.get("run", nil); v.text != "" {
		return v.text, nil
	}
	return "", nil
}

// runPath resolves a run's name: a path when it has a slash or is a run's
// folder, else an id under the root. Without any name: the current folder if
// it is a run, else the only run under the root.
func (p *program) runPath(ctx context.Context, arg string) (string, error) {
	name, err := p.runName(arg)
	if err != nil {
		return "", err
	}
	if strings.Contains(name, "://") {
		return name, nil
	}
	if strings.ContainsRune(name, filepath.Separator) || name == "." || name == ".." || isRun(name) {
		return filepath.Abs(name)
	}
	if name == "" && isRun(".") {
		return filepath.Abs(".")
	}
	root, err := p.rootPath()
	if err != nil {
		return "", err
	}
	if name != "" {
		if direct := filepath.Join(root, name); beeyard.CheckStoredID(name) == nil && isRun(direct) {
			return direct, nil
		}
	}
	return p.searchRun(ctx, root, name)
}

func isRun(path string) bool {
	return path != "" && (durable.HasNamed(filepath.Join(path, "status.json")) || durable.IsFolder(filepath.Join(path, "pending")))
}

func (p *program) searchRun(ctx context.Context, root, name string) (string, error) {
	infos, err := p.runsUnder(ctx, root)
	if err != nil && !errors.Is(err, beeyard.ErrNotFound) {
		return "", err
	}
	var hits []string
	for _, i := range infos {
		if name == "" || i.ID == name {
			hits = append(hits, i.Location)
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1 && name == "":
		return "", &beeyard.Error{Op: "choose run", Err: beeyard.Because(beeyard.ErrUsage, "there are several runs under "+root),
			Hint: "name one with --run; beeyard ls lists them"}
	case len(hits) > 1:
		return "", &beeyard.Error{Op: "choose run", ID: name, Err: beeyard.Because(beeyard.ErrConflict, "several runs have this id"),
			Hint: "name the run by its path"}
	case name == "":
		return "", &beeyard.Error{Op: "choose run", Err: beeyard.Because(beeyard.ErrNotFound, "there is no run under "+root),
			Hint: "beeyard run new ID makes one; --run names one by path"}
	}
	return "", &beeyard.Error{Op: "open run", ID: name, Err: beeyard.Because(beeyard.ErrNotFound, "there is no such run under "+root),
		Hint: "beeyard ls lists the runs; beeyard run new makes one"}
}

// openRun opens the run for changing it.
func (p *program) openRun(ctx context.Context, arg string) (beeyard.Run, error) {
	path, err := p.runPath(ctx, arg)
	if err != nil {
		return nil, err
	}
	return open.Run(ctx, path, open.Options{Warn: p.warn, Clock: p.clock})
}

// readRun opens the run for looking: nothing is made and no lock is taken.
func (p *program) readRun(ctx context.Context, arg string) (beeyard.Run, error) {
	path, err := p.runPath(ctx, arg)
	if err != nil {
		return nil, err
	}
	return open.Run(ctx, path, open.Options{ReadOnly: true, Warn: p.warn, Clock: p.clock})
}

// openDir is openRun for what only a run in a directory has: doctor, export.
func (p *program) openDir(ctx context.Context, arg string, readOnly bool) (*spool.Run, error) {
	path, err := p.runPath(ctx, arg)
	if err != nil {
		return nil, err
	}
	return open.Dir(ctx, path, open.Options{ReadOnly: readOnly, Warn: p.warn, Clock: p.clock})
}

func (p *program) warn(msg string) { p.notef("%s", msg) }
