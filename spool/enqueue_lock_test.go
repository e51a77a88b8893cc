package spool

import (
	"context"
	"errors"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// An older program takes no lock: its file came between look and publish.
func TestEnqueueOlderEnqueueInBetween(t *testing.T) {
	gate := newEnqGate(func(op durable.Op) bool { return op.Op == durable.OpRenameExcl })
	r := enqRun(t, Options{Wrap: gate.wrap})
	other := enqOpen(t, r.path, Options{})
	done := make(chan error, 1)
	go func() {
		_, err := r.Enqueue(context.Background(), []*beeyard.Task{enqTask("t1")}, beeyard.EnqueueOptions{})
		done <- err
	}()
	enqHear(t, gate.reached, "the publish")
	older := []byte(`{"task_id": "t1", "task_type": "older", "created_at": "2026-01-01T00:00:00Z"}`)
	enqMust(t, durable.WriteFile(other.pending, "t1.json", older, fileMode))
	close(gate.open)
	enqIs(t, <-done, beeyard.ErrExists)
	got, _, err := readTask(other.pending, "t1.json", "t1")
	enqMust(t, err)
	if got.Type != "older" {
		t.Errorf("the older program's task was replaced by %+v", got)
	}
	enqNames(t, r, dirPending)
}

// Rule "enqueue under the lock": while one publishes, another with the same id
// does not even look.
func TestEnqueueUnderTheLock(t *testing.T) {
	enqUnderTheLock(t, func(r *Run) error {
		_, err := r.Enqueue(context.Background(), []*beeyard.Task{enqTask("x")}, beeyard.EnqueueOptions{})
		return err
	})
}

// enqUnderTheLock stops publish between its look and its rename, and lets
// another process enqueue the same id meanwhile: it must wait for the rename.
func enqUnderTheLock(t *testing.T, publish func(*Run) error) {
	t.Helper()
	gate := newEnqGate(func(op durable.Op) bool { return op.Op == durable.OpRenameExcl && op.NewName == "x.json" })
	first := enqRun(t, Options{Wrap: gate.wrap})
	asks := newEnqGate(func(op durable.Op) bool { return op.Op == durable.OpLock })
	close(asks.open)
	looked := newEnqGate(func(op durable.Op) bool { return op.Op == durable.OpExists && op.Name == "x.json" })
	second, err := Open(first.path, Options{Wrap: func(d durable.Dir) durable.Dir { return looked.wrap(asks.wrap(d)) }}, clock.Real())
	enqMust(t, err)
	defer func() { enqMust(t, second.Close()) }()

	firstDone, secondDone := make(chan error, 1), make(chan error, 1)
	go func() { firstDone <- publish(first) }()
	enqHear(t, gate.reached, "the first publish")
	if !enqLocked(t, first) {
		t.Error("between look and publish the lock is free")
	}
	go func() {
		_, err := second.Enqueue(context.Background(), []*beeyard.Task{enqTask("x")}, beeyard.EnqueueOptions{})
		secondDone <- err
	}()
	enqHear(t, asks.reached, "the second's asking for the lock")
	// Were it not kept out, its look would follow at once; it comes only after
	// the first has published.
	select {
	case <-looked.reached:
		t.Error("the second looked while the first was between look and publish")
	case <-firstDone:
		t.Fatal("the first ended at its gate")
	default:
	}
	close(gate.open)
	enqMust(t, <-firstDone)
	enqHear(t, looked.reached, "the second's look")
	close(looked.open)
	enqIs(t, <-secondDone, beeyard.ErrExists)
}

// enqLocked asks whether somebody holds the queue's lock.
func enqLocked(t *testing.T, r *Run) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	unlock, err := r.root.Lock(ctx, fileQueueLock)
	if err == nil {
		unlock()
	} else if !errors.Is(err, durable.ErrLocked) {
		t.Fatal(err)
	}
	return err != nil
}
