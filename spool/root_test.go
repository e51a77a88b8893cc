package spool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
)

func TestChooseRoot(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "home")
	work := filepath.Join(home, "proj", "sub", "deep")
	plain := filepath.Join(base, "elsewhere", "deep")
	for _, d := range []string{work, plain, filepath.Join(home, ".swarm"), filepath.Join(home, "proj", ".swarm")} {
		viewMust(t, os.MkdirAll(d, 0o700))
	}
	viewMust(t, os.WriteFile(filepath.Join(home, "proj", "sub", ".swarm"), []byte("a file is no root"), 0o600))
	for _, c := range []struct {
		name       string
		in         RootChoice
		path, from string
	}{
		{"explicit wins", RootChoice{Explicit: "/a", Env: "/b", Dir: work, Home: home}, "/a", "explicit"},
		{"a relative one is below the working folder", RootChoice{Explicit: "x/y", Dir: work, Home: home}, work + "/x/y", "explicit"},
		{"the way up is kept for opening to refuse", RootChoice{Explicit: "../x", Dir: work, Home: home}, work + "/../x", "explicit"},
		{"environment", RootChoice{Env: "/b", Dir: work, Home: home}, "/b", "environment"},
		{"nearest upward", RootChoice{Dir: work, Home: home}, filepath.Join(home, "proj", ".swarm"), "found"},
		{"from the folder itself", RootChoice{Dir: filepath.Join(home, "proj"), Home: home}, filepath.Join(home, "proj", ".swarm"), "found"},
		{"home", RootChoice{Dir: plain, Home: home}, filepath.Join(home, ".swarm"), "home"},
		{"a working folder that is gone", RootChoice{Dir: filepath.Join(plain, "gone"), Home: home}, filepath.Join(home, ".swarm"), "home"},
	} {
		got, err := ChooseRoot(c.in)
		if err != nil || got.Path != c.path || got.From != c.from {
			t.Errorf("%s: %+v, %v; want %s from %s", c.name, got, err, c.path, c.from)
		}
	}
	if _, err := ChooseRoot(RootChoice{Dir: plain}); !errors.Is(err, beeyard.ErrUsage) {
		t.Errorf("no home: %v", err)
	}
	// Where anyone may put a root, none is looked for.
	viewMust(t, os.MkdirAll(filepath.Join(plain, "open", ".swarm"), 0o700))
	viewMust(t, os.Chmod(filepath.Join(plain, "open"), 0o777))
	got, err := ChooseRoot(RootChoice{Dir: filepath.Join(plain, "open"), Home: home})
	if err != nil || got.From != "home" || got.Note == "" {
		t.Errorf("below a folder open to all: %+v, %v", got, err)
	}
}

func rootStore(t *testing.T) *Root {
	t.Helper()
	return OpenStore(filepath.Join(t.TempDir(), ".swarm"), Options{Host: viewHost()}, clock.Real())
}

func rootMake(t *testing.T, s *Root, id string) {
	t.Helper()
	r, err := s.CreateRun(viewContext(t), id, beeyard.Checkpoint{Summary: "made"})
	viewMust(t, err)
	if r.ID() != id {
		t.Errorf("run %s has the id %s", id, r.ID())
	}
	viewMust(t, r.Close())
}

