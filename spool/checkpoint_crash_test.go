package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

func init() { testChildren["chk-die"] = chkChildDie }

// chkChildDie settles a task as a worker and kills itself between the rename
// to done/ and the write of status.json.
func chkChildDie(args []string) error {
	ctx := context.Background()
	r, err := Open(args[0], Options{Wrap: func(d durable.Dir) durable.Dir {
		return durable.Hooked(d, func(op durable.Op) error {
			if op.Op == durable.OpLock && op.Name == fileStatusLock {
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return nil
		})
	}}, clock.Real())
	if err != nil {
		return err
	}
	d, err := r.newClaimDir(ctx, "w", beeyard.KindProcess)
	if err != nil {
		return err
	}
	t, _, err := r.take(ctx, d, "t1")
	if err != nil {
		return err
	}
	_, err = r.Settle(ctx, beeyard.Ref{TaskID: "t1", Token: d.token(t.Ext.Rev)}, beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	return fmt.Errorf("still alive after the settle: %w", err)
}

// Fault "Crash between move and index".
func TestCrashBetweenMoveAndIndex(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	chkPut(t, r.pending, "t1")
	chkMust(t, durable.WriteFile(r.pending, "t2.json", chkBody(t, "t2", "t1"), fileMode))
	err := chkChild(t, "chk-die", r.path).Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v", err)
	}
	chkListed(t, r)
	if there, err := r.done.Exists("t1.json"); err != nil || !there {
		t.Fatalf("t1 is not in done/: %v", err)
	}
	// Who only looks sees it at once.
	c, err := r.Checkpoint(ctx)
	chkMust(t, err)
	if !slices.Equal(c.CompletedTasks, []string{"t1"}) {
		t.Errorf("completed tasks %q", c.CompletedTasks)
	}
	next := chkOpen(t, r.path, Options{}, clock.Real())
	w, err := next.Attach(ctx, beeyard.WorkerSpec{ID: "w"})
	chkMust(t, err)
	defer func() { chkMust(t, w.Close(ctx)) }()
	chkListed(t, r, "t1") // once, and before the worker does anything
	body, _, err := readTask(next.pending, "t2.json", "t2")
	chkMust(t, err)
	if v := beeyard.Judge(body, beeyard.PlacePending, time.Now(), next.newDeps(ctx).dep); v.State != beeyard.StateReady {
		t.Errorf("the dependant is %s: %+v", v.State, v.Reasons)
	}
	chkMust(t, next.reconcile(ctx))
	chkMust(t, next.completedNow(ctx, "t1"))
	chkListed(t, r, "t1")
}

// Behind done/: added. Ahead of it: reported, and kept.
func TestCheckpointReconcileBehindAndAhead(t *testing.T) {
	var warned chkWarnings
	var hook chkHook
	o := hook.options()
	o.Warn = warned.warn
	r := chkRun(t, o)
	ctx := chkContext(t)
	lists := 0
	hook.set(func(op durable.Op) error {
		if op.Op == durable.OpEach && op.Dir == r.path+"/done" {
			lists++
		}
		return nil
	})
	defer hook.set(nil)
	chkPut(t, r.done, "b", "a")
	chkMust(t, os.WriteFile(r.path+"/done/no-task.txt", nil, 0o600))
	chkMust(t, os.Mkdir(r.path+"/done/folder.json", 0o700))
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"checkpoint":{"completed_tasks":["ghost","b","b"]}}`), 0o600))
	chkMust(t, r.reconcile(ctx))
	chkListed(t, r, "ghost", "b", "a")
	if warned.has(`"ghost"`) != 1 {
		t.Errorf("the id that is ahead was not reported: %q", warned.said)
	}
	// Nothing changed: after one more look, for the file system's tick, done/ is not listed again.
	chkMust(t, r.reconcile(ctx))
	before := lists
	for range 5 {
		chkMust(t, r.reconcile(ctx))
	}
	if lists != before {
		t.Errorf("done/ was listed %d times though nothing changed", lists-before)
	}
	// An older program that makes the file anew changes done/ in no way.
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"checkpoint":{"summary":"Initialized","completed_tasks":[]}}`), 0o600))
	chkMust(t, r.reconcile(ctx))
	chkListed(t, r, "a", "b")
	// Nor does it when we have written on top of that.
	chkMust(t, r.reconcile(ctx))
	chkMust(t, r.reconcile(ctx))
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"checkpoint":{"completed_tasks":[]}}`), 0o600))
	chkMust(t, r.failureRisk(ctx, "f", "exit 1"))
	chkMust(t, r.flushOwed(ctx))
	chkListed(t, r)
	chkMust(t, r.reconcile(ctx))
	chkMust(t, r.completedNow(ctx, "b"))
	chkListed(t, r, "a", "b")
	// An id that was listed once and is not any more is added again.
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"checkpoint":{"completed_tasks":[]}}`), 0o600))
	chkMust(t, r.completedNow(ctx, "b"))
	chkListed(t, r, "b")
}

