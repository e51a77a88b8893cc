package spool

import (
	"path/filepath"
	"syscall"
	"testing"

	"beeyard"
	"beeyard/internal/durable"
)

// Case-insensitive names: no new id equals an existing one after folding.
func TestFold(t *testing.T) {
	for _, pair := range [][2]string{{"Task-A", "task-a"}, {"task-a", "Task-A"}, {"TASK-a", "Task-A"}} {
		for _, o := range []beeyard.EnqueueOptions{{}, {IfAbsent: true}, {Replace: true}} {
			r := enqRun(t, Options{})
			enqueueOne(t, r, enqTask(pair[0]))
			_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask(pair[1])}, o)
			enqIs(t, err, beeyard.ErrExists)
			// Another process, and a task that has moved on, make no difference.
			enqFinish(t, r, pair[0], beeyard.PlaceDone, beeyard.OutcomeDone)
			other := enqOpen(t, r.path, Options{})
			_, err = other.Enqueue(enqContext(t), append(enqTasks("n", 30), enqTask(pair[1])), o)
			enqIs(t, err, beeyard.ErrExists)
			enqNames(t, r, filepath.Join(dirMeta, dirFolded))
		}
		r := enqRun(t, Options{})
		_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask(pair[0]), enqTask(pair[1])}, beeyard.EnqueueOptions{IfAbsent: true})
		enqIs(t, err, beeyard.ErrExists)
	}
}

// A crash between a mark and its task leaves a mark that stands for nothing.
func TestFoldMarkOfNothing(t *testing.T) {
	log := &enqLog{}
	r := enqRun(t, Options{Wrap: log.wrap})
	log.failWith(func(op durable.Op) error {
		if op.Op == durable.OpRenameExcl {
			return syscall.EIO
		}
		return nil
	})
	_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("Task-A")}, beeyard.EnqueueOptions{})
	enqIs(t, err, syscall.EIO)
	log.failWith(nil)
	if names := enqNames(t, r, filepath.Join(dirMeta, dirFolded)); len(names) != 1 {
		t.Fatalf("folded/ holds %v", names)
	}
	enqueueOne(t, r, enqTask("task-a"))
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("Task-A")}, beeyard.EnqueueOptions{})
	enqIs(t, err, beeyard.ErrExists)
}

// The mark is durable before the name that it guards.
func TestFoldMarkComesFirst(t *testing.T) {
	log := &enqLog{}
	r := enqRun(t, Options{Wrap: log.wrap})
	enqueueOne(t, r, enqTask("Task-A")) // makes the folder, which is flushed too
	log.failWith(nil)
	enqueueOne(t, r, enqTask("Task-B"))
	mark := log.index(func(op durable.Op) bool { return op.Op == durable.OpRename && op.NewName == "task-b" })
	flushed := log.index(func(op durable.Op) bool { return op.Op == durable.OpSyncDir && filepath.Base(op.Dir) == dirFolded })
	name := log.index(func(op durable.Op) bool { return op.Op == durable.OpRenameExcl && op.NewName == "Task-B.json" })
	if mark < 0 || flushed < mark || name < flushed {
		t.Errorf("mark at step %d, its flush at %d, the name at %d", mark, flushed, name)
	}
}
