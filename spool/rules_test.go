package spool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// These tests hold the real code to the rules of the protocol, by name; package
// explore shows by exhaustive search that each rule is needed. A gate stops one
// process at a step, another acts, the first goes on.

// stepGate stops the first operation that matches until open is called.
type stepGate struct {
	match   func(durable.Op) bool
	reached chan struct{}
	opened  chan struct{}
	once    sync.Once
}

func newStepGate(match func(durable.Op) bool) *stepGate {
	return &stepGate{match: match, reached: make(chan struct{}), opened: make(chan struct{})}
}

func (g *stepGate) wrap(d durable.Dir) durable.Dir {
	return durable.Hooked(d, func(op durable.Op) error {
		if g.match(op) {
			g.once.Do(func() {
				close(g.reached)
				<-g.opened
			})
		}
		return nil
	})
}

func (g *stepGate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(enqWait):
		t.Fatal("the step was never reached")
	}
}

// gated opens the run once more, as another process with the gate in its way.
func gated(t *testing.T, r *Run, g *stepGate) *Run {
	t.Helper()
	other, err := Open(r.path, Options{Host: coreHost(), Wrap: g.wrap}, clock.Real())
	enqMust(t, err)
	t.Cleanup(func() { enqMust(t, other.Close()) })
	return other
}

func isRename(from, to string) func(durable.Op) bool {
	return func(op durable.Op) bool {
		return (op.Op == durable.OpRename || op.Op == durable.OpRenameExcl) &&
			strings.Contains(op.Name, from) && strings.Contains(op.NewName, to)
	}
}

// opsOf runs act and returns what it did to the disk, in order.
func opsOf(t *testing.T, r *Run, act func(r *Run)) []durable.Op {
	t.Helper()
	l := &enqLog{}
	other, err := Open(r.path, Options{Host: coreHost(), Wrap: l.wrap}, clock.Real())
	enqMust(t, err)
	defer other.Close()
	l.mu.Lock()
	l.ops = nil
	l.mu.Unlock()
	act(other)
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]durable.Op(nil), l.ops...)
}

func stepOf(ops []durable.Op, match func(durable.Op) bool) int {
	for i, op := range ops {
		if match(op) {
			return i
		}
	}
	return -1
}