// The times of a folder move in ticks: a change in the tick of the last look
// leaves them as they were.
func TestCheckpointReconcileSeesWhatCameInTheSameTick(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	chkMust(t, r.reconcile(ctx))
	chkPut(t, r.done, "a")
	info, err := r.done.Info()
	chkMust(t, err)
	r.chk.mu.Lock()
	r.chk.rec.done = info // as if it had been so then
	r.chk.mu.Unlock()
	chkMust(t, r.reconcile(ctx))
	chkListed(t, r, "a")
}

// A retry of a done task takes it off the list before it leaves done/, and
// nobody puts it back in between.
func TestRetryOfADoneTaskIsNeverAhead(t *testing.T) {
	var hook chkHook
	r := chkRun(t, hook.options())
	ctx := chkContext(t)
	chkPut(t, r.done, "x", "y")
	chkMust(t, r.completedNow(ctx, "x", "y"))
	moved := false
	hook.set(func(op durable.Op) error {
		if op.Op == durable.OpRename && op.Dir == r.path+"/done" {
			moved = true
			chkListed(t, r, "y")
			early, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if err := r.completedNow(early, "x"); err == nil {
				t.Error("a fold came between the list and the move")
			}
		}
		return nil
	})
	chkMust(t, r.Retry(ctx, "x", beeyard.RetryOptions{}))
	hook.set(nil)
	if !moved {
		t.Error("it was not moved out of done/")
	}
	chkMust(t, r.flushOwed(ctx))
	chkListed(t, r, "y")
}

// What was archived or pruned has run: that is not ahead.
func TestCheckpointReconcileKnowsThePruned(t *testing.T) {
	var warned chkWarnings
	r := chkRun(t, Options{Warn: warned.warn})
	ctx := chkContext(t)
	chkPut(t, r.done, "a", "b", "c")
	chkMust(t, r.completedNow(ctx, "a"))
	_, err := r.Prune(ctx, beeyard.PruneOptions{IDs: []string{"a"}})
	chkMust(t, err)
	_, err = r.Prune(ctx, beeyard.PruneOptions{IDs: []string{"b"}, Delete: true})
	chkMust(t, err)
	chkMust(t, r.reconcile(ctx))
	chkListed(t, r, "a", "b", "c")
	if len(warned.said) > 0 {
		t.Errorf("warned of %q", warned.said)
	}
}

// A temporary name may be another writer's who is at it right now.
func TestCheckpointReconcileLeavesYoungTemps(t *testing.T) {
	r := chkRun(t, Options{})
	temp := r.path + "/" + durable.TempName(fileStatus)
	chkMust(t, os.WriteFile(temp, []byte("{"), 0o600))
	chkMust(t, r.reconcile(chkContext(t)))
	if _, err := os.Stat(temp); err != nil {
		t.Errorf("a file that may still be written was removed: %v", err)
	}
}
