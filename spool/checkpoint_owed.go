package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

// Rewriting one file is the bottleneck of a fast drain, so what settles bring
// is collected and folded into it: at once when the last write is long enough
// ago, else when it is.
const (
	// foldEvery is from the start of a write to the start of the next: with the
	// write itself an id is listed 100 ms after it is in done/.
	foldEvery = 80 * time.Millisecond
	// foldShare bounds what writing costs: the list grows with the run, and at a
	// fixed pace a drain of n tasks would cost n².
	foldShare = 20
	foldMost  = 5 * time.Second
	// After a failure (a full disk) it is tried again, ever more rarely.
	foldRetry     = time.Second
	foldRetryMost = 30 * time.Second
	// reconcileEvery is how often a run that has a worker is compared with done/.
	reconcileEvery = 30 * time.Second
	// closeWait bounds the last write of a run that is being closed.
	closeWait = 10 * time.Second
)

// debt is what status.json does not list yet.
type debt struct {
	ids      []string
	failures []failure
}

func (d debt) empty() bool { return len(d.ids) == 0 && len(d.failures) == 0 }

// folder writes the debt. Its goroutine starts with the first debt or worker;
// the run's Close stops it, waits for it and writes what is left.
type folder struct {
	turn  chan struct{} // who could send writes, the others wait
	wake  chan struct{} // there is a debt
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{} // nil: not started. Guarded by checkpointPart.mu, like the rest
	done  bool          // Close was called: no goroutine any more
	next  time.Duration // by clock.Elapsed: no write before that
	fails int

	// listed is what listedIn lists, kept from write to write: making it anew
	// would be half of what a write of a long list costs. Whoever has the turn.
	listed   map[string]bool
	listedIn *beeyard.Checkpoint
}

func (f *folder) init() {
	f.turn, f.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	f.ctx, f.stop = context.WithCancel(context.Background())
}

// owe notes ids that a worker has settled as done; they are in done/ and that
// is flushed. It never waits.
func (r *Run) owe(ids ...string) { r.addDebt(debt{ids: ids}, true) }

// failureRisk notes a task that has failed for good in the checkpoint's risk.
// Like owe it is written soon, and at the latest by flushOwed or Close.
func (r *Run) failureRisk(_ context.Context, id, reason string) error {
	r.addDebt(debt{failures: []failure{{id: id, reason: reason, at: r.clk.Now()}}}, true)
	return nil
}

// completedNow lists ids before it returns, as the answer of a single command
// must. On nil the list is durable, or there is no status.json. Calls that come
// together share a write.
func (r *Run) completedNow(ctx context.Context, ids ...string) error {
	r.addDebt(debt{ids: ids}, false)
	return r.flushOwed(ctx)
}

func (r *Run) addDebt(d debt, later bool) {
	if r.ro || d.empty() {
		return
	}
	c := &r.chk
	c.mu.Lock()
	c.owed.ids = append(c.owed.ids, d.ids...)
	c.owed.failures = append(c.owed.failures, d.failures...)
	c.mu.Unlock()
	if later {
		r.startFold()
		c.fold.poke()
	}
}

// keepReconciled reconciles now, and again and again until the run is closed.
// Not with the beat: that must not wait for another's lock.
func (r *Run) keepReconciled(ctx context.Context) error {
	r.startFold()
	return r.reconcile(ctx)
}

func (r *Run) startFold() {
	c := &r.chk
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fold.ended == nil && !c.fold.done {
		c.fold.ended = make(chan struct{})
		go r.foldLoop(c.fold.ended)
	}
}

func (f *folder) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (r *Run) foldLoop(ended chan struct{}) {
	defer close(ended)
	f := &r.chk.fold
	tick := r.clk.NewTimer(reconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.wake:
		case <-tick.C():
			if err := r.reconcile(f.ctx); err != nil && f.ctx.Err() == nil {
				r.note("status.json cannot be compared with done/: %v", err)
			}
			tick.Reset(reconcileEvery)
			continue
		case <-f.ctx.Done():
			return
		}
		r.chk.mu.Lock()
		pause := f.next - clock.Elapsed(r.clk)
		r.chk.mu.Unlock()
		if clock.Sleep(f.ctx, r.clk, pause) != nil {
			return
		}
		if err := r.flushOwed(f.ctx); err != nil && f.ctx.Err() == nil {
			r.note("finished tasks cannot be listed in status.json yet, which is tried again: %v", err)
			f.poke()
		}
	}
}

// flushOwed writes what is owed; on nil it is durable. After an error it is
// still owed.
func (r *Run) flushOwed(ctx context.Context) error {
	c := &r.chk
	select {
	case c.fold.turn <- struct{}{}:
		defer func() { <-c.fold.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait for a write of status.json: %w", context.Cause(ctx))
	}
	c.mu.Lock()
	d := c.owed
	c.owed = debt{}
	c.mu.Unlock()
	if d.empty() {
		return nil
	}
	start := clock.Elapsed(r.clk)
	err := r.fold(ctx, d)
	took := clock.Elapsed(r.clk) - start
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.owed.ids = append(d.ids, c.owed.ids...)
		c.owed.failures = append(d.failures, c.owed.failures...)
		c.fold.next = start + took + min(foldRetry<<min(c.fold.fails, 10), foldRetryMost)
		c.fold.fails++
		return checkpointError("write checkpoint", r.id, err)
	}
	c.fold.next, c.fold.fails = start+min(max(foldEvery, foldShare*took), foldMost), 0
	return nil
}

// fold adds those of the ids that are in done/ now: one that a retry has taken
// out again since is not done.
func (r *Run) fold(ctx context.Context, d debt) error {
	f := &r.chk.fold
	var add []string
	s, err := r.editStatus(ctx, func(old *status) (*beeyard.Checkpoint, error) {
		if old == nil {
			return nil, nil
		}
		if f.listed == nil || f.listedIn != old.cp {
			f.listed, f.listedIn = setOf(old.cp.CompletedTasks), old.cp
		}
		var err error
		if add, err = r.doneOf(d.ids, f.listed); err != nil {
			return nil, err
		}
		next := r.withCompleted(old.cp, f.listed, add, d.failures)
		if len(add) == 0 && next.Risk == old.cp.Risk {
			return nil, nil
		}
		if len(add) > 0 {
			// The caller has flushed done/, but a helper that published for him may not have.
			if err := r.syncDone(); err != nil {
				return nil, err
			}
		}
		return next, nil
	})
	if err != nil || s == nil {
		return err
	}
	for _, id := range add {
		f.listed[id] = true
	}
	f.listedIn = s.cp
	return nil
}

// doneOf gives those of ids that are in done/ and not listed, each once.
func (r *Run) doneOf(ids []string, listed map[string]bool) ([]string, error) {
	taken := make(map[string]bool, len(ids))
	var add []string
	for _, id := range ids {
		if listed[id] || taken[id] {
			continue
		}
		taken[id] = true
		there, err := r.done.Exists(bodyName(id))
		if err != nil {
			return nil, fmt.Errorf("look into done: %w", err)
		}
		if there {
			add = append(add, id)
		}
	}
	return add, nil
}

// closeFold ends the goroutine and writes what is left.
func (r *Run) closeFold() error {
	c := &r.chk
	c.mu.Lock()
	c.fold.done = true
	ended := c.fold.ended
	c.mu.Unlock()
	c.fold.stop()
	if ended != nil {
		<-ended
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeWait, errors.New("status.json could not be written within "+closeWait.String()))
	defer cancel()
	return r.flushOwed(ctx)
}
