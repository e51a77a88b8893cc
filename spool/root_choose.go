package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"beeyard"
	"beeyard/internal/durable"
)

// RootName is the folder that holds runs where nothing else is said.
const RootName = ".swarm"

// RootChoice is what the choice of a root depends on. The caller gives it all:
// a library that reads the environment by itself surprises its user.
type RootChoice struct {
	Explicit string // --root
	Env      string // BEEYARD_ROOT
	Dir      string // the working folder, absolute
	Home     string // the user's home folder
}

// ChosenRoot is a root's path and why it was chosen.
type ChosenRoot struct {
	Path string
	// From is "explicit", "environment", "found" (the nearest .swarm/ upward) or "home".
	From string
	// Note says what was passed over on the way; "" when nothing was.
	Note string
}

// ChooseRoot picks the root: what is named outright, else what the environment
// names, else the nearest .swarm/ from Dir upward, else the one in Home. It
// does not ask whether that one exists or is safe: opening it does.
func ChooseRoot(c RootChoice) (ChosenRoot, error) {
	for _, named := range []struct{ path, from string }{{c.Explicit, "explicit"}, {c.Env, "environment"}} {
		if named.path == "" {
			continue
		}
		path := named.path
		if !filepath.IsAbs(path) {
			// Not filepath.Join: it would swallow a "..", which opening refuses.
			path = c.Dir + "/" + path
		}
		return ChosenRoot{Path: path, From: named.from}, nil
	}
	found, note, err := nearestRoot(c.Dir)
	if err != nil {
		return ChosenRoot{}, err
	}
	if found != "" {
		return ChosenRoot{Path: found, From: "found", Note: note}, nil
	}
	if c.Home == "" {
		return ChosenRoot{}, &beeyard.Error{Op: "choose root",
			Err:  beeyard.Because(beeyard.ErrUsage, "there is no "+RootName+"/ from here upward, and no home folder is known"),
			Hint: "name a root with --root or BEEYARD_ROOT"}
	}
	return ChosenRoot{Path: filepath.Join(c.Home, RootName), From: "home", Note: note}, nil
}

// nearestRoot goes down to dir and keeps the last folder that has a root. Below
// a folder that anyone may change nothing is looked for: whoever put a root
// there need not be who we think.
func nearestRoot(dir string) (found, note string, err error) {
	if dir == "" {
		return "", "", nil
	}
	_, err = durable.CheckRoot(filepath.Join(dir, RootName), durable.ReadOnly(), durable.NotUnder(func(d durable.Dir) (bool, error) {
		info, err := d.Stat(RootName)
		switch {
		case missing(err), errors.Is(err, fs.ErrPermission):
		case err != nil:
			return false, err
		case info.Mode.IsDir(), info.Mode.Type() == fs.ModeSymlink:
			found = filepath.Join(d.Path(), RootName)
		}
		return false, nil
	}))
	var unsafe *durable.UnsafeError
	switch {
	case errors.As(err, &unsafe) && found != filepath.Join(dir, RootName):
		return found, "no root is looked for further down: " + unsafe.Why, nil
	case err == nil, missing(err), errors.As(err, &unsafe), errors.Is(err, fs.ErrPermission):
		return found, "", nil
	}
	return "", "", fmt.Errorf("look for a root: %w", err)
}
