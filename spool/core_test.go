package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// coreHost is a machine of this boot, on which nobody is stopped.
func coreHost() Host { return Host{Boot: "boot-1", Name: "host", PID: os.Getpid(), Start: 1} }

// coreRun makes a run with the tasks named.
func coreRun(t testing.TB, o Options, ids ...string) *Run {
	t.Helper()
	if o.Host.Boot == "" {
		o.Host = coreHost()
	}
	r := enqRun(t, o)
	coreEnqueue(t, r, ids...)
	return r
}

func coreEnqueue(t testing.TB, r *Run, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := r.Enqueue(enqContext(t), []*beeyard.Task{{ID: id, Type: "t"}}, beeyard.EnqueueOptions{})
		enqMust(t, err)
	}
}

func coreAttach(t testing.TB, r *Run, id string) beeyard.Worker {
	t.Helper()
	w, err := r.Attach(enqContext(t), beeyard.WorkerSpec{ID: id})
	enqMust(t, err)
	t.Cleanup(func() { enqMust(t, w.Close(context.Background())) })
	return w
}

func coreClaim(t testing.TB, w beeyard.Worker, want string) *beeyard.Claim {
	t.Helper()
	c, err := w.Claim(enqContext(t), beeyard.Filter{})
	enqMust(t, err)
	switch {
	case want == "" && c != nil:
		t.Fatalf("claimed %s, want nothing", c.Task.ID)
	case want != "" && (c == nil || c.Task.ID != want):
		t.Fatalf("claimed %v, want %s", c, want)
	}
	return c
}

func coreState(t testing.TB, r *Run, id string) beeyard.State {
	t.Helper()
	v, err := r.Get(enqContext(t), id)
	enqMust(t, err)
	return v.State
}

// coreBody reads the one body of an id wherever it is, and fails if there are two.
func coreBody(t testing.TB, r *Run, id string) (found, bool) {
	t.Helper()
	all, err := r.lookup(enqContext(t), id, true, false)
	enqMust(t, err)
	if len(all) > 1 {
		t.Fatalf("%s is in %d places: %+v", id, len(all), all)
	}
	if len(all) == 0 {
		return found{}, false
	}
	return all[0], true
}

// coreLeft lists what is in the claim directories beside beats.
func coreLeft(t testing.TB, r *Run) []string {
	t.Helper()
	var left []string
	err := r.eachClaimDir(enqContext(t), func(name string, dir durable.Dir) (bool, error) {
		return true, dir.Each(func(e durable.Entry) bool {
			if e.Name != fileBeat && e.Name != fileBeatNote {
				left = append(left, name+"/"+e.Name)
			}
			return true
		})
	})
	enqMust(t, err)
	return left
}

func TestLifeOfATask(t *testing.T) {
	r := coreRun(t, Options{}, "a", "b")
	w := coreAttach(t, r, "w1")
	ctx := enqContext(t)
	c := coreClaim(t, w, "a")
	if got := coreState(t, r, "a"); got != beeyard.StateClaimed {
		t.Fatalf("state %s", got)
	}
	enqMust(t, os.WriteFile(c.ArtifactPath, []byte("# out\n"), 0o600))
	art, err := w.StagedArtifact(ctx, c)
	enqMust(t, err)
	got, err := w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone, Artifact: art})
	enqMust(t, err)
	if got.State != beeyard.StateDone || got.Attempt != 1 || got.Rev != 1 {
		t.Fatalf("settled %+v", got)
	}
	data, err := os.ReadFile(filepath.Join(r.path, "artifacts", "a.md"))
	if err != nil || string(data) != "# out\n" {
		t.Fatalf("artifact %q, %v", data, err)
	}
	c = coreClaim(t, w, "b")
	got, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeRetry, Reason: "exit 3"})
	enqMust(t, err)
	if got.State != beeyard.StateWaiting || got.Attempt != 1 || got.RetryAt == "" {
		t.Fatalf("settled %+v", got)
	}
	coreClaim(t, w, "")
	enqMust(t, r.Unhold(ctx, "b"))
	c = coreClaim(t, w, "b")
	if c.Token.Rev != 2 {
		t.Fatalf("rev %d: unhold is a settle too", c.Token.Rev)
	}
	_, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeRetry, Final: true})
	enqMust(t, err)
	if got := coreState(t, r, "b"); got != beeyard.StateFailed {
		t.Fatalf("state %s", got)
	}
	enqMust(t, r.Retry(ctx, "b", beeyard.RetryOptions{}))
	c = coreClaim(t, w, "b")
	_, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	enqMust(t, err)
	enqMust(t, w.Flush(ctx))
	cp, err := r.Checkpoint(ctx)
	enqMust(t, err)
	if strings.Join(cp.CompletedTasks, ",") != "a,b" {
		t.Fatalf("completed %v", cp.CompletedTasks)
	}
	if left := coreLeft(t, r); len(left) > 0 {
		t.Fatalf("left in claims: %v", left)
	}
	v, err := r.Get(ctx, "b")
	enqMust(t, err)
	var outs []string
	for _, a := range v.Task.Ext.Attempts {
		outs = append(outs, string(a.Outcome))
	}
	if strings.Join(outs, " ") != "retry unhold failed requeue done" {
		t.Fatalf("history %v", outs)
	}
}

