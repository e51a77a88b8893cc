package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/proc"
)

// olderFake is a run with a few tasks, which notes what the loop does.
type olderFake struct {
	mu    sync.Mutex
	tasks []string
	did   []string
	note  string
	fail  map[string]error // by what is done
}

func (f *olderFake) do(what string, id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, strings.TrimSpace(what+" "+id))
	return f.fail[what]
}

func (f *olderFake) Claim(_ context.Context, _ string, _ []string) (*beeyard.Task, error) {
	if err := f.do("claim", ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.tasks) == 0 {
		return nil, nil
	}
	id := f.tasks[0]
	f.tasks = f.tasks[1:]
	return &beeyard.Task{ID: id, Type: "t"}, nil
}

func (f *olderFake) Complete(_ context.Context, _, id string, success bool) error {
	if success {
		return f.do("done", id)
	}
	return f.do("failed", id)
}
func (f *olderFake) GiveBack(_ context.Context, _, id string) error { return f.do("give back", id) }
func (f *olderFake) Log(_ context.Context, id string) error         { return f.do("log", id) }
func (f *olderFake) Leave(context.Context, string) error            { return f.do("leave", "") }
func (f *olderFake) Heartbeat(_ context.Context, _, note string) error {
	f.mu.Lock()
	if note != "" {
		f.note = note
	}
	f.mu.Unlock()
	return f.do("beat", "")
}

func (f *olderFake) steps(without ...string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.did), func(s string) bool { return slices.Contains(without, s) })
}

func (f *olderFake) has(step string) bool { return slices.Contains(f.steps(), step) }

func olderLoop(t *testing.T, f *olderFake, script string) *OlderLoop {
	t.Helper()
	handler := filepath.Join(t.TempDir(), "handler")
	if err := os.WriteFile(handler, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &OlderLoop{Run: f, RunDir: "/run", Worker: "w", Handler: proc.Spec{Path: handler, Env: os.Environ()},
		Poll: time.Millisecond, Heartbeat: time.Hour, Clock: clock.Real(), Report: func(text string) { t.Log(text) }}
}

func olderContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// The order of what is done to a task, and that an end of the loop is no error.
func TestOlderLoopSteps(t *testing.T) {
	f := &olderFake{tasks: []string{"a", "bad", "c"}}
	l := olderLoop(t, f, `test "$SWARM_TASK_ID" != bad`)
	l.MaxIterations = 2
	n, err := l.Do(olderContext(t))
	if n != 2 || err != nil {
		t.Fatalf("handled %d (%v)", n, err)
	}
	want := []string{"beat", "beat", "claim", "log a", "beat", "done a", "beat", "beat", "claim", "log bad", "beat", "failed bad", "beat", "leave"}
	if got := f.steps(); !slices.Equal(got, want) {
		t.Errorf("did   %v\nwanted %v", got, want)
	}
	if f.note != "idle" {
		t.Errorf("the last note is %q", f.note)
	}
}

// A task that was taken away while it ran counts as handled and ends nothing; an
// error ends the loop and leaves the beat to grow old.
func TestOlderLoopErrors(t *testing.T) {
	disk := errors.New("disk")
	for what, c := range map[string]struct {
		err     error
		handled int
		last    string
	}{
		"done":  {beeyard.ErrClaimLost, 1, "leave"},
		"claim": {disk, 0, "claim"},
		"log":   {disk, 0, "give back a"},
		"leave": {disk, 1, "leave"},
	} {
		f := &olderFake{tasks: []string{"a"}, fail: map[string]error{what: c.err}}
		l := olderLoop(t, f, "exit 0")
		l.MaxIterations = 1
		n, err := l.Do(olderContext(t))
		if lost := errors.Is(c.err, beeyard.ErrClaimLost); n != c.handled || !lost && !errors.Is(err, disk) || lost && err != nil {
			t.Errorf("%s fails: handled %d (%v)", what, n, err)
		}
		if did := f.steps(); did[len(did)-1] != c.last {
			t.Errorf("%s fails: the last step of %v is not %s", what, did, c.last)
		}
	}
	f := &olderFake{tasks: []string{"a"}}
	l := olderLoop(t, f, "exit 0")
	l.Handler.Path += "-gone"
	if _, err := l.Do(olderContext(t)); !errors.Is(err, beeyard.ErrUnusable) || !f.has("give back a") || f.has("leave") {
		t.Errorf("a handler that is gone: %v, did %v", err, f.steps())
	}
}

// The end of the context waits for the handler, which is not disturbed.
func TestOlderLoopEndWaits(t *testing.T) {
	f := &olderFake{tasks: []string{"a", "b"}}
	gate := filepath.Join(t.TempDir(), "gate")
	l := olderLoop(t, f, `trap 'exit 3' TERM; : > `+gate+`.started; until test -e `+gate+`; do sleep 0.02; done`)
	l.Heartbeat = time.Millisecond
	ctx, cancel := context.WithCancel(olderContext(t))
	defer cancel()
	done := make(chan error, 1)
	go func() { _, err := l.Do(ctx); done <- err }()
	wait := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s did not happen", what)
			}
		}
	}
	wait("the start", func() bool { _, err := os.Stat(gate + ".started"); return err == nil })
	cancel()
	beats := len(f.steps())
	wait("a beat while the handler runs", func() bool { return len(f.steps()) > beats+3 })
	select {
	case err := <-done:
		t.Fatalf("it did not wait (%v)", err)
	default:
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !f.has("done a") || f.has("log b") {
		t.Errorf("did %v", f.steps("beat"))
	}
}

// The whole environment, once each, without what an outer claim says of itself.
func TestOlderLoopEnvironment(t *testing.T) {
	l := &OlderLoop{RunDir: "/runs/r", Worker: "w 1", Handler: proc.Spec{Env: []string{
		"SECRET=s=1", "SWARM_TASK_ID=outer", "BEEYARD_RUN=/outer", "BEEYARD_CLAIM_TOKEN=1:o~aaaaaaaaaaaaaaaa", "BEEYARD_ATTEMPT=3", "BEEYARD_RESULT_PATH=/x"}}}
	got := l.env(&beeyard.Task{ID: "t.1"})
	for _, want := range []string{"SECRET=s=1", "SWARM_RUN_DIR=/runs/r", "SWARM_TASK_ID=t.1", "SWARM_WORKER_ID=w 1",
		"SWARM_ARTIFACT_PATH=/runs/r/artifacts/t.1.md", "SWARM_LOG_PATH=/runs/r/artifacts/t.1.log", "BEEYARD_RUN=/runs/r", "BEEYARD_TASK_ID=t.1"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	names := map[string]int{}
	for _, kv := range got {
		name, _, _ := strings.Cut(kv, "=")
		if names[name]++; names[name] > 1 {
			t.Errorf("%s is there twice", name)
		}
	}
	for _, name := range []string{"BEEYARD_CLAIM_TOKEN", "BEEYARD_ATTEMPT", "BEEYARD_RESULT_PATH"} {
		if names[name] > 0 {
			t.Errorf("%s of an outer claim is passed on", name)
		}
	}
}