func TestRootRuns(t *testing.T) {
	s := rootStore(t)
	ctx := viewContext(t)
	if _, err := s.Runs(ctx); !errors.Is(err, beeyard.ErrNotFound) {
		t.Errorf("a root that is not there: %v", err)
	}
	rootMake(t, s, "beta")
	rootMake(t, s, "alpha")
	at := func(parts ...string) string { return filepath.Join(append([]string{s.Location()}, parts...)...) }
	for _, d := range []string{"group/inner/pending", "group/other", "older/pending", "deep/er/run/pending", ".hidden/pending", "notes"} {
		viewMust(t, os.MkdirAll(at(d), 0o700))
	}
	viewMust(t, os.WriteFile(at("older", "status.json"), []byte(`{"schema_version": "0.1", "run_id": "run-7", "checkpoint": {}}`), 0o600))
	viewMust(t, os.MkdirAll(at("broken"), 0o700))
	viewMust(t, os.WriteFile(at("broken", "status.json"), []byte(`{"schema_version": "9.0"}`), 0o600))
	viewMust(t, os.Symlink(at("alpha"), at("link")))
	runs, err := s.Runs(ctx)
	viewMust(t, err)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
		if (r.Problem != "") != (r.ID == "broken") {
			t.Errorf("run %s: problem %q", r.ID, r.Problem)
		}
	}
	if want := []string{"alpha", "beta", "broken", "inner", "run-7"}; !slices.Equal(ids, want) {
		t.Fatalf("runs %v, want %v", ids, want)
	}
	if runs[0].Checkpoint == nil || runs[0].Checkpoint.Summary != "made" || runs[0].Counts.ByState == nil {
		t.Errorf("alpha: %+v", runs[0])
	}
	// Looking changes nothing: no folder is made in a run that lacks some.
	if _, err := os.Stat(at("group", "inner", "done")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("listing made a folder: %v", err)
	}
	for id, want := range map[string]string{"alpha": "alpha", "inner": "group/inner", "group/inner": "group/inner", "run-7": "older", "older": "older"} {
		r, err := s.OpenRun(ctx, id)
		if err != nil {
			t.Errorf("open %s: %v", id, err)
			continue
		}
		if r.Location() != at(want) {
			t.Errorf("%s is %s", id, r.Location())
		}
		viewMust(t, r.Close())
	}
	for _, id := range []string{"nobody", "..", "../x", ".hidden", "link", ""} {
		if _, err := s.OpenRun(ctx, id); !errors.Is(err, beeyard.ErrNotFound) {
			t.Errorf("open %q: %v", id, err)
		}
	}
	viewMust(t, os.MkdirAll(at("group2/inner/pending"), 0o700))
	if _, err := s.OpenRun(ctx, "inner"); !errors.Is(err, beeyard.ErrConflict) {
		t.Errorf("two of one name: %v", err)
	}
}

func TestRootCreateRefuses(t *testing.T) {
	s := rootStore(t)
	ctx := viewContext(t)
	rootMake(t, s, "alpha")
	viewMust(t, os.MkdirAll(filepath.Join(s.Location(), "bare", "pending"), 0o700))
	viewMust(t, os.MkdirAll(filepath.Join(s.Location(), "older", "pending"), 0o700))
	viewMust(t, os.WriteFile(filepath.Join(s.Location(), "older", "status.json"), []byte(`{"run_id": "run-7"}`), 0o600))
	for _, id := range []string{"alpha", "Alpha", "bare", "run-7", "RUN-7"} {
		if _, err := s.CreateRun(ctx, id, beeyard.Checkpoint{}); !errors.Is(err, beeyard.ErrExists) {
			t.Errorf("make %s: %v", id, err)
		}
	}
	for _, id := range []string{"../x", "a/b", "..", ".", "", "-rf", "x.json", "CON", "é"} {
		if _, err := s.CreateRun(ctx, id, beeyard.Checkpoint{}); !errors.Is(err, beeyard.ErrUsage) {
			t.Errorf("make %q: %v", id, err)
		}
	}
}

func TestRootRefusesUnsafe(t *testing.T) {
	base := t.TempDir()
	ctx := viewContext(t)
	open := filepath.Join(base, "open")
	viewMust(t, os.MkdirAll(open, 0o700))
	viewMust(t, os.Chmod(open, 0o777))
	file := filepath.Join(base, "file")
	viewMust(t, os.WriteFile(file, nil, 0o600))
	outer := OpenStore(filepath.Join(base, ".swarm"), Options{}, clock.Real())
	rootMake(t, outer, "alpha")
	marked := OpenStore(filepath.Join(base, "yard"), Options{}, clock.Real())
	rootMake(t, marked, "alpha")
	for name, path := range map[string]string{
		"open to all": open, "below one open to all": filepath.Join(open, "x"), "a file": file, "the root of all": "/",
		"with ..": base + "/a/../b", "in a root by name": filepath.Join(base, ".swarm", "x"), "in a marked root": filepath.Join(base, "yard", "x"),
		"in a run": filepath.Join(base, "yard", "alpha", "x"),
	} {
		s := OpenStore(path, Options{}, clock.Real())
		if _, err := s.CreateRun(ctx, "r1", beeyard.Checkpoint{}); !errors.Is(err, beeyard.ErrNotAllowed) {
			t.Errorf("%s: make: %v", name, err)
		}
		if _, err := s.Runs(ctx); err == nil {
			t.Errorf("%s: listed", name)
		}
	}
}