func TestRetryOfADoneTaskLeavesTheList(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	w := coreAttach(t, r, "w1")
	ctx := enqContext(t)
	c := coreClaim(t, w, "a")
	_, err := w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	enqMust(t, err)
	enqMust(t, w.Flush(ctx))
	enqMust(t, r.Retry(ctx, "a", beeyard.RetryOptions{}))
	cp, err := r.Checkpoint(ctx)
	enqMust(t, err)
	if len(cp.CompletedTasks) != 0 {
		t.Fatalf("completed_tasks %v is ahead of done/", cp.CompletedTasks)
	}
	c = coreClaim(t, w, "a")
	_, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	enqMust(t, err)
}

func TestLateCompletionAfterReassignment(t *testing.T) {
	for _, second := range []string{"w2", "w1"} {
		t.Run("second worker is "+second, func(t *testing.T) {
			r := coreRun(t, Options{}, "a")
			ctx := enqContext(t)
			single := func(id string) beeyard.Worker {
				w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: id, Kind: beeyard.KindSingle})
				enqMust(t, err)
				t.Cleanup(func() { enqMust(t, w.Close(context.Background())) })
				return w
			}
			one := coreClaim(t, single("w1"), "a")
			enqMust(t, os.WriteFile(one.ArtifactPath, []byte("late"), 0o600))
			coreAge(t, r, one.Token.Dir(), time.Hour)
			rep, err := r.Reap(ctx, beeyard.ReapOptions{StaleAfter: time.Nanosecond})
			enqMust(t, err)
			if len(rep.Reaped) != 1 || rep.Reaped[0].Action != "requeued" {
				t.Fatalf("reap %+v", rep)
			}
			if got := coreArtifacts(t, r); got != "a~1.partial" {
				t.Fatalf("a reaped attempt's output is kept beside its log, got %q", got)
			}
			enqMust(t, os.WriteFile(one.ArtifactPath, []byte("later"), 0o600))
			two := coreClaim(t, single(second), "a")
			_, err = r.Settle(ctx, one.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
			if !errors.Is(err, beeyard.ErrClaimLost) {
				t.Fatalf("late settle: %v", err)
			}
			_, err = r.Settle(ctx, two.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeFailed, Final: true})
			enqMust(t, err)
			if got := coreState(t, r, "a"); got != beeyard.StateFailed {
				t.Fatalf("state %s: the second's settle counts", got)
			}
			got := coreArtifacts(t, r)
			if n := strings.Count(got, ".late-"); n != 1 || strings.HasPrefix(got, "a.md") || strings.Contains(got, " a.md") {
				t.Fatalf("late output: %q", got)
			}
		})
	}
}

func coreArtifacts(t testing.TB, r *Run) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.path, "artifacts"))
	enqMust(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// coreAge makes a directory's beat old. The claim's own ctime cannot be set,
// so tests reap with a limit below its age.
func coreAge(t testing.TB, r *Run, dir string, by time.Duration) {
	t.Helper()
	old := time.Now().Add(-by)
	enqMust(t, os.Chtimes(filepath.Join(r.path, "claimed", dir, fileBeat), old, old))
}

func TestSettleTwiceAnswersTheSame(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	ctx := enqContext(t)
	w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "w1", Kind: beeyard.KindSingle})
	enqMust(t, err)
	defer w.Close(ctx)
	c := coreClaim(t, w, "a")
	first, err := r.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	enqMust(t, err)
	again, err := r.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	enqMust(t, err)
	if again.Rev != first.Rev || again.State != first.State {
		t.Fatalf("%+v, then %+v", first, again)
	}
	if _, err := r.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeFailed}); !errors.Is(err, beeyard.ErrClaimLost) {
		t.Fatalf("another outcome after the end: %v", err)
	}
}

