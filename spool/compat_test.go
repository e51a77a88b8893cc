package spool

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

func compatEnqueue(t testing.TB, r *Run, id string, deps ...string) {
	t.Helper()
	enqMust(t, r.Compat().Enqueue(enqContext(t), enqTask(id, deps...), nil))
}

func compatClaim(t testing.TB, r *Run, worker, want string) *beeyard.Task {
	t.Helper()
	task, err := r.Compat().Claim(enqContext(t), worker, nil)
	enqMust(t, err)
	switch {
	case want == "" && task != nil:
		t.Fatalf("claimed %s, want nothing", task.ID)
	case want != "" && (task == nil || task.ID != want):
		t.Fatalf("claimed %+v, want %s", task, want)
	}
	return task
}

func compatDone(t testing.TB, r *Run, worker, id string) {
	t.Helper()
	enqMust(t, r.Compat().Complete(enqContext(t), worker, id, true))
}

// A re-enqueue is told by its created_at, so that of each life is later than
// those before, whatever the clock says.
func TestCompatEnqueueWithAClockThatStands(t *testing.T) {
	dir := coreRun(t, Options{}).path
	r, err := Open(dir, Options{Host: coreHost()}, clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	enqMust(t, err)
	defer func() { enqMust(t, r.Close()) }()
	for _, want := range []string{"2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.000002Z"} {
		compatEnqueue(t, r, "x")
		if task := compatClaim(t, r, "w", "x"); task.CreatedAt != want {
			t.Errorf("created_at is %s, want %s", task.CreatedAt, want)
		}
		compatDone(t, r, "w", "x")
		compatClaim(t, r, "w", "")
	}
	last, _, err := readTask(r.done, "x.json", "x")
	enqMust(t, err)
	if last.CreatedAt != "2026-01-02T03:04:05.000002Z" {
		t.Errorf("done/ holds the life of %s", last.CreatedAt)
	}
	if kept := enqNames(t, r, dirQuarantine); len(kept) != 2 {
		t.Errorf("quarantine/ keeps %v, want the two earlier lives", kept)
	}
	enqNames(t, r, dirPending)
}

// Enqueue holds .queue.lock over its look and its rename; what touches
// status.json holds .status.lock.
func TestCompatLocks(t *testing.T) {
	r := coreRun(t, Options{}, "x")
	compatClaim(t, r, "w", "x")
	for name, c := range map[string]struct {
		lock func() (func(), error)
		do   func(ctx context.Context, c *Compat) error
	}{
		"enqueue": {func() (func(), error) { return r.lockQueue(enqContext(t)) },
			func(ctx context.Context, c *Compat) error { return c.Enqueue(ctx, enqTask("y"), nil) }},
		"status-init": {func() (func(), error) { return r.lockStatus(enqContext(t)) },
			func(ctx context.Context, c *Compat) error { return c.InitStatus(ctx, "run", OlderStatus{}) }},
		"status-write": {func() (func(), error) { return r.lockStatus(enqContext(t)) },
			func(ctx context.Context, c *Compat) error { return c.WriteStatus(ctx, OlderStatus{Summary: "s"}) }},
		"complete": {func() (func(), error) { return r.lockStatus(enqContext(t)) },
			func(ctx context.Context, c *Compat) error { return c.Complete(ctx, "w", "x", true) }},
	} {
		t.Run(name, func(t *testing.T) {
			asked := newEnqGate(func(op durable.Op) bool { return op.Op == durable.OpLock })
			close(asked.open)
			other := enqOpen(t, r.path, Options{Host: coreHost(), Wrap: asked.wrap})
			unlock, err := c.lock()
			enqMust(t, err)
			done := make(chan error, 1)
			go func() { done <- c.do(enqContext(t), other.Compat()) }()
			enqHear(t, asked.reached, "the lock")
			if there, _ := r.pending.Exists("y.json"); there && name == "enqueue" {
				t.Error("it was published without the lock")
			}
			select {
			case err := <-done:
				t.Errorf("it ended without the lock: %v", err)
			default:
			}
			unlock()
			enqMust(t, <-done)
		})
	}
}

// What is answered is durable: data before its name, names before the answer,
// output and done/ before completed_tasks.
func TestCompatFlushes(t *testing.T) {
	var log enqLog
	r := coreRun(t, Options{Wrap: log.wrap})
	order := func(what string, steps ...func(durable.Op) bool) {
		t.Helper()
		last := -1
		for i, is := range steps {
			at := log.index(func(op durable.Op) bool { return is(op) })
			if at <= last {
				t.Errorf("%s: step %d is operation %d, after %d", what, i+1, at, last)
			}
			last = at
		}
	}
	in := func(dir, op, name string) func(durable.Op) bool {
		return func(o durable.Op) bool {
			return filepath.Base(o.Dir) == dir && o.Op == op && (name == "" || o.Name == name || o.NewName == name)
		}
	}
	log.failWith(nil)
	compatEnqueue(t, r, "x")
	order("enqueue", in("pending", durable.OpSync, ""), in("pending", durable.OpRename, "x.json"), in("pending", durable.OpSyncDir, ""))
	compatClaim(t, r, "w", "x")
	enqMust(t, os.WriteFile(filepath.Join(r.path, dirArtifacts, "x.md"), []byte("output"), 0o600))
	log.failWith(nil)
	compatDone(t, r, "w", "x")
	order("complete", in("artifacts", durable.OpSync, ""), in("artifacts", durable.OpSyncDir, ""), in("w", durable.OpRenameExcl, "x.json"),
		in("done", durable.OpSyncDir, ""), in(filepath.Base(r.path), durable.OpRename, fileStatus))
}

// A full disk: nothing is enqueued, no half file stays.
func TestCompatEnqueueDiskFull(t *testing.T) {
	var log enqLog
	r := coreRun(t, Options{Wrap: log.wrap})
	compatEnqueue(t, r, "x")
	before, _, err := readTask(r.pending, "x.json", "x")
	enqMust(t, err)
	for _, bad := range []string{durable.OpCreate, durable.OpWrite, durable.OpSync, durable.OpRename} {
		log.failWith(func(op durable.Op) error {
			if op.Op == bad && filepath.Base(op.Dir) == dirPending {
				return syscall.ENOSPC
			}
			return nil
		})
		enqIs(t, r.Compat().Enqueue(enqContext(t), enqTask("x"), nil), syscall.ENOSPC)
		log.failWith(nil)
		if names := enqNames(t, r, dirPending); len(names) != 1 {
			t.Errorf("%s fails: pending/ holds %v", bad, names)
		}
		if now, _, err := readTask(r.pending, "x.json", "x"); err != nil || now.CreatedAt != before.CreatedAt {
			t.Errorf("%s fails: pending/x.json is %+v (%v)", bad, now, err)
		}
	}
}

// A claim runs the body that it took, not the one that it read before: an
// enqueue came in between.
func TestCompatClaimRunsWhatItTook(t *testing.T) {
	for name, body := range map[string]string{
		"ready":   `{"task_id": "x", "task_type": "new", "created_at": "2026-01-01T00:00:00Z"}`,
		"blocked": `{"task_id": "x", "task_type": "new", "created_at": "2026-01-01T00:00:00Z", "depends_on": ["nothing"]}`,
		"no task": `{`,
	} {
		var log enqLog
		r := coreRun(t, Options{Wrap: log.wrap}, "x")
		log.failWith(func(op durable.Op) error {
			if op.Op == durable.OpRenameExcl && op.Name == "x.json" && filepath.Base(op.Dir) == dirPending {
				temp := filepath.Join(r.path, "temp")
				return errors.Join(os.WriteFile(temp, []byte(body), 0o600), os.Rename(temp, filepath.Join(r.path, dirPending, "x.json")))
			}
			return nil
		})
		if name == "ready" {
			if task := compatClaim(t, r, "w", "x"); task.Type != "new" {
				t.Errorf("%s: claimed the body of type %s", name, task.Type)
			}
			continue
		}
		compatClaim(t, r, "w", "")
		data, err := os.ReadFile(filepath.Join(r.path, dirPending, "x.json"))
		if err != nil || string(data) != body {
			t.Errorf("%s: pending/x.json is %q (%v)", name, data, err)
		}
	}
}

// Many claim at once, workers of one id too: each task goes to one of them. On
// a network file system the claim is another system call.
func TestCompatClaimsRace(t *testing.T) {
	for _, networked := range []bool{false, true} {
		r := coreRun(t, Options{})
		const n = 40
		for _, task := range enqTasks("t", n) {
			enqMust(t, r.Compat().Enqueue(enqContext(t), task, nil))
		}
		var mu sync.Mutex
		got := map[string]int{}
		var wg sync.WaitGroup
		for _, worker := range []string{"a", "b", "same", "same"} {
			own := enqOpen(t, r.path, Options{Host: coreHost()})
			own.netOnce.Do(func() { own.net = networked })
			wg.Go(func() {
				for {
					task, err := own.Compat().Claim(context.Background(), worker, nil)
					if err != nil {
						t.Error(err)
					}
					if task == nil {
						return
					}
					mu.Lock()
					got[task.ID]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for id, times := range got {
			if times != 1 {
				t.Errorf("%s was claimed %d times", id, times)
			}
		}
		if len(got) != n {
			t.Errorf("%d tasks were claimed, of %d", len(got), n)
		}
	}
}

// A copy that a power cut left is not run again, and a task that has ended
// otherwise is not completed again.
func TestCompatLeftovers(t *testing.T) {
	r := coreRun(t, Options{})
	compatEnqueue(t, r, "x")
	body, err := os.ReadFile(filepath.Join(r.path, dirPending, "x.json"))
	enqMust(t, err)
	compatClaim(t, r, "w", "x")
	compatDone(t, r, "w", "x")
	enqMust(t, os.WriteFile(filepath.Join(r.path, dirPending, "x.json"), body, 0o600))
	compatClaim(t, r, "w", "")
	if names := enqNames(t, r, dirPending); len(names) != 0 {
		t.Errorf("pending/ holds %v", names)
	}
	enqMust(t, os.WriteFile(filepath.Join(r.path, dirClaimed, "w", "x.json"), body, 0o600))
	enqIs(t, r.Compat().Complete(enqContext(t), "w", "x", false), beeyard.ErrClaimLost)
	if coreState(t, r, "x") != beeyard.StateDone || len(enqNames(t, r, dirFailed)) != 0 || len(enqNames(t, r, dirQuarantine)) != 1 {
		t.Error("a copy of a task that is done was moved to failed/")
	}
	enqMust(t, os.WriteFile(filepath.Join(r.path, dirClaimed, "w", "x.json"), body, 0o600))
	rep, err := r.Compat().Reap(enqContext(t), 0)
	enqMust(t, err)
	if len(rep.Reaped) != 0 || len(enqNames(t, r, dirPending)) != 0 {
		t.Errorf("a copy of a task that is done was put back: %+v", rep)
	}
}

// What is no task in done/ does not keep a task from it; what is no task in
// pending/ does not stop the queue.
func TestCompatStrangeFiles(t *testing.T) {
	r := coreRun(t, Options{}, "b")
	at := func(parts ...string) string { return filepath.Join(append([]string{r.path}, parts...)...) }
	enqMust(t, os.WriteFile(at(dirPending, "a.json"), []byte("{"), 0o600))
	enqMust(t, os.Mkdir(at(dirPending, "aa.json"), 0o700))
	enqMust(t, syscall.Mkfifo(at(dirPending, "aaa.json"), 0o600))
	enqMust(t, os.Symlink("nowhere", at(dirPending, "aaaa.json")))
	compatClaim(t, r, "w", "b")
	enqMust(t, os.WriteFile(at(dirDone, "b.json"), []byte("{"), 0o600))
	compatDone(t, r, "w", "b")
	if coreState(t, r, "b") != beeyard.StateDone || len(enqNames(t, r, dirQuarantine)) != 1 {
		t.Error("what was in done/ was not set aside")
	}
}

func TestCompatGiveBackAndLeave(t *testing.T) {
	r := coreRun(t, Options{})
	c := r.Compat()
	ctx := enqContext(t)
	compatEnqueue(t, r, "x")
	enqMust(t, c.Heartbeat(ctx, "w", "busy"))
	compatClaim(t, r, "w", "x")
	enqMust(t, c.Leave(ctx, "w"))
	if there, _ := r.claimed.Exists("w"); !there {
		t.Fatal("the folder went")
	}
	d, err := r.claimed.OpenDir("w")
	enqMust(t, err)
	defer d.Close()
	if there, _ := d.Exists(fileBeat); !there {
		t.Error("a second worker of the id lost its beat")
	}
	enqMust(t, c.GiveBack(ctx, "w", "x"))
	compatClaim(t, r, "w", "x")
	compatEnqueue(t, r, "x")
	enqMust(t, c.GiveBack(ctx, "w", "x"))
	if len(enqNames(t, r, dirQuarantine)) != 1 || len(enqNames(t, r, dirPending)) != 1 {
		t.Error("the life that was given back is not kept beside the newer one")
	}
	enqMust(t, c.Leave(ctx, "w"))
	for _, name := range []string{fileBeat, fileBeatNote} {
		if there, _ := d.Exists(name); there {
			t.Errorf("%s stays after a clean end", name)
		}
	}
	enqMust(t, c.Leave(ctx, "never-came"))
}

// A beat from the future counts as one that does not change.
func TestCompatReapBeatOfTheFuture(t *testing.T) {
	r := coreRun(t, Options{})
	compatEnqueue(t, r, "x")
	enqMust(t, r.Compat().Heartbeat(enqContext(t), "w", ""))
	compatClaim(t, r, "w", "x")
	future := time.Now().Add(24 * time.Hour)
	enqMust(t, os.Chtimes(filepath.Join(r.path, dirClaimed, "w", fileBeat), future, future))
	fake := clock.NewFake(time.Now())
	other, err := Open(r.path, Options{Host: coreHost()}, fake)
	enqMust(t, err)
	defer func() { enqMust(t, other.Close()) }()
	for i, want := range []int{0, 0, 1} {
		rep, err := other.Compat().Reap(enqContext(t), time.Minute)
		enqMust(t, err)
		if len(rep.Reaped) != want {
			t.Errorf("round %d reaped %+v", i+1, rep)
		}
		fake.Advance(40 * time.Second)
	}
}

// Follow-ups of the compatibility enqueue.
func TestCompatFollowUps(t *testing.T) {
	r := coreRun(t, Options{}, "a", "b")
	c := r.Compat()
	ctx := enqContext(t)
	w := coreAttach(t, r, "bee")
	claim := coreClaim(t, w, "a")
	ref := claim.Ref()
	ask := func(id, payload string) error {
		return c.Enqueue(ctx, &beeyard.Task{ID: id, Type: "t", Payload: json.RawMessage(payload)}, &ref)
	}
	enqMust(t, ask("n1", "1"))
	enqMust(t, ask("n2", "1"))
	enqMust(t, ask("n1", "2"))
	enqIs(t, ask("b", "1"), beeyard.ErrExists)
	enqIs(t, ask("a", "1"), beeyard.ErrExists)
	if names := enqNames(t, r, dirPending); strings.Contains(strings.Join(names, " "), "n1") {
		t.Errorf("a follow-up came before the decision: %v", names)
	}
	follows, err := w.FollowUps(ctx, claim)
	enqMust(t, err)
	done, err := w.Settle(ctx, ref, beeyard.Settlement{Outcome: beeyard.OutcomeDone, FollowUps: follows})
	enqMust(t, err)
	if len(done.Published) != 2 {
		t.Errorf("published %v", done.Published)
	}
	n1, _, err := readTask(r.pending, "n1.json", "n1")
	enqMust(t, err)
	if string(n1.Payload) != "2" {
		t.Errorf("the payload of n1 is %s, want the later one", n1.Payload)
	}
	enqIs(t, ask("n3", "1"), beeyard.ErrClaimLost)
}

// A command never takes the folder of a claim with a token for a worker's.
func TestCompatRefusesFoldersOfTokens(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	claim := coreClaim(t, coreAttach(t, r, "bee"), "a")
	worker := claim.Token.Dir()
	enqIs(t, r.Compat().Complete(enqContext(t), worker, "a", true), beeyard.ErrUsage)
	enqIs(t, r.Compat().Heartbeat(enqContext(t), worker, ""), beeyard.ErrUsage)
	_, err := r.Compat().Claim(enqContext(t), worker, nil)
	enqIs(t, err, beeyard.ErrUsage)
	enqIs(t, r.Compat().Complete(enqContext(t), "bee", "a", true), beeyard.ErrClaimLost)
	enqIs(t, r.Compat().CompleteWith(enqContext(t), "other", claim.Ref(), true), beeyard.ErrClaimLost)
	if coreState(t, r, "a") != beeyard.StateClaimed {
		t.Error("the claim is gone")
	}
	enqMust(t, r.Compat().CompleteWith(enqContext(t), "bee", claim.Ref(), false))
	if coreState(t, r, "a") != beeyard.StateFailed {
		t.Error("a failure of an older command is not final")
	}
}

// A run that is drained by older commands alone: a task that has come due is
// promoted by their claim, and not before.
func TestCompatClaimPromotes(t *testing.T) {
	fake := clock.NewFake(time.Now())
	r, err := Open(coreRun(t, Options{}).path, Options{Host: coreHost()}, fake)
	enqMust(t, err)
	defer func() { enqMust(t, r.Close()) }()
	later := enqTask("later")
	later.Ext.NotBefore = beeyard.FormatTime(fake.Now().Add(time.Hour))
	enqueueOne(t, r, later)
	compatClaim(t, r, "w", "")
	fake.Advance(2 * time.Hour)
	compatClaim(t, r, "w", "later")
}
