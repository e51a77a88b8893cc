package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

func TestOwedIsWrittenSoonAndAtClose(t *testing.T) {
	dir := chkRun(t, Options{}).path
	r, err := Open(dir, Options{}, clock.Real())
	chkMust(t, err)
	for _, id := range chkIDs("t", 20) {
		chkPut(t, r.done, id)
		r.owe(id)
	}
	chkEventually(t, "listing what was owed", func() bool { return len(chkRaw(t, r).CompletedTasks) == 20 })
	chkPut(t, r.done, "last")
	r.owe("last", "t0000", "never-done")
	chkMust(t, r.Close())
	chkMust(t, r.Close())
	chkListed(t, r, append(chkIDs("t", 20), "last")...)
}

// 500 times: the goroutine ends with the run, whatever it was doing.
func TestOwedGoroutineEndsWithTheRun(t *testing.T) {
	dir := chkRun(t, Options{}).path
	for i := range 500 {
		r, err := Open(dir, Options{}, clock.Real())
		chkMust(t, err)
		r.owe("ghost")
		if i%2 == 0 {
			chkMust(t, r.failureRisk(context.Background(), "x", "again"))
		}
		chkMust(t, r.Close())
		select {
		case <-r.chk.fold.ended:
		default:
			t.Fatal("Close has not waited for the goroutine")
		}
		r.owe("late") // must not start another
	}
}

// An id that is not in done/ is never listed (invariant 9), also when it was
// there when it became owed.
func TestOwedOnlyWhatIsDoneNow(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	chkPut(t, r.done, "a", "b")
	r.chk.mu.Lock()
	r.chk.owed.ids = []string{"a", "b", "ghost", "a"}
	r.chk.mu.Unlock()
	chkMust(t, r.done.Rename("b.json", r.pending, "b.json")) // a retry took it out
	chkMust(t, r.flushOwed(ctx))
	chkListed(t, r, "a")
	chkMust(t, r.completedNow(ctx, "ghost"))
	chkListed(t, r, "a")
}

func TestCompletedNowWithoutCheckpoint(t *testing.T) {
	r := chkRun(t, Options{})
	chkMust(t, os.Remove(chkStatusPath(r)))
	chkPut(t, r.done, "a")
	chkMust(t, r.completedNow(chkContext(t), "a"))
	if _, err := os.Stat(chkStatusPath(r)); !os.IsNotExist(err) {
		t.Errorf("a completion made a status.json: %v", err)
	}
}

// done/ is flushed before a list that names what is in it.
func TestOwedFlushesDoneFirst(t *testing.T) {
	var hook chkHook
	r := chkRun(t, hook.options())
	chkPut(t, r.done, "a")
	var ops []string
	hook.set(func(op durable.Op) error {
		switch {
		case op.Op == durable.OpSyncDir && strings.HasSuffix(op.Dir, "/done"):
			ops = append(ops, "sync done")
		case op.Op == durable.OpSync:
			ops = append(ops, "sync file")
		case chkIsReplace(op):
			ops = append(ops, "replace")
		case op.Op == durable.OpSyncDir:
			ops = append(ops, "sync folder")
		}
		return nil
	})
	chkMust(t, r.completedNow(chkContext(t), "a"))
	hook.set(nil)
	if want := []string{"sync done", "sync file", "replace", "sync folder"}; !slices.Equal(ops, want) {
		t.Errorf("steps %q, want %q", ops, want)
	}
}

// Between two writes pass at least foldShare times what the last one took, so
// that a drain of n tasks costs no n²; and no more than one is under way.
func TestOwedKeepsItsPace(t *testing.T) {
	clk := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var hook chkHook
	dir := chkRun(t, Options{}).path
	r := chkOpen(t, dir, hook.options(), clk)
	ctx := chkContext(t)
	var writes atomic.Int64
	wrote := make(chan struct{}, 100)
	hook.set(func(op durable.Op) error {
		if chkIsReplace(op) {
			clk.Advance(50 * time.Millisecond) // what a write takes
			writes.Add(1)
		}
		if op.Op == durable.OpSyncDir && op.Dir == r.path {
			wrote <- struct{}{}
		}
		return nil
	})
	chkPut(t, r.done, chkIDs("t", 5)...)
	r.owe("t0000") // nothing was written yet: at once
	chkHear(t, wrote, "the first write")
	chkMust(t, r.flushOwed(ctx)) // its turn is over: the pace is set
	for _, id := range chkIDs("t", 5)[1:] {
		r.owe(id)
	}
	chkMust(t, clk.BlockUntil(ctx, 2))
	clk.Advance(foldShare*50*time.Millisecond - 60*time.Millisecond)
	if n := writes.Load(); n != 1 {
		t.Errorf("%d writes before the pause was over", n)
	}
	chkMust(t, clk.BlockUntil(ctx, 2))
	clk.Advance(20 * time.Millisecond)
	chkHear(t, wrote, "the second write")
	chkMust(t, r.flushOwed(ctx))
	chkListed(t, r, chkIDs("t", 5)...)
	if n := writes.Load(); n != 2 {
		t.Errorf("%d writes for five tasks", n)
	}
	hook.set(nil)
}

