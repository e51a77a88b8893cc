package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// errKilled is what every operation answers once the process is "dead": like
// kill -9, nothing it does after that reaches the disk, cleaning up included.
var errKilled = errors.New("killed")

// killer lets a process take n steps that change something, and no more.
type killer struct {
	mu   sync.Mutex
	left int // < 0: no end
	took []string
	dead bool
}

var changing = map[string]bool{
	durable.OpCreate: true, durable.OpAppend: true, durable.OpWrite: true, durable.OpRename: true,
	durable.OpRenameExcl: true, durable.OpLink: true, durable.OpRemove: true, durable.OpMkdir: true,
	durable.OpRmdir: true, durable.OpSync: true, durable.OpSyncDir: true, durable.OpSyncFS: true,
	durable.OpTruncate: true, durable.OpTouch: true, durable.OpFtouch: true,
}

func (k *killer) wrap(d durable.Dir) durable.Dir {
	return durable.Hooked(d, func(op durable.Op) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.dead {
			return errKilled
		}
		if !changing[op.Op] {
			return nil
		}
		if k.left == 0 {
			k.dead = true
			return errKilled
		}
		k.left--
		k.took = append(k.took, op.Op+" "+filepath.Base(op.Dir)+"/"+op.Name)
		return nil
	})
}

// crashScenario is one process's work on a run prepared by another.
type crashScenario struct {
	name    string
	prepare func(t *testing.T, r *Run)
	// act is what the process that dies does. acked is called when a promise was made.
	act func(ctx context.Context, r *Run, acked func(what string)) error
	// after is checked once recovery has run; acked holds the promises made.
	after func(t *testing.T, r *Run, acked map[string]bool)
}

func crashTask(id string) []*beeyard.Task { return []*beeyard.Task{{ID: id, Type: "t"}} }

