package spool

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"beeyard"
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

// Canceled in the middle of writing: nothing is published, nothing is left.
func TestEnqueueCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(enqContext(t))
	stop := errors.New("stopped by the caller")
	n := 0
	r := enqRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
		return durable.Hooked(d, func(op durable.Op) error {
			if op.Op == durable.OpCreate && filepath.Base(op.Dir) == dirPending {
				if n++; n == 20 {
					cancel(stop)
				}
			}
			return nil
		})
	}})
	got, err := r.Enqueue(ctx, enqTasks("t", 50), beeyard.EnqueueOptions{})
	enqIs(t, err, stop)
	if names := enqNames(t, r, dirPending); len(names) != 0 || len(got) != 0 {
		t.Errorf("pending/ holds %v, answers %v", names, got)
	}
}

// "exists" answers for an enqueue that may not have flushed its names yet.
func TestEnqueueExistsIsDurable(t *testing.T) {
	for _, folder := range []string{dirPending, dirHeld} {
		log := &enqLog{}
		r := enqRun(t, Options{Wrap: log.wrap})
		task := enqTask("t1")
		if folder == dirHeld {
			task.Ext.Hold = &beeyard.Hold{}
		}
		enqueueOne(t, r, task)
		log.failWith(nil)
		_, err := r.Enqueue(enqContext(t), []*beeyard.Task{task}, beeyard.EnqueueOptions{IfAbsent: true})
		enqMust(t, err)
		if log.index(func(op durable.Op) bool { return op.Op == durable.OpSyncDir && filepath.Base(op.Dir) == folder }) < 0 {
			t.Errorf("%s/ was not flushed", folder)
		}
		if log.index(func(op durable.Op) bool { return op.Op == durable.OpCreate }) >= 0 {
			t.Error("a task that is there was written once more")
		}
	}
}
