package spool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// A task that moves while it is listed is shown exactly once: at every step of
// a look a task is moved, forward or back, by a rename of its file.
func TestViewShowsAMovingTaskOnce(t *testing.T) {
	moves := []struct{ name, from, to string }{
		{"claimed", dirPending, "claimed/w1"}, {"held", dirPending, dirHeld}, {"promoted", dirHeld, dirPending},
		{"done", "claimed/w1", dirDone}, {"failed", "claimed/w1", dirFailed}, {"released", "claimed/w1", dirPending},
		{"retried", dirFailed, dirPending}, {"backoff", "claimed/w1", dirHeld}, {"done at once", dirPending, dirDone},
	}
	for _, m := range moves {
		t.Run(m.name, func(t *testing.T) {
			var step, at atomic.Int64
			var r *Run
			at.Store(-1)
			o := viewHook(func(op durable.Op) {
				if step.Add(1)-1 != at.Load() {
					return
				}
				name := bodyName("x")
				if err := os.Rename(filepath.Join(r.path, m.from, name), filepath.Join(r.path, m.to, name)); err != nil {
					t.Errorf("move: %v", err)
				}
			})
			r = viewRun(t, o)
			viewMust(t, os.MkdirAll(filepath.Join(r.path, "claimed/w1"), 0o700))
			for i := range 3 {
				viewPut(t, r, dirPending, viewTask(viewName(i)))
				viewPut(t, r, dirDone, viewTask(viewName(i+10)))
			}
			moved := true
			for n := int64(0); moved; n++ {
				for _, dir := range []string{dirPending, dirHeld, "claimed/w1", dirDone, dirFailed} {
					_ = os.Remove(filepath.Join(r.path, dir, "x.json"))
				}
				viewPut(t, r, m.from, viewTask("x"))
				step.Store(0)
				at.Store(n)
				p, err := r.List(viewContext(t), beeyard.Query{})
				viewMust(t, err)
				moved = step.Load() > n
				at.Store(-1)
				if c := viewCount(viewIDs(p), "x"); c != 1 || len(p.Tasks) != 7 {
					t.Fatalf("moved at step %d: shown %d times in %v", n, c, viewIDs(p))
				}
			}
		})
	}
}

func viewCount(ids []string, id string) int {
	n := 0
	for _, i := range ids {
		if i == id {
			n++
		}
	}
	return n
}

// Counts and Get see a moving task once too.
func TestViewCountsAndFindsAMovingTask(t *testing.T) {
	for _, m := range []struct{ from, to string }{
		{dirPending, "claimed/w1"}, {"claimed/w1", dirPending}, {"claimed/w1", dirDone}, {dirFailed, dirPending}, {dirDone, ".beeyard/archive"},
	} {
		t.Run(m.from+" to "+m.to, func(t *testing.T) {
			var step, at atomic.Int64
			var r *Run
			at.Store(-1)
			o := viewHook(func(op durable.Op) {
				if step.Add(1)-1 == at.Load() {
					if err := os.Rename(filepath.Join(r.path, m.from, "x.json"), filepath.Join(r.path, m.to, "x.json")); err != nil {
						t.Errorf("move: %v", err)
					}
				}
			})
			r = viewRun(t, o)
			for _, dir := range []string{"claimed/w1", ".beeyard/archive"} {
				viewMust(t, os.MkdirAll(filepath.Join(r.path, dir), 0o700))
			}
			look := func(f func()) {
				for n, moved := int64(0), true; moved; n++ {
					for _, dir := range []string{dirPending, dirHeld, "claimed/w1", dirDone, dirFailed, ".beeyard/archive"} {
						_ = os.Remove(filepath.Join(r.path, dir, "x.json"))
					}
					viewPut(t, r, m.from, viewTask("x"))
					step.Store(0)
					at.Store(n)
					f()
					moved = step.Load() > n
					at.Store(-1)
				}
			}
			look(func() {
				v, err := r.Get(viewContext(t), "x")
				if err != nil || v.Task.ID != "x" {
					t.Errorf("at step %d: %v", at.Load(), err)
				}
			})
			look(func() {
				c, err := r.Counts(viewContext(t))
				viewMust(t, err)
				sum := 0
				for _, n := range c.ByState {
					sum += n
				}
				if sum != 1 && m.to != ".beeyard/archive" || sum > 1 {
					t.Errorf("at step %d: counted %v", at.Load(), c.ByState)
				}
			})
		})
	}
}

