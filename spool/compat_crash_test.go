package spool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
)

// TestCompatCrashAtEveryStep kills a compatibility command at each of its
// changes to the disk: whatever it left, a reap and the next claims bring every
// task to its end, promises are kept, and completed_tasks names nothing that is
// not in done/.
func TestCompatCrashAtEveryStep(t *testing.T) {
	type act func(ctx context.Context, c *Compat) error
	bodies := func(t *testing.T, r *Run, id string) map[beeyard.Place]*beeyard.Task {
		all, err := r.lookup(enqContext(t), id, true, false)
		enqMust(t, err)
		at := map[beeyard.Place]*beeyard.Task{}
		for _, f := range all {
			if f.task == nil || at[f.place] != nil {
				t.Fatalf("%s is no task, or twice, in %s", id, f.place)
			}
			at[f.place] = f.task
		}
		return at
	}
	claimed := func(t *testing.T, r *Run) { compatEnqueue(t, r, "x"); compatClaim(t, r, "w", "x") }
	ran := func(t *testing.T, r *Run) { claimed(t, r); compatDone(t, r, "w", "x") }
	second := &beeyard.Task{ID: "x", Type: "second"}
	for _, s := range []struct {
		name    string
		prepare func(*testing.T, *Run)
		act     act
		after   func(t *testing.T, at map[beeyard.Place]*beeyard.Task, acked bool)
	}{
		{"enqueue", func(*testing.T, *Run) {}, func(ctx context.Context, c *Compat) error { return c.Enqueue(ctx, second, nil) },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, acked bool) {
				if acked && at[beeyard.PlacePending] == nil {
					t.Error("an acknowledged task is gone")
				}
			}},
		{"enqueue over a pending one", func(t *testing.T, r *Run) { compatEnqueue(t, r, "x") },
			func(ctx context.Context, c *Compat) error { return c.Enqueue(ctx, second, nil) },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, acked bool) {
				if p := at[beeyard.PlacePending]; len(at) != 1 || p == nil || acked && p.Type != "second" {
					t.Errorf("acknowledged %v, bodies %v", acked, at)
				}
			}},
		{"enqueue again", ran, func(ctx context.Context, c *Compat) error { return c.Enqueue(ctx, second, nil) },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, acked bool) {
				if at[beeyard.PlaceDone] == nil || acked && at[beeyard.PlacePending] == nil {
					t.Errorf("acknowledged %v, bodies %v", acked, at)
				}
			}},
		{"claim", func(t *testing.T, r *Run) { compatEnqueue(t, r, "x") },
			func(ctx context.Context, c *Compat) error { _, err := c.Claim(ctx, "w", nil); return err },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, _ bool) {
				if len(at) != 1 || at[beeyard.PlacePending] == nil {
					t.Errorf("bodies %v", at)
				}
			}},
		{"complete", claimed, func(ctx context.Context, c *Compat) error { return c.Complete(ctx, "w", "x", true) },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, acked bool) {
				if len(at) != 1 || acked && at[beeyard.PlaceDone] == nil {
					t.Errorf("acknowledged %v, bodies %v", acked, at)
				}
			}},
		{"complete a second life", func(t *testing.T, r *Run) {
			ran(t, r)
			enqMust(t, r.Compat().Enqueue(enqContext(t), second, nil))
			compatClaim(t, r, "w", "x")
		}, func(ctx context.Context, c *Compat) error { return c.Complete(ctx, "w", "x", true) },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, acked bool) {
				if d := at[beeyard.PlaceDone]; d == nil || d.Type != "second" && (acked || at[beeyard.PlacePending] == nil) {
					t.Errorf("acknowledged %v, bodies %v", acked, at)
				}
			}},
		{"reap", claimed, func(ctx context.Context, c *Compat) error { _, err := c.Reap(ctx, 0); return err },
			func(t *testing.T, at map[beeyard.Place]*beeyard.Task, _ bool) {
				if len(at) != 1 || at[beeyard.PlacePending] == nil {
					t.Errorf("bodies %v", at)
				}
			}},
		{"status-init and status-write", ran, func(ctx context.Context, c *Compat) error {
			if err := c.InitStatus(ctx, "run", OlderStatus{Summary: "first"}); err != nil {
				return err
			}
			return c.WriteStatus(ctx, OlderStatus{Summary: "second"})
		}, func(t *testing.T, at map[beeyard.Place]*beeyard.Task, _ bool) {
			if at[beeyard.PlaceDone] == nil {
				t.Errorf("bodies %v", at)
			}
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			n := 0
			for survived := false; !survived; n++ {
				first := coreRun(t, Options{})
				s.prepare(t, first)
				k := &killer{left: -1}
				r, err := Open(first.path, Options{Host: coreHost(), Wrap: k.wrap}, clock.Real())
				enqMust(t, err)
				k.mu.Lock()
				k.left = n
				k.mu.Unlock()
				actErr := s.act(enqContext(t), r.Compat())
				k.mu.Lock()
				survived, k.dead = !k.dead, true
				k.mu.Unlock()
				_ = r.Close() // as the kernel would free its locks
				if survived && actErr != nil {
					t.Fatalf("it failed by itself: %v", actErr)
				}
				next := enqOpen(t, first.path, Options{Host: coreHost()})
				compatNotAhead(t, next)
				_, err = next.Compat().Reap(enqContext(t), 0)
				enqMust(t, err)
				s.after(t, bodies(t, next, "x"), actErr == nil)
				compatHealthy(t, next)
				if t.Failed() {
					t.Fatalf("killed after %d changes: %s", n, strings.Join(k.took, ", "))
				}
			}
			t.Logf("MEASURED %s: killed at each of %d changes to the disk", s.name, n-1)
			if n < 2 {
				t.Error("it changes nothing: the scenario does nothing")
			}
		})
	}
}

// compatHealthy: the run goes on, and its checkpoint is not ahead of done/.
func compatHealthy(t *testing.T, r *Run) {
	t.Helper()
	ctx := enqContext(t)
	enqMust(t, r.Compat().Enqueue(ctx, enqTask("after"), nil))
	for range 3 {
		task, err := r.Compat().Claim(ctx, "w2", nil)
		enqMust(t, err)
		if task == nil {
			break
		}
		compatDone(t, r, "w2", task.ID)
	}
	if there, _ := r.done.Exists("after.json"); !there {
		t.Error("the run does not go on")
	}
	enqMust(t, r.reconcile(ctx))
	compatNotAhead(t, r)
}

// compatNotAhead: what status.json lists is in done/.
func compatNotAhead(t *testing.T, r *Run) {
	t.Helper()
	s, err := r.readStatus()
	enqMust(t, err)
	for _, id := range s.cp.CompletedTasks {
		if _, err := os.Stat(filepath.Join(r.path, dirDone, bodyName(id))); err != nil {
			t.Errorf("completed_tasks has %s, done/ has not", id)
		}
	}
}
