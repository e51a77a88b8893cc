package spool

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

func TestDrained(t *testing.T) {
	past, ahead := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	typed := func(typ string) func(*beeyard.Task) { return func(t *beeyard.Task) { t.Type = typ } }
	hold := func(t *beeyard.Task) { t.Ext.Hold = &beeyard.Hold{} }
	for name, c := range map[string]struct {
		put  func(t *testing.T, r *Run)
		want bool
	}{
		"empty":        {func(*testing.T, *Run) {}, true},
		"ready":        {func(t *testing.T, r *Run) { pickPut(t, r, dirPending, pickTask(1)) }, false},
		"another type": {func(t *testing.T, r *Run) { pickPut(t, r, dirPending, pickTask(1, typed("other"))) }, true},
		"waiting":      {func(t *testing.T, r *Run) { pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(ahead))) }, false},
		"waiting in pending": {func(t *testing.T, r *Run) {
			pickPut(t, r, dirPending, pickTask(1, pickNotBefore(ahead)))
		}, false},
		"waiting of another type": {func(t *testing.T, r *Run) {
			pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(ahead), typed("other")))
		}, true},
		"waiting for time and for what failed": {func(t *testing.T, r *Run) {
			pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(ahead), pickNeeds("f")))
			pickEnd(t, r, dirFailed, "f")
		}, true},
		"waiting for time and for what is blocked by nothing": {func(t *testing.T, r *Run) {
			pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(ahead), pickNeeds("task-000002")))
			pickPut(t, r, dirPending, pickTask(2, pickNeeds("nothing")))
		}, true},
		"waiting for time and then ready": {func(t *testing.T, r *Run) {
			pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(ahead), pickNeeds("d")))
			pickEnd(t, r, dirDone, "d")
		}, false},
		"due":     {func(t *testing.T, r *Run) { pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(past))) }, false},
		"on hold": {func(t *testing.T, r *Run) { pickPut(t, r, dirHeld, pickTask(1, hold, pickNotBefore(ahead))) }, true},
		"never due": {func(t *testing.T, r *Run) {
			pickPut(t, r, dirHeld, pickTask(1, func(t *beeyard.Task) { t.Ext.RetryAt = "soon" }))
		}, true},
		"stuck":        {func(t *testing.T, r *Run) { pickPut(t, r, dirPending, pickTask(1, pickNeeds("ghost"))) }, true},
		"in a cycle":   {func(t *testing.T, r *Run) { pickPut(t, r, dirPending, pickTask(1, pickNeeds("task-000001"))) }, true},
		"claimed":      {func(t *testing.T, r *Run) { pickClaimed(t, r, "w1~0123456789abcdef", "x.json") }, false},
		"decided":      {func(t *testing.T, r *Run) { pickClaimed(t, r, "w1~0123456789abcdef", "x~taken.01234567") }, false},
		"older claim":  {func(t *testing.T, r *Run) { pickClaimed(t, r, "older", "x.json") }, false},
		"only a beat":  {func(t *testing.T, r *Run) { pickClaimed(t, r, "w1~0123456789abcdef", fileBeat) }, true},
		"a stray file": {func(t *testing.T, r *Run) { pickRaw(t, r, dirPending, "x.json", []byte("{")) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := pickRun(t)
			c.put(t, r)
			p := pickPicker(t, r)
			got, err := p.drained(pickContext(t), beeyard.Filter{Types: []string{"work"}})
			pickMust(t, err)
			if got != c.want {
				t.Errorf("drained: %v, want %v", got, c.want)
			}
		})
	}
}

func pickClaimed(t *testing.T, r *Run, dir, name string) {
	t.Helper()
	path := filepath.Join(r.path, dirClaimed, dir)
	pickMust(t, os.Mkdir(path, 0o700))
	pickMust(t, os.WriteFile(filepath.Join(path, name), []byte("{}"), 0o600))
}

// What was taken in before and is unheard of since does not hide: the last look
// is at the folders themselves.
func TestDrainedLooksItself(t *testing.T) {
	r := pickRun(t)
	p := pickPicker(t, r)
	pickDeafen(t, p)
	for i := range 3 {
		if got, err := p.drained(pickContext(t), beeyard.Filter{}); err != nil || !got {
			t.Fatalf("empty: %v, %v", got, err)
		}
		pickPut(t, r, dirPending, pickTask(i))
		if got, err := p.drained(pickContext(t), beeyard.Filter{}); err != nil || got {
			t.Fatalf("with a task: %v, %v", got, err)
		}
		if got := pickNext(t, p, beeyard.Filter{}); got == "" {
			t.Fatal("the task was not offered")
		}
	}
}

// What moves while drained looks is seen where it went: back to pending/ just
// before the lock, or a dependency that ended just then.
func TestDrainedWhileThingsMove(t *testing.T) {
	for name, c := range map[string]struct{ before, between func(t *testing.T, r *Run) }{
		"a release": {
			func(t *testing.T, r *Run) { pickClaimed(t, r, "older", "task-000001.json") },
			func(t *testing.T, r *Run) {
				pickPut(t, r, dirPending, pickTask(1))
				pickMust(t, os.Remove(filepath.Join(r.path, dirClaimed, "older", "task-000001.json")))
			},
		},
		"a retry": {
			func(t *testing.T, r *Run) { pickClaimed(t, r, "older", "task-000001.json") },
			func(t *testing.T, r *Run) {
				pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(time.Now().Add(time.Hour))))
				pickMust(t, os.Remove(filepath.Join(r.path, dirClaimed, "older", "task-000001.json")))
			},
		},
		"an end": {
			func(t *testing.T, r *Run) {
				pickPut(t, r, dirPending, pickTask(2, pickNeeds("task-000001")))
				pickClaimed(t, r, "older", "task-000001.json")
			},
			func(t *testing.T, r *Run) {
				pickEnd(t, r, dirDone, "task-000001")
				pickMust(t, os.Remove(filepath.Join(r.path, dirClaimed, "older", "task-000001.json")))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := pickRun(t)
			c.before(t, base)
			moved := false
			r, err := Open(base.path, Options{Wrap: func(d durable.Dir) durable.Dir {
				return durable.Hooked(d, func(op durable.Op) error {
					if op.Op == durable.OpLock && op.Name == fileQueueLock && !moved {
						moved = true
						c.between(t, base)
					}
					return nil
				})
			}}, base.clk)
			pickMust(t, err)
			p := r.newPicker()
			got, err := p.drained(pickContext(t), beeyard.Filter{})
			if err != nil || got || !moved {
				t.Errorf("drained: %v, %v; moved: %v", got, err, moved)
			}
			pickMust(t, p.close())
			pickMust(t, r.Close())
		})
	}
}