// Looking while everything moves fails nobody and blocks nobody.
func TestViewWhileTasksMove(t *testing.T) {
	r := viewRun(t, Options{})
	const n = 200
	for i := range n {
		viewPut(t, r, dirPending, viewTask(viewName(i)))
	}
	viewMust(t, os.MkdirAll(filepath.Join(r.path, "claimed/w1"), 0o700))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 2 {
		wg.Go(func() {
			ways := []string{dirPending, "claimed/w1", dirDone}
			for i := w; ; i += 2 {
				select {
				case <-stop:
					return
				default:
				}
				name := bodyName(viewName(i % n))
				for k := range ways {
					if os.Rename(filepath.Join(r.path, ways[k], name), filepath.Join(r.path, ways[(k+1)%3], name)) == nil {
						break
					}
				}
			}
		})
	}
	want := make([]string, n)
	for i := range want {
		want[i] = viewName(i)
	}
	whole := 0
	for range 30 {
		p, err := r.List(viewContext(t), beeyard.Query{Limit: 2 * n})
		viewMust(t, err)
		ids := viewIDs(p)
		slices.Sort(ids)
		if len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Fatalf("shown twice: %v", ids)
		}
		if slices.Equal(ids, want) {
			whole++
		}
		for i := range 5 {
			if _, err := r.Get(viewContext(t), viewName(i)); err != nil && !errors.Is(err, beeyard.ErrNotFound) {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	wg.Wait()
	if p, err := r.List(viewContext(t), beeyard.Query{Limit: 2 * n}); err != nil || len(p.Tasks) != n {
		t.Errorf("at rest: %d tasks, %v", len(p.Tasks), err)
	}
	t.Logf("complete in %d of 30 looks at a run where every task moves round and round", whole)
}

// A task that moves while a page is read is not lost between the pages, and no
// page shows what a later one shows again.
func TestViewPagesOfAMovingTask(t *testing.T) {
	for _, m := range []struct{ from, to string }{{dirPending, dirDone}, {dirPending, "claimed/w1"}, {dirHeld, dirPending}} {
		t.Run(m.from+" to "+m.to, func(t *testing.T) {
			var step, at atomic.Int64
			var r *Run
			at.Store(-1)
			r = viewRun(t, viewHook(func(op durable.Op) {
				if step.Add(1)-1 == at.Load() {
					if err := os.Rename(filepath.Join(r.path, m.from, "x.json"), filepath.Join(r.path, m.to, "x.json")); err != nil {
						t.Errorf("move: %v", err)
					}
				}
			}))
			viewMust(t, os.MkdirAll(filepath.Join(r.path, "claimed/w1"), 0o700))
			for i := range 3 {
				viewPut(t, r, dirPending, viewTask(viewName(i)))
				viewPut(t, r, dirDone, viewTask(viewName(i+10)))
				viewAge(t, r, dirDone, bodyName(viewName(i+10)), time.Hour)
			}
			x := viewTask("x")
			x.Ext.Priority = 1 // first while it is open
			for n, moved := int64(0), true; moved; n++ {
				for _, dir := range []string{dirPending, dirHeld, "claimed/w1", dirDone} {
					_ = os.Remove(filepath.Join(r.path, dir, "x.json"))
				}
				viewPut(t, r, m.from, x)
				step.Store(0)
				at.Store(n)
				shown := map[beeyard.State]int{}
				q := beeyard.Query{Limit: 2}
				for page := 0; page == 0 || q.Cursor != ""; page++ {
					p, err := r.List(viewContext(t), q)
					viewMust(t, err)
					if page == 0 {
						moved = step.Load() > n
						at.Store(-1)
					}
					for _, v := range p.Tasks {
						if v.Task.ID == "x" {
							shown[v.State]++
						}
					}
					q.Cursor = p.Next
				}
				total := 0
				for state, c := range shown {
					if total += c; c > 1 {
						t.Errorf("moved at step %d: shown %d times as %s", n, c, state)
					}
				}
				if total == 0 {
					t.Errorf("moved at step %d: not shown at all", n)
				}
			}
		})
	}
}