// A run that has a worker is compared with done/ again and again: an older
// program may make status.json anew at any time.
func TestWorkersReconcileAgainAndAgain(t *testing.T) {
	clk := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := chkOpen(t, chkRun(t, Options{}).path, Options{}, clk)
	ctx := chkContext(t)
	chkPut(t, r.done, "a")
	chkMust(t, r.keepReconciled(ctx))
	chkListed(t, r, "a")
	for range 3 {
		chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"checkpoint":{"summary":"Initialized"}}`), 0o600))
		chkMust(t, clk.BlockUntil(ctx, 1))
		clk.Advance(reconcileEvery)
		chkEventually(t, "a reconcile", func() bool { return slices.Equal(chkRaw(t, r).CompletedTasks, []string{"a"}) })
	}
}

func chkHear(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(chkWait):
		t.Fatalf("%s did not happen within %v", what, chkWait)
	}
}

// Whoever reads status.json and then done/ never finds more in the first, and
// at rest the two are equal.
func TestCompletedNeverAheadOfDone(t *testing.T) {
	r := chkRun(t, Options{})
	const n = 600
	stop := make(chan struct{})
	var watch sync.WaitGroup
	looks := 0
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			looks++
			for _, id := range chkRaw(t, r).CompletedTasks {
				if _, err := os.Stat(r.path + "/done/" + id + ".json"); err != nil {
					t.Errorf("%s is listed and not in done/", id)
				}
			}
		}
	})
	var work sync.WaitGroup
	for w := range 4 {
		work.Go(func() {
			for i := range n / 4 {
				id := fmt.Sprintf("w%d-%04d", w, i)
				chkPut(t, r.pending, id)
				r.owe(id) // too early: must not be believed
				chkMust(t, r.pending.Rename(id+".json", r.done, id+".json"))
				r.owe(id)
			}
		})
	}
	work.Wait()
	chkMust(t, r.flushOwed(chkContext(t)))
	close(stop)
	watch.Wait()
	if got := chkRaw(t, r).CompletedTasks; len(got) != n {
		t.Errorf("%d ids are listed at rest, want %d", len(got), n)
	}
	t.Logf("%d looks", looks)
}

func TestFailuresReachRisk(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	for i := range 25 {
		chkMust(t, r.failureRisk(ctx, fmt.Sprintf("f%02d", i), "exit 3\nsaid \"no\""))
	}
	chkMust(t, r.flushOwed(ctx))
	risk := chkRaw(t, r).Risk
	lines := strings.Split(risk, "\n")
	if lines[0] != "a person's word" || len(lines) != 1+maxFailures {
		t.Fatalf("risk is %q", risk)
	}
	if !strings.Contains(lines[1], `"f15": "exit 3\nsaid \"no\""`) || !strings.Contains(lines[maxFailures], `"f24"`) {
		t.Errorf("risk does not hold the last %d: %q", maxFailures, lines)
	}
	// One that is done after all is no blocker any more.
	chkPut(t, r.done, "f20")
	chkMust(t, r.completedNow(ctx, "f20"))
	if risk := chkRaw(t, r).Risk; strings.Contains(risk, "f20") || !strings.Contains(risk, "f19") {
		t.Errorf("risk after f20 was done: %q", risk)
	}
}

// What is owed and cannot be written stays owed.
func TestOwedSurvivesFailures(t *testing.T) {
	full := errors.New("no space left")
	var hook chkHook
	r := chkRun(t, hook.options())
	ctx := chkContext(t)
	chkPut(t, r.done, "a", "b")
	hook.set(func(op durable.Op) error {
		if op.Op == durable.OpSync {
			return full
		}
		return nil
	})
	chkIs(t, r.completedNow(ctx, "a"), full)
	r.owe("b")
	chkIs(t, r.flushOwed(ctx), full)
	chkListed(t, r)
	hook.set(nil)
	chkMust(t, r.flushOwed(ctx))
	chkListed(t, r, "a", "b")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	unlock, err := r.lockStatus(ctx)
	chkMust(t, err)
	chkPut(t, r.done, "c")
	chkIs(t, r.completedNow(canceled, "c"), context.Canceled)
	unlock()
	chkMust(t, r.flushOwed(ctx))
	chkListed(t, r, "a", "b", "c")
}

// A drain of 100,000: what all the folds cost together stays a small share.
func TestOwedOf100000(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: 100,000 tasks are for the long run")
	}
	r := chkRun(t, Options{})
	ids := chkIDs("task-with-a-usual-name-", 100_000)
	_, err := r.editStatus(chkContext(t), func(old *status) (*beeyard.Checkpoint, error) {
		next := *old.cp
		next.CompletedTasks = ids[:99_000]
		return &next, nil
	})
	chkMust(t, err)
	chkPut(t, r.done, ids[99_000:]...)
	chkMust(t, r.completedNow(chkContext(t), ids[99_000])) // reads once, then knows
	start := time.Now()
	const folds = 10
	for i := range folds {
		chkMust(t, r.completedNow(chkContext(t), ids[99_001+i*90:99_091+i*90]...))
	}
	t.Logf("one fold of 90 ids into 99,000: %v", time.Since(start)/folds)
	chkMust(t, r.completedNow(chkContext(t), ids[99_000:]...))
	if got := chkRaw(t, r).CompletedTasks; !slices.Equal(got, ids) {
		t.Errorf("%d ids are listed, or not in their order", len(got))
	}
}
