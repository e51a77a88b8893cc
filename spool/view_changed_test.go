package spool

import (
	"context"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

func viewHint(t *testing.T, hints <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, ok := <-hints:
		if !ok {
			t.Fatalf("%s: the channel is closed", what)
		}
	case <-time.After(viewWait):
		t.Fatalf("%s: no hint", what)
	}
}

func viewClosed(t *testing.T, hints <-chan struct{}, what string) {
	t.Helper()
	end := time.After(viewWait)
	for {
		select {
		case _, ok := <-hints:
			if !ok {
				return
			}
		case <-end:
			t.Fatalf("%s: the channel stays open", what)
		}
	}
}

func TestViewChangedTellsOfTasksAndCheckpoint(t *testing.T) {
	r := viewRun(t, Options{})
	ctx, cancel := context.WithCancel(viewContext(t))
	hints, err := r.Changed(ctx)
	viewMust(t, err)
	viewPut(t, r, dirPending, viewTask("t1"))
	viewHint(t, hints, "a new task")
	viewMust(t, r.pending.Rename("t1.json", r.done, "t1.json"))
	viewHint(t, hints, "a finished task")
	summary := "half done"
	_, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: &summary})
	viewMust(t, err)
	viewHint(t, hints, "a checkpoint")
	cancel()
	viewClosed(t, hints, "after its context ended")
}

// Without any file event the poll finds the change.
func TestViewChangedPolls(t *testing.T) {
	r := viewRun(t, Options{})
	fake := clock.NewFake(time.Now())
	r.clk = fake
	last, err := r.signature()
	viewMust(t, err)
	out := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(viewContext(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.watchChanges(ctx, nil, last, out)
	}()
	viewMust(t, fake.BlockUntil(ctx, 1))
	viewPut(t, r, dirHeld, viewTask("t1"))
	fake.Advance(changePoll)
	viewHint(t, out, "a poll after a change")
	viewMust(t, fake.BlockUntil(ctx, 1))
	fake.Advance(changePoll)
	fake.Advance(changePoll)
	viewMust(t, fake.BlockUntil(ctx, 1))
	select {
	case <-out:
		t.Error("a hint although nothing changed")
	default:
	}
	cancel()
	<-done
}

func TestViewChangedEndsWithTheRun(t *testing.T) {
	r := viewRun(t, Options{})
	var all []<-chan struct{}
	for range 50 {
		hints, err := r.Changed(viewContext(t))
		viewMust(t, err)
		all = append(all, hints)
	}
	viewMust(t, r.Close())
	for _, hints := range all {
		viewClosed(t, hints, "after the run was closed")
	}
	if _, err := r.Changed(viewContext(t)); err == nil {
		t.Error("a closed run can be watched")
	}
}
