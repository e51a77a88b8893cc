package spool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

const viewWait = 30 * time.Second

func viewContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 4*viewWait)
	t.Cleanup(cancel)
	return ctx
}

// viewHost is a process of this boot.
func viewHost() Host { return Host{Boot: "boot-1", Name: "here", PID: os.Getpid(), Start: 1} }

func viewRun(t testing.TB, o Options) *Run {
	t.Helper()
	if o.Host.Boot == "" {
		o.Host = viewHost()
	}
	r, err := Create(filepath.Join(t.TempDir(), "run"), beeyard.Checkpoint{}, o, clock.Real())
	viewMust(t, err)
	t.Cleanup(func() { viewMust(t, r.Close()) })
	return r
}

func viewMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func viewTask(id string, deps ...string) *beeyard.Task {
	return &beeyard.Task{ID: id, Type: "work", CreatedAt: "2026-01-02T03:04:05.000000Z", CreatedBy: "test", DependsOn: deps,
		Payload: json.RawMessage(`{"n": 1}`), Ext: beeyard.Ext{UID: "life-" + id}}
}

// viewPut writes a body where it is told, past all rules.
func viewPut(t testing.TB, r *Run, folder string, task *beeyard.Task) {
	t.Helper()
	data, err := task.Encode()
	viewMust(t, err)
	viewPutRaw(t, r, folder, bodyName(task.ID), data)
}

func viewPutRaw(t testing.TB, r *Run, folder, name string, data []byte) {
	t.Helper()
	dir := filepath.Join(r.path, folder)
	viewMust(t, os.MkdirAll(dir, 0o700))
	viewMust(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}

func viewAge(t testing.TB, r *Run, folder, name string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	viewMust(t, os.Chtimes(filepath.Join(r.path, folder, name), at, at))
}

// viewClaim makes a claim directory with a live or a dead owner of this boot.
func viewClaim(t testing.TB, r *Run, worker string, alive bool, tasks ...*beeyard.Task) string {
	t.Helper()
	d, err := r.newClaimDir(viewContext(t), worker, beeyard.KindProcess)
	viewMust(t, err)
	for _, task := range tasks {
		viewPut(t, r, "claimed/"+d.name, task)
	}
	if alive {
		t.Cleanup(func() { viewMust(t, d.close()) })
	} else {
		viewMust(t, d.close())
	}
	return d.name
}

func viewIDs(p *beeyard.Page) []string {
	ids := []string{}
	for _, v := range p.Tasks {
		ids = append(ids, v.Task.ID)
	}
	return ids
}

func viewWantIDs(t testing.TB, p *beeyard.Page, want ...string) {
	t.Helper()
	if got := viewIDs(p); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// viewTree is every file of a folder with its content, for comparing two.
func viewTree(t testing.TB, path string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	viewMust(t, filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(path, p)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		tree[rel] = string(data)
		return err
	}))
	return tree
}

// viewHook calls f before each operation on the run's folders.
func viewHook(f func(op durable.Op)) Options {
	return Options{Wrap: func(d durable.Dir) durable.Dir {
		return durable.Hooked(d, func(op durable.Op) error {
			f(op)
			return nil
		})
	}}
}

func viewName(i int) string { return fmt.Sprintf("t%06d", i) }
