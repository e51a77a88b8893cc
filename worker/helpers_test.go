package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/open"
	"beeyard/spool"
	"beeyard/worker"
)

// bound is the longest that any wait may take; no test depends on its length.
const bound = 60 * time.Second

func background(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRun(t testing.TB, tasks ...*beeyard.Task) *spool.Run {
	t.Helper()
	r, err := open.CreateDir(background(t), filepath.Join(t.TempDir(), "run"), beeyard.Checkpoint{}, open.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	if len(tasks) > 0 {
		_, err = r.Enqueue(background(t), tasks, beeyard.EnqueueOptions{})
		must(t, err)
	}
	return r
}

func task(id string) *beeyard.Task { return &beeyard.Task{ID: id, Type: "t"} }

// script writes a handler.
func script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "handler.sh")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return path
}

// heard collects what a worker tells.
type heard struct {
	mu  sync.Mutex
	all []worker.Event
	on  func(worker.Event)
}

func (h *heard) hear(e worker.Event) {
	h.mu.Lock()
	h.all = append(h.all, e)
	h.mu.Unlock()
	if h.on != nil {
		h.on(e)
	}
}

func (h *heard) texts(kind string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var s []string
	for _, e := range h.all {
		if e.Kind == kind {
			s = append(s, e.TaskID+" "+e.Text)
		}
	}
	return strings.Join(s, "\n")
}

// config is a worker for tests: it drains and ends.
func config(path string, h *heard) worker.Config {
	env := worker.Environment(os.LookupEnv, nil)
	return worker.Config{ID: "w1", Handler: &worker.Process{Path: path, Env: env}, UntilEmpty: true,
		Poll: 100 * time.Millisecond, Grace: 500 * time.Millisecond, Report: h.hear,
		Limits: beeyard.Limits{MaxAttempts: 1}}
}

func work(t testing.TB, r beeyard.Run, cfg worker.Config) worker.Summary {
	t.Helper()
	w, err := worker.New(r, cfg, clock.Real())
	must(t, err)
	sum, err := w.Run(background(t))
	must(t, err)
	return sum
}

func view(t testing.TB, r beeyard.Run, id string) *beeyard.View {
	t.Helper()
	v, err := r.Get(background(t), id)
	must(t, err)
	return v
}

func last(t testing.TB, r beeyard.Run, id string) beeyard.Attempt {
	t.Helper()
	all := view(t, r, id).Task.Ext.Attempts
	if len(all) == 0 {
		t.Fatalf("%s has no attempt", id)
	}
	return all[len(all)-1]
}

func read(t testing.TB, r *spool.Run, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Location(), name))
	must(t, err)
	return string(b)
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(bound)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
