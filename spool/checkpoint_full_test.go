package spool

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Fault "Disk full", at each step of a write in turn: an error, the old state
// whole, nothing half done under a final name, and the next write succeeds.
func TestCheckpointDiskFullAtEveryStep(t *testing.T) {
	for _, op := range []string{durable.OpCreate, durable.OpWrite, durable.OpSync, durable.OpChmod, durable.OpRename, durable.OpSyncDir} {
		t.Run(op, func(t *testing.T) {
			var hook chkHook
			r := chkRun(t, hook.options())
			ctx := chkContext(t)
			chkPut(t, r.done, "a")
			before, err := os.ReadFile(chkStatusPath(r))
			chkMust(t, err)
			failed := 0
			hook.set(func(o durable.Op) error {
				if o.Op == op && o.Dir == r.path {
					failed++
					return syscall.ENOSPC
				}
				return nil
			})
			_, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("new")})
			chkIs(t, err, syscall.ENOSPC)
			chkIs(t, r.completedNow(ctx, "a"), syscall.ENOSPC)
			hook.set(nil)
			if failed == 0 {
				t.Fatal("the step never came")
			}
			after, err := os.ReadFile(chkStatusPath(r))
			chkMust(t, err)
			if op != durable.OpSyncDir && string(after) != string(before) {
				t.Errorf("the old state is not whole: %q", after)
			}
			chkRaw(t, r)
			chkNoTemps(t, r.path)
			chkMust(t, r.flushOwed(ctx)) // still owed
			chkListed(t, r, "a")
		})
	}
}

// After a flush of the folder that failed nobody knows what is on the disk: the
// next write is made even though it would change nothing.
func TestCheckpointWritesAgainAfterALostFlush(t *testing.T) {
	var hook chkHook
	r := chkRun(t, hook.options())
	ctx := chkContext(t)
	chkPut(t, r.done, "a")
	hook.set(func(op durable.Op) error {
		if op.Op == durable.OpSyncDir && op.Dir == r.path {
			return syscall.EIO
		}
		return nil
	})
	chkIs(t, r.completedNow(ctx, "a"), syscall.EIO)
	chkListed(t, r, "a")
	replaced := 0
	hook.set(func(op durable.Op) error {
		if chkIsReplace(op) {
			replaced++
		}
		return nil
	})
	chkMust(t, r.flushOwed(ctx))
	chkMust(t, r.completedNow(ctx, "a"))
	hook.set(nil)
	if replaced != 1 {
		t.Errorf("%d writes, want one and no more once that is flushed", replaced)
	}
}

// Fault "Disk full" on a disk that is full: 1 MB of it.
func TestCheckpointOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("SKIP: a small tmpfs cannot be mounted here (%v): only injected errors tell of a full disk", err)
	}
	t.Cleanup(func() { chkMust(t, syscall.Unmount(dir, 0)) })
	path := filepath.Join(dir, "run")
	first, err := Create(path, beeyard.Checkpoint{RunID: "named"}, Options{}, clock.Real())
	chkMust(t, err)
	chkMust(t, first.Close())
	r, err := Open(path, Options{}, clock.Real())
	chkMust(t, err)
	ctx := chkContext(t)
	chkPut(t, r.done, "a", "b")
	chkMust(t, r.completedNow(ctx, "a"))
	fill, err := os.Create(filepath.Join(dir, "fill"))
	chkMust(t, err)
	block := make([]byte, 4096)
	for err == nil {
		_, err = fill.Write(block)
	}
	chkIs(t, err, syscall.ENOSPC)
	chkMust(t, fill.Close())
	chkIs(t, r.completedNow(ctx, "b"), syscall.ENOSPC)
	_, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("new")})
	chkIs(t, err, syscall.ENOSPC)
	chkListed(t, r, "a")
	chkNoTemps(t, path)
	// A damaged one cannot be mended now, and stays what it is.
	chkMust(t, os.Truncate(chkStatusPath(r), 0))
	if _, err = r.Checkpoint(ctx); err == nil {
		t.Log("truncating gave room enough for the new one")
	} else {
		chkIs(t, err, syscall.ENOSPC)
	}
	chkMust(t, os.Remove(fill.Name()))
	chkMust(t, r.flushOwed(ctx))
	c, err := r.Checkpoint(ctx)
	chkMust(t, err)
	if !slices.Equal(c.CompletedTasks, []string{"a", "b"}) {
		t.Errorf("completed tasks %q once there was room", c.CompletedTasks)
	}
	chkMust(t, r.Close())
}