func crashScenarios() []crashScenario {
	done := func(ctx context.Context, w beeyard.Worker, c *beeyard.Claim) error {
		if err := os.WriteFile(c.ArtifactPath, []byte("out of "+c.Task.ID), 0o600); err != nil {
			return err
		}
		art, err := w.StagedArtifact(ctx, c)
		if err != nil {
			return err
		}
		tasks, err := w.FollowUps(ctx, c)
		if err != nil {
			return err
		}
		_, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone, Artifact: art, FollowUps: tasks})
		return err
	}
	claim := func(ctx context.Context, r *Run) (beeyard.Worker, *beeyard.Claim, error) {
		w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "dies"})
		if err != nil {
			return nil, nil, err
		}
		c, err := w.Claim(ctx, beeyard.Filter{})
		if err == nil && c == nil {
			err = errors.New("nothing to claim")
		}
		return w, c, errors.Join(err)
	}
	return []crashScenario{
		{name: "enqueue", act: func(ctx context.Context, r *Run, acked func(string)) error {
			_, err := r.Enqueue(ctx, crashTask("a"), beeyard.EnqueueOptions{})
			if err == nil {
				acked("a")
			}
			return err
		}, after: func(t *testing.T, r *Run, acked map[string]bool) {
			if _, there := coreBody(t, r, "a"); acked["a"] && !there {
				t.Fatal("an acknowledged task is gone")
			}
		}},
		{name: "claim and settle with output and follow-up",
			prepare: func(t *testing.T, r *Run) { coreEnqueue(t, r, "a") },
			act: func(ctx context.Context, r *Run, acked func(string)) error {
				w, c, err := claim(ctx, r)
				if err != nil {
					return err
				}
				ref := c.Ref()
				if _, err := r.Enqueue(ctx, crashTask("next"), beeyard.EnqueueOptions{Under: &ref}); err != nil {
					return err
				}
				if err := done(ctx, w, c); err != nil {
					return err
				}
				acked("a")
				return nil
			},
			after: func(t *testing.T, r *Run, acked map[string]bool) {
				f, there := coreBody(t, r, "a")
				if !there {
					t.Fatal("the task is gone")
				}
				_, follow := coreBody(t, r, "next")
				_, err := os.Stat(filepath.Join(r.path, "artifacts", "a.md"))
				out := err == nil
				switch f.place {
				case beeyard.PlaceDone:
					if !follow || !out {
						t.Fatalf("done, but follow-up %v, output %v", follow, out)
					}
					if f.task.Ext.Attempt != 1 {
						t.Fatalf("done with attempt %d", f.task.Ext.Attempt)
					}
				case beeyard.PlacePending:
					if follow || out || acked["a"] {
						t.Fatalf("not done, but follow-up %v, output %v, acknowledged %v", follow, out, acked["a"])
					}
				default:
					t.Fatalf("in %s", f.place)
				}
			}},
		{name: "retry settle",
			prepare: func(t *testing.T, r *Run) { coreEnqueue(t, r, "a") },
			act: func(ctx context.Context, r *Run, acked func(string)) error {
				w, c, err := claim(ctx, r)
				if err != nil {
					return err
				}
				if _, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeRetry, Reason: "exit 1"}); err == nil {
					acked("a")
				}
				return err
			},
			after: func(t *testing.T, r *Run, acked map[string]bool) {
				f, there := coreBody(t, r, "a")
				if !there {
					t.Fatal("the task is gone")
				}
				if acked["a"] && (f.place != beeyard.PlaceHeld || f.task.Ext.Attempt != 1 || f.task.Ext.Deaths != 0) {
					t.Fatalf("an acknowledged retry is in %s: %+v", f.place, f.task.Ext)
				}
				if f.task.Ext.Attempt > 1 {
					t.Fatalf("one claim cost %d attempts", f.task.Ext.Attempt)
				}
			}},
		{name: "reap", prepare: func(t *testing.T, r *Run) {
			coreEnqueue(t, r, "a")
			w, err := r.Attach(enqContext(t), beeyard.WorkerSpec{ID: "dead"})
			enqMust(t, err)
			coreClaim(t, w, "a")
			enqMust(t, w.Close(context.Background()))
		}, act: func(ctx context.Context, r *Run, acked func(string)) error {
			_, err := r.Reap(ctx, beeyard.ReapOptions{})
			return err
		}, after: func(t *testing.T, r *Run, acked map[string]bool) {
			f, there := coreBody(t, r, "a")
			if !there || f.place != beeyard.PlacePending || f.task.Ext.Deaths != 1 {
				t.Fatalf("after a reap that died: %v %+v", there, f)
			}
		}},
		{name: "hold", prepare: func(t *testing.T, r *Run) { coreEnqueue(t, r, "a") },
			act: func(ctx context.Context, r *Run, acked func(string)) error {
				err := r.Hold(ctx, "a", beeyard.Hold{By: "me"})
				if err == nil {
					acked("a")
				}
				return err
			}, after: func(t *testing.T, r *Run, acked map[string]bool) {
				f, there := coreBody(t, r, "a")
				if !there || f.task.Ext.Attempt != 0 {
					t.Fatalf("after a hold that died: %v %+v", there, f)
				}
				if held := f.place == beeyard.PlaceHeld; acked["a"] && !held {
					t.Fatalf("an acknowledged hold is in %s", f.place)
				}
			}},
		{name: "retry of a failed task", prepare: func(t *testing.T, r *Run) {
			coreEnqueue(t, r, "a")
			w := coreAttach(t, r, "w0")
			c := coreClaim(t, w, "a")
			_, err := w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeFailed, Final: true})
			enqMust(t, err)
		}, act: func(ctx context.Context, r *Run, acked func(string)) error {
			err := r.Retry(ctx, "a", beeyard.RetryOptions{})
			if err == nil {
				acked("a")
			}
			return err
		}, after: func(t *testing.T, r *Run, acked map[string]bool) {
			f, there := coreBody(t, r, "a")
			if !there || f.place != beeyard.PlaceFailed && f.place != beeyard.PlacePending {
				t.Fatalf("after a retry that died: %v in %s", there, f.place)
			}
			if acked["a"] && f.place != beeyard.PlacePending {
				t.Fatalf("an acknowledged retry is in %s", f.place)
			}
		}},
		{name: "retry of a done task", prepare: func(t *testing.T, r *Run) {
			coreEnqueue(t, r, "a")
			w := coreAttach(t, r, "w0")
			c := coreClaim(t, w, "a")
			_, err := w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
			enqMust(t, err)
			enqMust(t, w.Flush(enqContext(t)))
		}, act: func(ctx context.Context, r *Run, acked func(string)) error {
			return r.Retry(ctx, "a", beeyard.RetryOptions{})
		}, after: func(t *testing.T, r *Run, acked map[string]bool) {
			f, there := coreBody(t, r, "a")
			if !there || f.place != beeyard.PlaceDone && f.place != beeyard.PlacePending {
				t.Fatalf("after a retry that died: %v in %s", there, f.place)
			}
		}},
		{name: "checkpoint write", act: func(ctx context.Context, r *Run, acked func(string)) error {
			text := "new"
			_, err := r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: &text})
			if err == nil {
				acked("cp")
			}
			return err
		}, after: func(t *testing.T, r *Run, acked map[string]bool) {
			cp, err := r.Checkpoint(enqContext(t))
			enqMust(t, err)
			if acked["cp"] && cp.Summary != "new" || !acked["cp"] && cp.Summary != "" && cp.Summary != "new" {
				t.Fatalf("summary %q, acknowledged %v", cp.Summary, acked["cp"])
			}
		}},
	}
}

