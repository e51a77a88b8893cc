package spool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// chkWait bounds every wait of these tests; none depends on its length.
const chkWait = 30 * time.Second

func chkContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*chkWait)
	t.Cleanup(cancel)
	return ctx
}

func chkMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chkRun makes a run in a new folder and opens it with the options.
func chkRun(t testing.TB, o Options) *Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	first, err := Create(dir, beeyard.Checkpoint{RunID: "named", Summary: "began", Risk: "a person's word"}, Options{}, clock.Real())
	chkMust(t, err)
	chkMust(t, first.Close())
	return chkOpen(t, dir, o, clock.Real())
}

func chkOpen(t testing.TB, dir string, o Options, clk clock.Clock) *Run {
	t.Helper()
	r, err := Open(dir, o, clk)
	chkMust(t, err)
	t.Cleanup(func() { chkMust(t, r.Close()) })
	return r
}

func chkBody(t testing.TB, id string, deps ...string) []byte {
	t.Helper()
	task := beeyard.Task{ID: id, Type: "t", RunID: "named", CreatedAt: "2026-01-02T03:04:05Z", DependsOn: deps}
	body, err := task.Encode()
	chkMust(t, err)
	return body
}

// chkPut puts bodies into a folder of the run, as the rename of a settle does.
func chkPut(t testing.TB, dir durable.Dir, ids ...string) {
	t.Helper()
	for _, id := range ids {
		chkMust(t, durable.WriteFile(dir, bodyName(id), chkBody(t, id), fileMode))
	}
}

func chkStatusPath(r *Run) string { return filepath.Join(r.path, fileStatus) }

// chkRaw is status.json as another program reads it.
func chkRaw(t testing.TB, r *Run) *beeyard.Checkpoint {
	t.Helper()
	data, err := os.ReadFile(chkStatusPath(r))
	chkMust(t, err)
	if !json.Valid(data) {
		t.Fatalf("status.json is not JSON: %q", data)
	}
	c, err := beeyard.DecodeCheckpoint(data, "")
	chkMust(t, err)
	return c
}

func chkListed(t testing.TB, r *Run, want ...string) {
	t.Helper()
	if got := chkRaw(t, r).CompletedTasks; !slices.Equal(got, want) {
		t.Errorf("completed_tasks is %q, want %q", got, want)
	}
}

// chkAside lists what was kept of damaged files.
func chkAside(t testing.TB, r *Run) []string {
	t.Helper()
	names, err := filepath.Glob(chkStatusPath(r) + ".corrupt-*")
	chkMust(t, err)
	return names
}

// chkNoTemps fails when a write left something half done.
func chkNoTemps(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	chkMust(t, err)
	for _, e := range entries {
		if durable.IsTemp(e.Name()) || strings.HasPrefix(e.Name(), ".artifact-") {
			t.Errorf("%s was left in %s", e.Name(), dir)
		}
	}
}

func chkIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func chkPtr(s string) *string { return &s }

// chkHook is around a run's folders and decides about each operation.
type chkHook struct {
	mu     sync.Mutex
	before func(durable.Op) error
}

func (h *chkHook) set(f func(durable.Op) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = f
}

func (h *chkHook) options() Options {
	return Options{Wrap: func(d durable.Dir) durable.Dir {
		return durable.Hooked(d, func(op durable.Op) error {
			h.mu.Lock()
			f := h.before
			h.mu.Unlock()
			if f == nil {
				return nil
			}
			return f(op)
		})
	}}
}

// chkIsReplace is the rename that puts a new status.json in place.
func chkIsReplace(op durable.Op) bool {
	return (op.Op == durable.OpRename || op.Op == durable.OpRenameExcl) && op.NewName == fileStatus
}

// chkWarnings collects what a run warns about.
type chkWarnings struct {
	mu   sync.Mutex
	said []string
}

func (w *chkWarnings) warn(msg string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, msg)
}

func (w *chkWarnings) has(part string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.said {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

// chkEventually waits for what another goroutine or process does.
func chkEventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(chkWait); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen within %v", what, chkWait)
		}
	}
}

// chkChild starts this test binary as another process.
func chkChild(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(chkContext(t), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	t.Cleanup(func() {
		if t.Failed() && out.Len() > 0 {
			t.Logf("%s said: %s", name, out.Bytes())
		}
	})
	chkMust(t, cmd.Start())
	return cmd
}

func chkIDs(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	return ids
}
