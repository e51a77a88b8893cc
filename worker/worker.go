// Package worker drains runs: it claims a task, lets a handler do it, and
// settles. It knows stores only through their ports, and handlers only through
// [Handler], so the same loop drives a directory and a database, a program a
// task and a program that stays.
//
// Read worker.go (the loop), job.go (one task from claim to settle), verdict.go
// (what an exit code means), watch.go (beats, cancels, reaps), process.go and
// lines.go (handlers that are programs), each.go (one task an input line).
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

// Config says how a worker works. Zero durations and counts take the
// contract's defaults (see withDefaults).
type Config struct {
	ID      string
	Handler Handler
	Filter  beeyard.Filter
	Limits  beeyard.Limits
	Tiers   []string // cheapest first; exit 77 moves a task to the next

	Concurrency   int
	MaxIterations int  // tasks handled before Run ends; 0: no end
	Once          bool // one task, or none if none is ready
	UntilEmpty    bool // end when nothing is left that could become ready by itself

	Poll, Heartbeat, StaleAfter, Drain, Grace time.Duration
	// Timeout bounds tasks that name none; 0: none.
	Timeout time.Duration
	LogCap  int64 // bytes
	// Report hears what happens, one call at a time; nil drops it.
	Report func(Event)
}

// Event is something that a worker tells.
type Event struct {
	// Kind: started, claimed, settled, lost, reaped, paused, note, stopping.
	Kind    string           `json:"kind"`
	TaskID  string           `json:"task_id,omitempty"`
	Outcome beeyard.Outcome  `json:"outcome,omitempty"`
	State   beeyard.State    `json:"state,omitempty"`
	Took    time.Duration    `json:"-"`
	Text    string           `json:"text,omitempty"`
	Attempt *beeyard.Attempt `json:"-"`
	Task    *beeyard.Task    `json:"-"`
	Reaps   []beeyard.Reaped `json:"reaped,omitempty"`
}

// Summary counts what a worker did.
type Summary struct {
	Handled int                     `json:"handled"`
	By      map[beeyard.Outcome]int `json:"by_outcome"`
}

// Errors that end jobs; a job's context carries one as its cause.
var (
	errCanceled = errors.New("canceled")
	errLost     = errors.New("claim lost")
	errDrain    = errors.New("worker is stopping")
)

// Worker is one process's loop. Run may be called once.
type Worker struct {
	cfg Config
	run beeyard.Run
	clk clock.Clock
	att beeyard.Worker

	slots chan Slot     // free ones
	freed chan struct{} // a job has ended
	// tickets bounds the settles that go on after their slot was freed: at most
	// as many as there are slots.
	tickets  chan struct{}
	settling sync.WaitGroup // jobs, until they are settled

	now    context.Context // ends with StopNow, or when draining takes too long
	endNow context.CancelCauseFunc

	mu      sync.Mutex
	jobs    map[beeyard.Ref]*job
	sum     Summary
	instant int   // handler failures in a row, each at once
	fault   error // the handler cannot run: stop

	reportMu sync.Mutex
}

func withDefaults(c Config) Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&c.Poll, 5*time.Second)
	set(&c.Heartbeat, 30*time.Second)
	set(&c.StaleAfter, 300*time.Second)
	if c.Concurrency <= 0 {
		c.Concurrency = 1
	}
	if c.Report == nil {
		c.Report = func(Event) {}
	}
	if len(c.Tiers) == 0 {
		c.Tiers = []string{"haiku", "sonnet", "opus"}
	}
	return c
}

// New checks the handler. ErrUnusable when it cannot run: no task is touched.
func New(run beeyard.Run, cfg Config, clk clock.Clock) (*Worker, error) {
	cfg = withDefaults(cfg)
	// A beat later than the limit would have every claim reaped.
	if cfg.Heartbeat >= cfg.StaleAfter {
		return nil, &beeyard.Error{Op: "start worker", ID: cfg.ID, Err: beeyard.Because(beeyard.ErrUsage,
			fmt.Sprintf("heartbeat interval %s is not below stale-after %s", cfg.Heartbeat, cfg.StaleAfter))}
	}
	if err := cfg.Handler.Check(); err != nil {
		return nil, err
	}
	w := &Worker{cfg: cfg, run: run, clk: clk, jobs: map[beeyard.Ref]*job{},
		slots: make(chan Slot, cfg.Concurrency), freed: make(chan struct{}, 1), tickets: make(chan struct{}, cfg.Concurrency),
		sum: Summary{By: map[beeyard.Outcome]int{}}}
	w.now, w.endNow = context.WithCancelCause(context.Background())
	return w, nil
}

// StopNow ends running handlers at once; their tasks are given back.
func (w *Worker) StopNow() { w.endNow(errDrain) }

