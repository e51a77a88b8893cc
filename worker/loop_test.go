package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/spool"
	"beeyard/worker"
)

// running starts a worker that goes on until it is stopped.
func running(t *testing.T, r beeyard.Run, cfg worker.Config) (w *worker.Worker, stop context.CancelFunc, ended chan error) {
	t.Helper()
	cfg.UntilEmpty = false
	w, err := worker.New(r, cfg, clock.Real())
	must(t, err)
	ctx, cancel := context.WithCancel(background(t))
	ended = make(chan error, 1)
	go func() {
		_, err := w.Run(ctx)
		ended <- err
	}()
	return w, cancel, ended
}

func waitEnd(t *testing.T, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(bound):
		t.Fatal("the worker did not end")
	}
}

func TestDrainHandsTasksBack(t *testing.T) {
	r := newRun(t, task("a"), task("b"))
	h := &heard{}
	cfg := config(script(t, `: > "$BEEYARD_RUN/started"; sleep 600; : > "$BEEYARD_RUN/ended"`), h)
	cfg.Drain = 200 * time.Millisecond
	_, stop, ended := running(t, r, cfg)
	until(t, "the handler starts", func() bool { _, err := os.Stat(filepath.Join(r.Location(), "started")); return err == nil })
	stop()
	waitEnd(t, ended)
	v := view(t, r, "a")
	if v.State != beeyard.StateReady || v.Task.Ext.Attempt != 0 || v.Task.Ext.Outcome != beeyard.OutcomeRelease {
		t.Fatalf("%s, attempt %d, %s", v.State, v.Task.Ext.Attempt, v.Task.Ext.Outcome)
	}
}

func TestDrainLetsHandlersEnd(t *testing.T) {
	r := newRun(t, task("a"), task("b"))
	cfg := config(script(t, `: > "$BEEYARD_RUN/started"; while [ ! -e "$BEEYARD_RUN/go" ]; do sleep 0.05; done`), &heard{})
	cfg.Drain = bound
	_, stop, ended := running(t, r, cfg)
	until(t, "the handler starts", func() bool { _, err := os.Stat(filepath.Join(r.Location(), "started")); return err == nil })
	stop()
	must(t, os.WriteFile(filepath.Join(r.Location(), "go"), nil, 0o600))
	waitEnd(t, ended)
	if a, b := view(t, r, "a").State, view(t, r, "b").State; a != beeyard.StateDone || b != beeyard.StateReady {
		t.Fatalf("a %s, b %s", a, b)
	}
}

func TestSecondStopIsAtOnce(t *testing.T) {
	r := newRun(t, task("a"))
	cfg := config(script(t, `trap '' TERM; : > "$BEEYARD_RUN/started"; while :; do sleep 0.1; done`), &heard{})
	cfg.Drain = time.Hour
	w, stop, ended := running(t, r, cfg)
	until(t, "the handler starts", func() bool { _, err := os.Stat(filepath.Join(r.Location(), "started")); return err == nil })
	stop()
	w.StopNow()
	waitEnd(t, ended)
	if v := view(t, r, "a"); v.State != beeyard.StateReady || v.Task.Ext.Attempt != 0 {
		t.Fatalf("%s, attempt %d", v.State, v.Task.Ext.Attempt)
	}
}

func TestCancelEndsTheProcessFirst(t *testing.T) {
	r := newRun(t, task("a"))
	cfg := config(script(t, `: > "$BEEYARD_RUN/started"; sleep 600; : > "$BEEYARD_RUN/x"`), &heard{})
	_, stop, ended := running(t, r, cfg)
	until(t, "the handler starts", func() bool { _, err := os.Stat(filepath.Join(r.Location(), "started")); return err == nil })
	res, err := r.Cancel(background(t), "a", "me", "not wanted")
	must(t, err)
	if res.Status != "requested" || res.Worker != "w1" {
		t.Fatalf("%+v", res)
	}
	until(t, "the task is canceled", func() bool { return view(t, r, "a").State == beeyard.StateCanceled })
	stop()
	waitEnd(t, ended)
	if _, err := os.Stat(filepath.Join(r.Location(), "x")); err == nil {
		t.Fatal("the handler went on")
	}
}

func TestLostClaimEndsTheHandler(t *testing.T) {
	r := newRun(t, task("a"))
	h := &heard{}
	cfg := config(script(t, `: > "$BEEYARD_RUN/started"; sleep 600`), h)
	_, stop, ended := running(t, r, cfg)
	until(t, "the handler starts", func() bool { _, err := os.Stat(filepath.Join(r.Location(), "started")); return err == nil })
	hits, err := filepath.Glob(filepath.Join(r.Location(), "claimed", "w1~*", "a.json"))
	if err != nil || len(hits) != 1 {
		t.Fatalf("claim: %v, %v", hits, err)
	}
	must(t, os.Rename(hits[0], filepath.Join(r.Location(), "failed", "a.json"))) // an older program took it away
	until(t, "the loss is noticed", func() bool { return strings.Contains(h.texts("lost"), "a ") })
	stop()
	waitEnd(t, ended)
}