func TestWorkerIDIsOneProcess(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	coreAttach(t, r, "w1")
	other, err := Open(r.path, Options{Host: coreHost()}, clock.Real())
	enqMust(t, err)
	defer other.Close()
	if _, err := other.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w1"}); !errors.Is(err, beeyard.ErrWorkerLive) {
		t.Fatalf("second worker of the id: %v", err)
	}
}

// A lock that a dead worker's child still holds for an instant is no life.
func TestLockOfADeadWorkerIsWaitedFor(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	d, err := r.newClaimDir(enqContext(t), "w1", beeyard.KindProcess)
	enqMust(t, err)
	host := coreHost()
	asked := 0
	host.Gone = func(int, uint64) bool {
		if asked++; asked == 3 {
			enqMust(t, d.close()) // the child execs
		}
		return true
	}
	other := enqOpen(t, r.path, Options{Host: host})
	w, err := other.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w1"})
	enqMust(t, err)
	enqMust(t, w.Close(context.Background()))
	if asked < 3 {
		t.Fatalf("asked %d times", asked)
	}
}

func TestTakeBackAfterDeathCostsOneAttempt(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	ctx := enqContext(t)
	w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "w1"})
	enqMust(t, err)
	coreClaim(t, w, "a")
	enqMust(t, w.Close(ctx)) // gone with its claim, as after kill -9
	for n := 1; n <= 3; n++ {
		next, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "w1"})
		enqMust(t, err)
		f, ok := coreBody(t, r, "a")
		if !ok || f.task.Ext.Attempt != n || f.task.Ext.Deaths != n {
			t.Fatalf("after %d deaths: %+v", n, f.task.Ext)
		}
		if n < 3 {
			coreClaim(t, next, "a")
		} else if f.place != beeyard.PlaceFailed || f.task.Ext.Reason != "worker died 3 times" {
			t.Fatalf("after 3 deaths in %s: %s", f.place, f.task.Ext.Reason)
		}
		enqMust(t, next.Close(ctx))
	}
}

func TestGroupOfSettles(t *testing.T) {
	const n = 40
	var ids []string
	for i := range n {
		ids = append(ids, "t"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	var count *durable.Counter
	r := coreRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
		c, n := durable.Counting(d)
		count = n
		return c
	}}, ids...)
	w := coreAttach(t, r, "w1")
	var claims []*beeyard.Claim
	for range n {
		c, err := w.Claim(enqContext(t), beeyard.Filter{})
		enqMust(t, err)
		claims = append(claims, c)
	}
	g := w.(*worker).group
	g.mu.Lock()
	g.leaders = groupLeaders // as if so many were at work: all that come now are one batch
	g.mu.Unlock()
	before := count.Syncs()
	errs := make(chan error, n)
	for _, c := range claims {
		go func() {
			_, err := w.Settle(context.Background(), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
			errs <- err
		}()
	}
	for {
		g.mu.Lock()
		if len(g.waiting) == n {
			g.handOver()
			g.mu.Unlock()
			break
		}
		g.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	for range n {
		enqMust(t, <-errs)
	}
	// Two for the group: the file system once for all records, done/ once. A fold
	// into status.json may come meanwhile with three or four of its own. One by
	// one they would be eighty.
	if syncs := count.Syncs() - before; syncs > 8 {
		t.Fatalf("%d settles took %d flushes", n, syncs)
	} else {
		t.Logf("MEASURED %d settles in one group: %d flushes, a fold of the checkpoint included", n, syncs)
	}
	for _, id := range ids {
		if got := coreState(t, r, id); got != beeyard.StateDone {
			t.Fatalf("%s is %s", id, got)
		}
	}
	if left := coreLeft(t, r); len(left) > 0 {
		t.Fatalf("left in claims: %v", left)
	}
}

func TestClaimRefusesAnUnknownSchema(t *testing.T) {
	r := coreRun(t, Options{}, "a")
	status := filepath.Join(r.path, fileStatus)
	data, err := os.ReadFile(status)
	enqMust(t, err)
	enqMust(t, os.WriteFile(status, []byte(strings.Replace(string(data), `"0.1"`, `"9.0"`, 1)), 0o600))
	other := enqOpen(t, r.path, Options{Host: coreHost()})
	for _, kind := range []beeyard.Kind{beeyard.KindSingle, beeyard.KindProcess} {
		if _, err := other.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w", Kind: kind}); !errors.Is(err, beeyard.ErrSchema) || !errors.Is(err, beeyard.ErrCorrupt) {
			t.Fatalf("%s: %v", kind, err)
		}
	}
}