func TestRules(t *testing.T) {
	settleWithAll := func(t *testing.T, r *Run) {
		w, err := r.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w"})
		enqMust(t, err)
		c := coreClaim(t, w, "a")
		enqMust(t, os.WriteFile(c.ArtifactPath, []byte("out"), 0o600))
		ref := c.Ref()
		_, err = r.Enqueue(enqContext(t), crashTask("next"), beeyard.EnqueueOptions{Under: &ref})
		enqMust(t, err)
		art, err := w.StagedArtifact(enqContext(t), c)
		enqMust(t, err)
		tasks, err := w.FollowUps(enqContext(t), c)
		enqMust(t, err)
		_, err = w.Settle(enqContext(t), ref, beeyard.Settlement{Outcome: beeyard.OutcomeDone, Artifact: art, FollowUps: tasks})
		enqMust(t, err)
	}
	decision := isRename("a.json", "~"+tagTaken+".")

	t.Run("record before decision", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		ops := opsOf(t, r, func(r *Run) { settleWithAll(t, r) })
		at := stepOf(ops, decision)
		sync := stepOf(ops, func(op durable.Op) bool {
			return op.Op == durable.OpSync && strings.Contains(op.Name, "~"+tagRecord+".")
		})
		if sync < 0 || at < 0 || sync > at {
			t.Fatalf("record flushed at step %d, decided at %d", sync, at)
		}
		// A record that cannot be flushed decides nothing.
		r = coreRun(t, Options{}, "b")
		other, err := Open(r.path, Options{Host: coreHost(), Wrap: func(d durable.Dir) durable.Dir {
			return durable.Hooked(d, func(op durable.Op) error {
				if op.Op == durable.OpSync && strings.Contains(op.Name, "~"+tagRecord+".") {
					return errors.New("input/output error")
				}
				return nil
			})
		}}, clock.Real())
		enqMust(t, err)
		defer other.Close()
		w, err := other.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w"})
		enqMust(t, err)
		c := coreClaim(t, w, "b")
		if _, err := w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone}); err == nil {
			t.Fatal("settled without a record on the disk")
		}
		if got := coreState(t, r, "b"); got != beeyard.StateClaimed {
			t.Fatalf("state %s", got)
		}
	})
	t.Run("artifact and follow-ups after decision", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		ops := opsOf(t, r, func(r *Run) { settleWithAll(t, r) })
		at := stepOf(ops, decision)
		for _, m := range []func(durable.Op) bool{isRename("a~"+tagArtifact, "a.md"), isRename("", "next.json")} {
			if i := stepOf(ops, m); i < at || at < 0 {
				t.Fatalf("published at step %d, decided at %d", i, at)
			}
		}
	})
	t.Run("reap uses a whole record", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, tok := deadClaim(t, r, "", "a")
		put(t, dir, tagged("a", tagRecord, "abcdefgh"), recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone}))
		recover1(t, r)
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
	})
	t.Run("(D, x) used once", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		w := coreAttach(t, r, "w1")
		seen := map[string]bool{}
		for range 3 {
			c := coreClaim(t, w, "a")
			if seen[c.Token.Dir()] {
				t.Fatalf("claimed twice into %s", c.Token.Dir())
			}
			seen[c.Token.Dir()] = true
			_, err := w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeRelease})
			enqMust(t, err)
			waitFor(t, func() bool { f, _ := coreBody(t, r, "a"); return f.place == beeyard.PlacePending })
		}
	})
	t.Run("follow-up looked for under the lock", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		g := newStepGate(func(op durable.Op) bool { return op.Op == durable.OpRenameExcl && op.NewName == "next.json" })
		first := gated(t, r, g)
		ended := make(chan struct{})
		go func() { defer close(ended); settleWithAll(t, first) }()
		g.wait(t)
		// While the follow-up is about to be published, the lock is held.
		ctx, cancel := context.WithTimeout(enqContext(t), 50*time.Millisecond)
		_, err := r.root.Lock(ctx, fileQueueLock)
		cancel()
		if !errors.Is(err, durable.ErrLocked) {
			t.Fatalf("the lock was free: %v", err)
		}
		close(g.opened)
		<-ended
		wantBody(t, r, "next", beeyard.PlacePending, 0)
	})
	t.Run("enqueue under the lock", func(t *testing.T) {
		r := coreRun(t, Options{})
		g := newStepGate(isRename("", "a.json"))
		first := gated(t, r, g)
		errs := make(chan error, 1)
		go func() {
			_, err := first.Enqueue(context.Background(), crashTask("a"), beeyard.EnqueueOptions{})
			errs <- err
		}()
		g.wait(t)
		ctx, cancel := context.WithTimeout(enqContext(t), 50*time.Millisecond)
		_, err := r.root.Lock(ctx, fileQueueLock)
		cancel()
		if !errors.Is(err, durable.ErrLocked) {
			t.Fatalf("the lock was free: %v", err)
		}
		close(g.opened)
		enqMust(t, <-errs)
	})
	t.Run("retry out of failed under the lock", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		w := coreAttach(t, r, "w1")
		c := coreClaim(t, w, "a")
		_, err := w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeFailed, Final: true})
		enqMust(t, err)
		g := newStepGate(func(op durable.Op) bool {
			return op.Op == durable.OpRename && op.Name == "a.json" && filepath.Base(op.Dir) == "failed"
		})
		first := gated(t, r, g)
		errs := make(chan error, 1)
		go func() { errs <- first.Retry(context.Background(), "a", beeyard.RetryOptions{}) }()
		g.wait(t)
		// An enqueue of the id now must not slip in between two places.
		second := make(chan error, 1)
		go func() {
			_, err := r.Enqueue(context.Background(), crashTask("a"), beeyard.EnqueueOptions{})
			second <- err
		}()
		close(g.opened)
		enqMust(t, <-errs)
		if err := <-second; !errors.Is(err, beeyard.ErrExists) {
			t.Fatalf("enqueue during a retry: %v", err)
		}
	})
	t.Run("done wins by life, not by name", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		enqFinish(t, r, "a", beeyard.PlaceDone, beeyard.OutcomeDone)
		// The same life again is a leftover; another life of the id is a task.
		data, err := os.ReadFile(filepath.Join(r.path, "done", "a.json"))
		enqMust(t, err)
		put(t, filepath.Join(r.path, "pending"), "a.json", data)
		w := coreAttach(t, r, "w1")
		coreClaim(t, w, "")
		if _, err := os.Stat(filepath.Join(r.path, "pending", "a.json")); err == nil {
			t.Fatal("the leftover stays")
		}
		var m map[string]any
		enqMust(t, json.Unmarshal(data, &m))
		delete(m, "beeyard")
		m["created_at"] = "2099-01-01T00:00:00Z"
		data, err = json.Marshal(m)
		enqMust(t, err)
		put(t, filepath.Join(r.path, "pending"), "a.json", data)
		waitFor(t, func() bool {
			c, err := w.Claim(enqContext(t), beeyard.Filter{})
			enqMust(t, err)
			return c != nil
		})
	})
	t.Run("a later life counts as a copy", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, _ := deadClaim(t, r, "boot-0", "a")
		enqMust(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(dir, tagged("a", tagTaken, "abcdefgh"))))
		later := *body
		later.CreatedAt, later.Ext = "2099-01-01T00:00:00Z", beeyard.Ext{}
		data, err := later.Encode()
		enqMust(t, err)
		put(t, filepath.Join(r.path, "pending"), "a.json", data)
		recover1(t, r)
		if b := wantBody(t, r, "a", beeyard.PlacePending, 0); b.CreatedAt != later.CreatedAt {
			t.Fatal("the earlier life came back over the later one")
		}
	})
	t.Run("a writer looks for its own x~taken before it withdraws a record", func(t *testing.T) {
		// The decision is made and the answer is an error, as a file server that
		// was restarted gives it.
		r := coreRun(t, Options{}, "a")
		other, err := Open(r.path, Options{Host: coreHost(), Wrap: func(d durable.Dir) durable.Dir {
			var once sync.Once
			return durable.HookedAfter(d, func(op durable.Op, err error) error {
				if decision(op) {
					once.Do(func() { err = os.ErrNotExist })
				}
				return err
			})
		}}, clock.Real())
		enqMust(t, err)
		defer other.Close()
		w, err := other.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w"})
		enqMust(t, err)
		c := coreClaim(t, w, "a")
		_, err = w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
		enqMust(t, err)
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
	})
	t.Run("anyone may finish x~taken, also when D's owner lives", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		g := newStepGate(isRename("~"+tagRecord+".", "a.json"))
		first := gated(t, r, g)
		w, err := first.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w"})
		enqMust(t, err)
		c := coreClaim(t, w, "a")
		errs := make(chan error, 1)
		go func() {
			_, err := w.Settle(context.Background(), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
			errs <- err
		}()
		g.wait(t)
		recoverLater(t, r) // more than ten seconds later
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
		close(g.opened)
		enqMust(t, <-errs)
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
		if left := coreLeft(t, r); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	})
	t.Run("an operation claims first, then writes its record", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		ops := opsOf(t, r, func(r *Run) { enqMust(t, r.Hold(enqContext(t), "a", beeyard.Hold{})) })
		grab := stepOf(ops, func(op durable.Op) bool {
			return op.Op == durable.OpRename && op.Name == "a.json" && filepath.Base(op.Dir) == "pending"
		})
		rec := stepOf(ops, func(op durable.Op) bool {
			return op.Op == durable.OpCreate && strings.Contains(op.Name, "~"+tagRecord+".")
		})
		if grab < 0 || rec < grab {
			t.Fatalf("claimed at step %d, record at %d", grab, rec)
		}
	})
	t.Run("missing record means published within one boot", func(t *testing.T) {
		for boot, place := range map[string]string{"": "nowhere", "boot-0": "pending"} {
			r := coreRun(t, Options{}, "a")
			dir, _, _ := deadClaim(t, r, boot, "a")
			enqMust(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(dir, tagged("a", tagTaken, "abcdefgh"))))
			recover1(t, r)
			f, ok := coreBody(t, r, "a")
			if place == "nowhere" && ok || place == "pending" && f.place != beeyard.PlacePending {
				t.Fatalf("boot %q: there %v, in %s", boot, ok, f.place)
			}
		}
	})
}
