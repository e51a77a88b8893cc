package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/proc"
)

// OlderRun is a run as the older worker loop uses it: claims without a token.
type OlderRun interface {
	Claim(ctx context.Context, worker string, types []string) (*beeyard.Task, error)
	Complete(ctx context.Context, worker, id string, success bool) error
	GiveBack(ctx context.Context, worker, id string) error
	Heartbeat(ctx context.Context, worker, note string) error
	// Log truncates the task's log; the handler writes it.
	Log(ctx context.Context, id string) error
	Leave(ctx context.Context, worker string) error
}

// OlderLoop does tasks as the older worker loop does: one at a time, any
// failure final, no timeout, the handler's output wherever the loop's goes.
type OlderLoop struct {
	Run    OlderRun
	RunDir string // absolute
	Worker string
	Types  []string
	// Handler has the program, its whole environment and where its output goes.
	Handler       proc.Spec
	Poll          time.Duration
	Heartbeat     time.Duration
	MaxIterations int // tasks handled; 0: no end
	Clock         clock.Clock
	// Report hears, in words, of what went wrong and did not end the loop.
	Report func(text string)
}

// leastPoll keeps a poll interval of zero from spinning.
const leastPoll = 50 * time.Millisecond

// Do handles tasks until ctx ends or enough were handled, and returns their
// number. A handler that runs when ctx ends is waited for, however long it
// takes. Beat and note are removed unless there is an error. ErrUnusable when
// the handler cannot be started: its task is given back.
func (l *OlderLoop) Do(ctx context.Context) (handled int, err error) {
	// What is under way is ended properly, whatever ends the loop.
	work := context.WithoutCancel(ctx)
	if err := l.Run.Heartbeat(work, l.Worker, "idle"); err != nil {
		return 0, err
	}
	beats, stop := context.WithCancel(work)
	var wg sync.WaitGroup
	wg.Go(func() { l.beat(beats) })
	defer func() {
		stop()
		wg.Wait()
		if err == nil {
			err = l.Run.Leave(work, l.Worker)
		}
	}()
	for ctx.Err() == nil && (l.MaxIterations <= 0 || handled < l.MaxIterations) {
		// Claimed under an old beat, a task would be reaped at once.
		if err := l.Run.Heartbeat(work, l.Worker, ""); err != nil {
			return handled, err
		}
		t, err := l.Run.Claim(work, l.Worker, l.Types)
		if err != nil {
			return handled, err
		}
		if t != nil {
			done, err := l.task(work, t)
			if err != nil {
				return handled, err
			}
			if done {
				handled++
				continue
			}
		}
		if clock.Sleep(ctx, l.Clock, max(l.Poll, leastPoll)) != nil {
			break
		}
	}
	return handled, nil
}

// beat proves the loop's life while its handler runs; it dies with the loop.
func (l *OlderLoop) beat(ctx context.Context) {
	for clock.Sleep(ctx, l.Clock, l.Heartbeat) == nil {
		if err := l.Run.Heartbeat(ctx, l.Worker, ""); err != nil {
			l.Report(err.Error())
		}
	}
}

// task handles one; false when the machine was short of something and the task
// was given back.
func (l *OlderLoop) task(ctx context.Context, t *beeyard.Task) (handled bool, err error) {
	line, err := t.Nine()
	if err == nil {
		err = l.Run.Log(ctx, t.ID)
	}
	if err == nil {
		err = l.Run.Heartbeat(ctx, l.Worker, "running "+t.ID)
	}
	if err != nil {
		return false, errors.Join(err, l.Run.GiveBack(ctx, l.Worker, t.ID))
	}
	spec := l.Handler
	spec.Env = l.env(t)
	spec.Stdin = append(line, '\n')
	p, err := proc.Start(ctx, spec)
	if errors.Is(err, proc.ErrUnusable) {
		return false, errors.Join(unusableHandler(err), l.Run.GiveBack(ctx, l.Worker, t.ID))
	}
	if err != nil {
		l.Report(err.Error() + "; the task was given back")
		return false, l.Run.GiveBack(ctx, l.Worker, t.ID)
	}
	r := p.Wait()
	err = l.Run.Complete(ctx, l.Worker, t.ID, r.OK())
	if errors.Is(err, beeyard.ErrClaimLost) {
		l.Report(err.Error())
		err = nil
	}
	if err == nil {
		err = l.Run.Heartbeat(ctx, l.Worker, "idle")
	}
	return err == nil, err
}

func unusableHandler(err error) error {
	return &beeyard.Error{Op: "start handler", Err: fmt.Errorf("%w: %w", beeyard.ErrUnusable, err),
		Hint: "a handler is a program with its run bit set; the task was given back"}
}

// env is the loop's whole environment and what the task adds. What an outer
// claim says of itself stays out: this task is not its follow-up.
func (l *OlderLoop) env(t *beeyard.Task) []string {
	set := []string{"BEEYARD_RUN=" + l.RunDir}
	for _, v := range []struct{ name, value string }{
		{"RUN_DIR", l.RunDir}, {"TASK_ID", t.ID}, {"WORKER_ID", l.Worker},
		{"ARTIFACT_PATH", filepath.Join(l.RunDir, "artifacts", t.ID+".md")},
		{"LOG_PATH", filepath.Join(l.RunDir, "artifacts", t.ID+".log")},
	} {
		set = append(set, "SWARM_"+v.name+"="+v.value, "BEEYARD_"+v.name+"="+v.value)
	}
	drop := []string{"BEEYARD_CLAIM_TOKEN", "BEEYARD_ATTEMPT", "BEEYARD_RESULT_PATH"}
	for _, kv := range set {
		name, _, _ := strings.Cut(kv, "=")
		drop = append(drop, name)
	}
	env := make([]string, 0, len(l.Handler.Env)+len(set))
	for _, kv := range l.Handler.Env {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(drop, name) {
			env = append(env, kv)
		}
	}
	return append(env, set...)
}
