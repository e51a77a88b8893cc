package spool

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Full and failing disks: an error, no half file, no temporary one, and the
// same call works once the disk does.
func TestEnqueueFailingDisk(t *testing.T) {
	inPending := func(op durable.Op, kind string) bool {
		return op.Op == kind && filepath.Base(op.Dir) == dirPending
	}
	for name, fault := range map[string]func(op durable.Op) error{
		"create": func(op durable.Op) error {
			if inPending(op, durable.OpCreate) {
				return syscall.ENOSPC
			}
			return nil
		},
		"write": func(op durable.Op) error {
			if inPending(op, durable.OpWrite) {
				return &durable.ShortWrite{N: 3, Err: syscall.ENOSPC}
			}
			return nil
		},
		"flush": func(op durable.Op) error {
			if op.Op == durable.OpSync || op.Op == durable.OpSyncFS {
				return syscall.EIO
			}
			return nil
		},
		"close": func(op durable.Op) error {
			if inPending(op, durable.OpClose) {
				return syscall.EDQUOT
			}
			return nil
		},
		"look": func(op durable.Op) error {
			if op.Op == durable.OpEach && filepath.Base(op.Dir) == dirClaimed {
				return syscall.EIO
			}
			return nil
		},
		"lock": func(op durable.Op) error {
			if op.Op == durable.OpLock {
				return syscall.EACCES
			}
			return nil
		},
		"publish": func(op durable.Op) error {
			if op.Op == durable.OpRenameExcl {
				return syscall.EIO
			}
			return nil
		},
	} {
		for _, n := range []int{1, 40} {
			log := &enqLog{}
			r := enqRun(t, Options{Wrap: log.wrap})
			tasks := enqTasks("t", n)
			log.failWith(fault)
			got, err := r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{})
			if err == nil || len(got) != 0 {
				t.Errorf("%s: answered %+v, %v", name, got, err)
			}
			log.failWith(nil)
			if names := enqNames(t, r, dirPending); len(names) != 0 {
				t.Errorf("%s: pending/ holds %v", name, names)
			}
			if got, err = r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{}); err != nil || len(got) != n {
				t.Errorf("%s: afterwards %d answers, %v", name, len(got), err)
			}
		}
	}
}

// A batch that fails in the middle says what was published; the same call with
// if-absent completes it.
func TestEnqueueBatchFailsInTheMiddle(t *testing.T) {
	log := &enqLog{}
	r := enqRun(t, Options{Wrap: log.wrap})
	tasks := enqTasks("t", 50)
	log.failWith(func(op durable.Op) error {
		if op.Op == durable.OpRenameExcl && op.NewName == "t00020.json" {
			return syscall.EIO
		}
		return nil
	})
	got, err := r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{})
	if !errors.Is(err, syscall.EIO) || len(got) != 20 {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	if log.index(func(op durable.Op) bool { return op.Op == durable.OpSyncDir && op.Dir == r.pending.Path() }) < 0 {
		t.Error("what was answered as enqueued was not flushed")
	}
	if names := enqNames(t, r, dirPending); len(names) != 20 {
		t.Errorf("pending/ holds %d names", len(names))
	}
	log.failWith(nil)
	got, err = r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{IfAbsent: true})
	enqMust(t, err)
	for i, e := range got {
		if want := map[bool]string{true: statusExists, false: statusEnqueued}[i < 20]; e.Status != want {
			t.Errorf("%s: %s, want %s", e.TaskID, e.Status, want)
		}
	}
	if len(got) != 50 || len(enqNames(t, r, dirPending)) != 50 {
		t.Errorf("%d answers, %d names", len(got), len(enqNames(t, r, dirPending)))
	}
}

// What could not be flushed is not answered as enqueued.
func TestEnqueueNamesNotFlushed(t *testing.T) {
	log := &enqLog{}
	r := enqRun(t, Options{Wrap: log.wrap})
	log.failWith(func(op durable.Op) error {
		if op.Op == durable.OpSyncDir && filepath.Base(op.Dir) == dirPending {
			return syscall.EIO
		}
		return nil
	})
	for _, o := range []beeyard.EnqueueOptions{{}, {IfAbsent: true}} {
		got, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("t1")}, o)
		if !errors.Is(err, syscall.EIO) || len(got) != 0 {
			t.Errorf("answered %+v, %v", got, err)
		}
	}
}

// An NFS server does the rename and its answer is lost.
func TestEnqueueRenameDoneAnswerLost(t *testing.T) {
	r := enqRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
		return durable.HookedAfter(d, func(op durable.Op, err error) error {
			if op.Op == durable.OpRenameExcl && err == nil {
				return syscall.EEXIST
			}
			return err
		})
	}})
	enqueueOne(t, r, enqTask("t1"))
	enqNames(t, r, dirPending)
}

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