// TestCrashAtEveryStep kills a process at each of its changes to the disk and
// asks after recovery for one truth: each task in exactly one place, nothing
// left in the claims, completed_tasks no further than done/, promises kept.
func TestCrashAtEveryStep(t *testing.T) {
	for _, s := range crashScenarios() {
		t.Run(s.name, func(t *testing.T) {
			points := 0
			for n := 0; ; n++ {
				if crashOnce(t, s, n) {
					break
				}
				points++
			}
			t.Logf("MEASURED %s: killed at each of %d changes to the disk", s.name, points)
			if points < 3 {
				t.Fatalf("only %d points: the scenario does nothing", points)
			}
		})
	}
}

// crashOnce reports whether the act survived, that is, whether n is past its end.
func crashOnce(t *testing.T, s crashScenario, n int) (survived bool) {
	t.Helper()
	first := coreRun(t, Options{})
	if s.prepare != nil {
		s.prepare(t, first)
	}
	k := &killer{left: -1}
	r, err := Open(first.path, Options{Host: coreHost(), Wrap: k.wrap}, clock.Real())
	enqMust(t, err)
	k.mu.Lock()
	k.left = n
	k.mu.Unlock()
	acked := map[string]bool{}
	actErr := s.act(enqContext(t), r, func(what string) { acked[what] = true })
	k.mu.Lock()
	survived = !k.dead
	k.dead = true
	k.mu.Unlock()
	_ = r.Close() // frees its locks, as the kernel would; nothing else reaches the disk
	fail := func(format string, a ...any) {
		t.Helper()
		t.Fatalf("killed after %d changes (%s), act said %v: %s", n, strings.Join(k.took, ", "), actErr, fmt.Sprintf(format, a...))
	}
	if survived && actErr != nil {
		fail("it failed by itself")
	}

	next, err := Open(first.path, Options{Host: coreHost()}, clock.Real())
	enqMust(t, err)
	defer next.Close()
	w, err := next.Attach(enqContext(t), beeyard.WorkerSpec{ID: "next"})
	enqMust(t, err)
	for range 2 {
		if _, err := next.Reap(enqContext(t), beeyard.ReapOptions{}); err != nil {
			fail("recovery: %v", err)
		}
	}
	enqMust(t, next.reconcile(enqContext(t)))
	left := slices.DeleteFunc(coreLeft(t, next), func(n string) bool {
		id, tag, _ := parseEntry(filepath.Base(n))
		// Kept aside after ten seconds: nobody may be about to decide with them.
		return tag == tagNext || tag == tagArtifact || tag == tagRecord || id == "" && strings.HasPrefix(filepath.Base(n), ".")
	})
	if len(left) > 0 {
		fail("left in the claims: %v", left)
	}
	cp, err := next.Checkpoint(enqContext(t))
	enqMust(t, err)
	for _, id := range cp.CompletedTasks {
		if there, err := next.done.Exists(bodyName(id)); err != nil || !there {
			fail("completed_tasks has %s, done/ has not", id)
		}
	}
	t.Run(fmt.Sprintf("after %d", n), func(t *testing.T) { s.after(t, next, acked) })
	enqMust(t, w.Close(context.Background()))
	return survived
}
