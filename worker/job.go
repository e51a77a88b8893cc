package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
	"beeyard/internal/proc"
)

// job is one claim under way.
type job struct {
	claim *beeyard.Claim
	ctx   context.Context
	end   context.CancelCauseFunc
	begun time.Time
	log   *openLog
	late  bool // the worker slept past its beat while this ran
}

func (w *Worker) start(slot Slot, c *beeyard.Claim) {
	j := &job{claim: c, begun: w.clk.Now(), log: &openLog{w: w, c: c}}
	j.ctx, j.end = context.WithCancelCause(w.now)
	w.mu.Lock()
	w.jobs[c.Ref()] = j
	w.mu.Unlock()
	w.tell(Event{Kind: "claimed", TaskID: c.Task.ID, Task: c.Task})
	w.settling.Go(func() {
		s := w.do(slot, j)
		// With several slots the next handler runs while this settle waits for the
		// disk. Not with one: there a kill would cost two runs where it costs one.
		early := w.cfg.Concurrency > 1
		if early {
			w.tickets <- struct{}{}
			w.slots <- slot
		}
		w.settle(j, s)
		j.end(nil)
		w.mu.Lock()
		delete(w.jobs, c.Ref())
		w.mu.Unlock()
		if early {
			<-w.tickets
		} else {
			w.slots <- slot
		}
		select {
		case w.freed <- struct{}{}:
		default:
		}
	})
}

// do runs the handler and says how the claim ends; nil when it is not ours any more.
func (w *Worker) do(slot Slot, j *job) *beeyard.Settlement {
	t := j.claim.Task
	timeout := w.cfg.Timeout
	if t.Ext.Timeout > 0 {
		timeout = time.Duration(t.Ext.Timeout)
	}
	done, err := slot.Do(j.ctx, Job{Claim: j.claim, Worker: w.cfg.ID, Timeout: timeout, Grace: w.cfg.Grace,
		OpenLog: j.log.open,
		Stage: func(ctx context.Context, r io.Reader) error {
			_, err := w.run.StageArtifact(ctx, j.claim.Ref(), r)
			return err
		}})
	if cerr := j.log.close(); cerr != nil {
		// A log that could not be kept fails no task.
		w.tell(Event{Kind: "note", TaskID: t.ID, Text: "keep log: " + cerr.Error()})
	}
	return w.verdict(j, done, err)
}

// settle ends the claim, and tries again while the store cannot take it: the
// work is done, and a full disk gets room again. The claim stays ours while we
// try, for the beat goes on.
func (w *Worker) settle(j *job, s *beeyard.Settlement) {
	id := j.claim.Task.ID
	if s == nil {
		w.tell(Event{Kind: "lost", TaskID: id, Text: "the claim was taken away while the handler ran; its output is kept aside"})
		return
	}
	ctx := context.WithoutCancel(j.ctx)
	for wait := time.Second; ; wait = min(2*wait, 30*time.Second) {
		r, err := w.att.Settle(ctx, j.claim.Ref(), *s)
		switch {
		case err == nil:
			w.count(r.Outcome)
			w.tell(Event{Kind: "settled", TaskID: id, Outcome: r.Outcome, State: r.State, Took: w.clk.Now().Sub(j.begun),
				Text: s.Reason, Attempt: &s.Report, Task: j.claim.Task})
			return
		case errors.Is(err, beeyard.ErrClaimLost):
			w.tell(Event{Kind: "lost", TaskID: id, Text: err.Error()})
			return
		}
		w.tell(Event{Kind: "note", TaskID: id, Text: "settle: " + err.Error()})
		if durable.NoSpace(err) && s.Outcome == beeyard.OutcomeDone {
			// What a handler wrote onto a full disk may be cut off, whatever it
			// exits with: the task is done again, at no cost.
			*s = beeyard.Settlement{Outcome: beeyard.OutcomeRetry, NoSpend: true, RetryAfter: time.Second,
				Reason: "the disk was full when it ended", Report: s.Report, Limits: s.Limits}
		}
		if clock.Sleep(w.now, w.clk, wait) != nil {
			// Stopping: the claim is left to whoever comes next. A whole record
			// beside it is decided with then, and the work is not run again.
			w.tell(Event{Kind: "note", TaskID: id, Text: "could not settle before the end; its claim is left for the next worker"})
			return
		}
	}
}

func (w *Worker) count(o beeyard.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sum.Handled++
	w.sum.By[o]++
}

// openLog opens the capped log of one attempt when it is first wanted: a
// handler that stays and says nothing costs no file.
type openLog struct {
	w    *Worker
	c    *beeyard.Claim
	file beeyard.LogFile
	log  *proc.CappedLog
	err  error
}

func (o *openLog) open() (Log, error) {
	if o.log != nil || o.err != nil {
		return o.log, o.err
	}
	o.file, o.err = o.w.att.Log(context.WithoutCancel(o.w.now), o.c)
	if o.err != nil {
		return nil, fmt.Errorf("open log: %w", o.err)
	}
	o.log = proc.NewCappedLog(o.file, o.w.cfg.LogCap)
	return o.log, nil
}

func (o *openLog) close() error {
	if o.log == nil {
		return nil
	}
	return errors.Join(o.log.Close(), o.file.Close())
}
