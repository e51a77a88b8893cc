package spool

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

func TestPromoteDue(t *testing.T) {
	clk := clock.NewFake(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{}, clk)
	due := pickNotBefore(clk.Now())
	pickPut(t, r, dirHeld, pickTask(1, due), pickTask(2, pickNotBefore(clk.Now().Add(time.Second))),
		pickTask(3, due, func(t *beeyard.Task) { t.Ext.Hold = &beeyard.Hold{By: "me"} }),
		pickTask(4, func(t *beeyard.Task) { t.Ext.RetryAt = "tomorrow" }), pickTask(5, due, pickNeeds("ghost")), pickTask(6))
	before, _, err := r.held.ReadFile("task-000001.json", 1<<20)
	pickMust(t, err)
	n, err := r.promoteDue(pickContext(t))
	pickMust(t, err)
	in := func(p beeyard.Place) (ids []string) {
		for i := range 9 {
			if there, _ := r.place(p).Exists(bodyName(pickTask(i).ID)); there {
				ids = append(ids, pickTask(i).ID)
			}
		}
		return ids
	}
	if got, want := in(beeyard.PlacePending), []string{"task-000001", "task-000005", "task-000006"}; n != 3 || !slices.Equal(got, want) {
		t.Errorf("promoted %d: %v, want %v", n, got, want)
	}
	after, _, err := r.pending.ReadFile("task-000001.json", 1<<20)
	pickMust(t, err)
	if string(after) != string(before) {
		t.Errorf("the body changed from %s to %s", before, after)
	}
	clk.Advance(time.Second)
	if n, err := r.promoteDue(pickContext(t)); err != nil || n != 1 {
		t.Errorf("a second later: %d, %v", n, err)
	}
}

// The name in pending/ may be taken: by a copy of the same life, which gives
// way to the higher revision, or by another life, which stays.
func TestPromoteMeetsAnother(t *testing.T) {
	life := func(uid string, rev int64) func(*beeyard.Task) {
		return func(t *beeyard.Task) { t.Ext.UID, t.Ext.Rev = uid, rev }
	}
	for name, c := range map[string]struct {
		there    func(*beeyard.Task)
		want     int64
		heldLeft bool
	}{
		"an older copy": {life("a", 1), 2, false},
		"an equal copy": {life("a", 2), 2, false},
		"a newer copy":  {life("a", 3), 3, false},
		"another life":  {life("b", 9), 9, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := pickRun(t)
			pickPut(t, r, dirHeld, pickTask(1, life("a", 2)))
			pickPut(t, r, dirPending, pickTask(1, c.there))
			if _, err := r.promoteDue(pickContext(t)); err != nil {
				t.Fatal(err)
			}
			got, _, err := readTask(r.pending, "task-000001.json", "task-000001")
			pickMust(t, err)
			left, err := r.held.Exists("task-000001.json")
			pickMust(t, err)
			if got.Ext.Rev != c.want || left != c.heldLeft {
				t.Errorf("pending has rev %d, held left: %v; want %d, %v", got.Ext.Rev, left, c.want, c.heldLeft)
			}
			// A worker meets the same, and waits rather than tries on and on.
			p := pickPicker(t, r)
			if id := pickNext(t, p, beeyard.Filter{}); id != "task-000001" {
				t.Errorf("took %q", id)
			}
		})
	}
}

// Many promote at once; each task is promoted once.
func TestPromoteFromManySides(t *testing.T) {
	r := pickRun(t)
	const n = 60
	pickFill(t, r, dirHeld, n, pickNotBefore(time.Now().Add(-time.Minute)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 4 {
		other := pickAgain(t, r)
		wg.Go(func() {
			k, err := other.promoteDue(pickContext(t))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += k
		})
	}
	wg.Wait()
	if total != n {
		t.Errorf("promoted %d times, want %d", total, n)
	}
}

// What was listed as due may be another file by now: the one that is there decides.
func TestPromoteReadsAgain(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirHeld, pickTask(1, func(t *beeyard.Task) { t.Ext.Hold = &beeyard.Hold{} }), pickTask(2, pickNotBefore(time.Now().Add(time.Hour))), pickTask(3))
	moved, err := r.promote(pickContext(t), []string{"task-000001", "task-000002", "task-000003", "task-000004"})
	if err != nil || !slices.Equal(moved, []string{"task-000003"}) {
		t.Errorf("promoted %v, %v", moved, err)
	}
}