func TestDependantsFollow(t *testing.T) {
	b, c := task("b"), task("c")
	b.DependsOn, c.DependsOn = []string{"a"}, []string{"a", "b"}
	r := newRun(t, task("a"), b, c)
	h := &heard{}
	sum := work(t, r, config(script(t, `echo $BEEYARD_TASK_ID >> "$BEEYARD_RUN/order"`), h))
	if got := read(t, r, "order"); sum.Handled != 3 || got != "a\nb\nc\n" {
		t.Fatalf("%d handled, order %q", sum.Handled, got)
	}
}

func TestUntilEmptyLeavesWhatCannotRun(t *testing.T) {
	blocked, failing := task("blocked"), task("fails")
	blocked.DependsOn = []string{"fails"}
	r := newRun(t, failing, blocked)
	work(t, r, config(script(t, `exit 1`), &heard{}))
	v := view(t, r, "blocked")
	if v.State != beeyard.StateBlocked || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0].Text, "fails, which failed") {
		t.Fatalf("%s: %+v", v.State, v.Reasons)
	}
}

func TestConcurrencyAndOrder(t *testing.T) {
	var tasks []*beeyard.Task
	for i := range 40 {
		tasks = append(tasks, task(fmt.Sprintf("t%02d", i)))
	}
	r := newRun(t, tasks...)
	cfg := config(script(t, `echo out > "$BEEYARD_ARTIFACT_PATH"`), &heard{})
	cfg.Concurrency = 8
	sum := work(t, r, cfg)
	if sum.Handled != 40 || sum.By[beeyard.OutcomeDone] != 40 {
		t.Fatalf("%+v", sum)
	}
	cp, err := r.Checkpoint(background(t))
	must(t, err)
	if len(cp.CompletedTasks) != 40 {
		t.Fatalf("%d completed", len(cp.CompletedTasks))
	}
}

func TestMaxIterationsAndOnce(t *testing.T) {
	r := newRun(t, task("a"), task("b"), task("c"))
	cfg := config(script(t, "exit 0"), &heard{})
	cfg.MaxIterations, cfg.UntilEmpty = 2, false
	if sum := work(t, r, cfg); sum.Handled != 2 {
		t.Fatalf("%+v", sum)
	}
	cfg.MaxIterations, cfg.Once = 0, true
	if sum := work(t, r, cfg); sum.Handled != 1 {
		t.Fatalf("%+v", sum)
	}
	if sum := work(t, r, cfg); sum.Handled != 0 {
		t.Fatalf("nothing ready, once: %+v", sum)
	}
}

func TestManyInstantFailuresPause(t *testing.T) {
	var tasks []*beeyard.Task
	for i := range 12 {
		tasks = append(tasks, task(fmt.Sprintf("t%02d", i)))
	}
	r := newRun(t, tasks...)
	h := &heard{}
	paused := make(chan struct{}, 1)
	h.on = func(e worker.Event) {
		if e.Kind == "paused" {
			select {
			case paused <- struct{}{}:
			default:
			}
		}
	}
	_, stop, ended := running(t, r, config(script(t, "exit 3"), h))
	select {
	case <-paused:
	case <-time.After(bound):
		t.Fatal("it never paused")
	}
	stop()
	waitEnd(t, ended)
	if !strings.Contains(h.texts("paused"), "10 handler failures in a row") {
		t.Fatal(h.texts("paused"))
	}
}

func TestFollowUpsWaitForSuccess(t *testing.T) {
	for exit, want := range map[int]bool{0: true, 1: false} {
		r := newRun(t, task("a"))
		slot := &enqueuing{run: r, exit: exit}
		cfg := config("", &heard{})
		cfg.Handler, cfg.Once, cfg.UntilEmpty = slot, true, false
		work(t, r, cfg)
		v, err := r.Get(background(t), "next")
		if got := err == nil && v.State == beeyard.StateReady; got != want {
			t.Fatalf("exit %d: follow-up enqueued %v, %v", exit, got, err)
		}
	}
}

// enqueuing is a handler that asks for a follow-up.
type enqueuing struct {
	run  *spool.Run
	exit int
}

func (e *enqueuing) Check() error               { return nil }
func (e *enqueuing) Open() (worker.Slot, error) { return e, nil }
func (e *enqueuing) Close() error               { return nil }
func (e *enqueuing) Do(ctx context.Context, j worker.Job) (worker.Done, error) {
	ref := j.Claim.Ref()
	_, err := e.run.Enqueue(ctx, []*beeyard.Task{task("next")}, beeyard.EnqueueOptions{Under: &ref})
	return worker.Done{ExitCode: e.exit}, err
}