// Run works until ctx ends, then drains: running handlers may go on for the
// drain time, after which they are ended and their tasks given back without
// spending an attempt. It returns once nothing of it runs any more. The error
// is ErrWorkerLive, ErrUnusable, or the store's.
func (w *Worker) Run(ctx context.Context) (Summary, error) {
	defer w.endNow(errDrain)
	att, err := w.run.Attach(ctx, beeyard.WorkerSpec{ID: w.cfg.ID, Kind: beeyard.KindProcess, StaleAfter: w.cfg.StaleAfter, Limits: w.cfg.Limits})
	if err != nil {
		return w.sum, err
	}
	w.att = att
	var slots []Slot
	for range w.cfg.Concurrency {
		s, err := w.cfg.Handler.Open()
		if err != nil {
			return w.sum, errors.Join(err, closeSlots(slots), att.Close(context.WithoutCancel(ctx)))
		}
		slots = append(slots, s)
		w.slots <- s
	}
	w.tell(Event{Kind: "started", Text: w.cfg.ID})
	loopCtx, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() { w.beats(loopCtx) })
	loops.Go(func() { w.checks(loopCtx) })
	loops.Go(func() { w.reaps(loopCtx) })

	err = w.claims(ctx)
	if ctx.Err() != nil {
		w.tell(Event{Kind: "stopping", Text: fmt.Sprintf("no new tasks; running ones have %s", w.cfg.Drain)})
	}
	w.drain(ctx, w.broken() != nil)
	stopLoops()
	loops.Wait()
	err = errors.Join(err, w.broken(), closeSlots(slots), att.Close(context.WithoutCancel(ctx)))
	return w.sum, err
}

func closeSlots(slots []Slot) error {
	var errs []error
	for _, s := range slots {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// claims is the loop that takes tasks. It alone claims, so that the slots of
// one process never race each other for a name.
func (w *Worker) claims(ctx context.Context) error {
	started := 0
	for {
		if w.broken() != nil || ctx.Err() != nil || w.cfg.MaxIterations > 0 && started == w.cfg.MaxIterations || w.cfg.Once && started == 1 {
			return nil
		}
		var slot Slot
		select {
		case slot = <-w.slots:
		case <-ctx.Done():
			return nil
		}
		if w.broken() != nil || w.pause(ctx) != nil {
			w.slots <- slot
			continue
		}
		claim, err := w.att.Claim(ctx, w.cfg.Filter)
		switch {
		case ctx.Err() != nil && claim == nil:
			w.slots <- slot
			return nil
		case err != nil:
			w.slots <- slot
			// One file that cannot be moved must not stop the queue; a disk that
			// is gone is said again at each poll.
			w.tell(Event{Kind: "note", Text: "claim: " + err.Error()})
			if clock.Sleep(ctx, w.clk, w.cfg.Poll) != nil {
				return nil
			}
		case claim == nil:
			w.slots <- slot
			done, err := w.idle(ctx)
			if err != nil || done {
				return err
			}
		default:
			started++
			w.start(slot, claim)
		}
	}
}

// idle flushes what the checkpoint is owed and waits for something to do.
func (w *Worker) idle(ctx context.Context) (done bool, err error) {
	busy := w.running() > 0
	if !busy {
		if err := w.att.Flush(ctx); err != nil && ctx.Err() == nil {
			w.tell(Event{Kind: "note", Text: "write checkpoint: " + err.Error()})
		}
		if w.cfg.Once {
			return true, nil
		}
		if w.cfg.UntilEmpty {
			done, err := w.att.Drained(ctx, w.cfg.Filter)
			if err != nil && ctx.Err() == nil {
				return false, fmt.Errorf("look whether the run is drained: %w", err)
			}
			if done {
				return true, nil
			}
		}
	}
	// A task that ends here may release its dependants, or be the last: then
	// there is something to do before any event arrives.
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-w.freed:
			cancel()
		case <-stop:
		}
	}()
	err = w.att.Wait(wait, w.cfg.Poll)
	close(stop)
	<-ended
	if err != nil && wait.Err() == nil {
		return false, fmt.Errorf("wait for tasks: %w", err)
	}
	return false, nil
}

// drain waits until all jobs are settled: without end, or, from the moment the
// worker is told to stop, for the drain time, after which handlers are ended
// and settles that cannot get on give up.
func (w *Worker) drain(ctx context.Context, stopping bool) {
	all := make(chan struct{})
	go func() {
		for range w.cfg.Concurrency {
			<-w.slots
		}
		w.settling.Wait()
		close(all)
	}()
	stop := ctx.Done()
	if stopping {
		now := make(chan struct{})
		close(now)
		stop = now
	}
	var limit <-chan time.Time
	for {
		select {
		case <-all:
			return
		case <-stop:
			stop = nil
			t := w.clk.NewTimer(max(w.cfg.Drain, 0))
			defer t.Stop()
			limit = t.C()
		case <-limit:
			limit = nil
			w.endNow(errDrain)
		}
	}
}

func (w *Worker) running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

func (w *Worker) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

func (w *Worker) tell(e Event) {
	w.reportMu.Lock()
	defer w.reportMu.Unlock()
	w.cfg.Report(e)
}
