package spool

import (
	"context"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// startWatch asks the kernel for events before anything is listed, so that
// nothing falls between the two. The caller holds p.mu.
func (p *picker) startWatch() error {
	if p.closed {
		return errPickerClosed
	}
	if p.watch != nil {
		return nil
	}
	if _, err := p.r.priorityDir(true); err != nil {
		return err
	}
	places := map[durable.Dir]beeyard.Place{
		p.r.pending: beeyard.PlacePending, p.r.held: beeyard.PlaceHeld,
		p.r.done: beeyard.PlaceDone, p.r.failed: beeyard.PlaceFailed,
	}
	// The picker's own close ends it.
	p.watch = durable.Watch(context.Background(), p.r.pending, p.r.held, p.r.done, p.r.failed)
	p.pumped = make(chan struct{})
	p.reportDeaf()
	go func() {
		defer close(p.pumped)
		for h := range p.watch.Hints() {
			p.hear(places[h.Dir], h)
		}
	}()
	return nil
}

func (p *picker) hear(at beeyard.Place, h durable.Hint) {
	if at == beeyard.PlaceFailed {
		p.hints.add(at, false) // nothing becomes ready by it, but a run may be drained now
		return
	}
	ids := make([]string, 0, len(h.Names))
	for _, n := range h.Names {
		if id, ok := taskIDOf(n); ok {
			ids = append(ids, id)
		}
	}
	if h.All || len(ids) > 0 {
		p.hints.add(at, h.All, ids...)
	}
}

func (p *picker) reportDeaf() {
	if err := p.watch.Degraded(); err != nil {
		p.r.note("file events do not come for all folders of %s, so new tasks are noticed at the next poll: %v", p.r.path, err)
	}
}

// wait returns when a claim may succeed that did not at the last look: at a
// hint, when a task comes due, or after poll; and with ctx's cause when ctx
// ends. The first hint after a pause lets go at once; those that follow are
// gathered for as long as a look is worth.
//
// A slot that asks with another filter than the one that looked last may miss
// a hint; the poll is its net.
func (p *picker) wait(ctx context.Context, poll time.Duration) error {
	limit, isPoll, err := p.until(poll)
	if err != nil {
		return err
	}
	since := p.waiters.lastLook()
	timer := p.r.clk.NewTimer(limit)
	defer timer.Stop()
	for {
		gen, wake := p.hints.now()
		if gen > since {
			pause := p.waiters.letGo(gen, clock.Elapsed(p.r.clk))
			if pause <= 0 {
				return nil
			}
			if err := clock.Sleep(ctx, p.r.clk, pause); err != nil {
				return err
			}
			continue
		}
		select {
		case <-wake:
		case <-timer.C():
			if isPoll {
				p.pollPassed(poll)
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// until is how long to wait at most, and whether that is the poll.
func (p *picker) until(poll time.Duration) (time.Duration, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.startWatch(); err != nil {
		return 0, false, err
	}
	if !p.pending.gate.ran {
		return 0, false, nil // nobody has looked yet
	}
	if c := p.firstWake(); c != nil {
		if due := c.wake.Sub(p.r.clk.Now()); due < poll {
			return max(due, 0), false, nil
		}
	}
	return poll, true, nil
}

// pollPassed asks for a thorough look. The slots of a worker all poll; one look
// serves them.
func (p *picker) pollPassed(poll time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.Elapsed(p.r.clk)
	if p.pollAt == 0 || now-p.pollAt > poll/2 {
		p.polled, p.pollAt = true, now
	}
	p.reportDeaf()
}

// waiters decides when those who wait are let go.
type waiters struct {
	mu     sync.Mutex
	looked uint64        // generation of hints at the last look that found nothing
	freed  uint64        // those who wait for anything up to this one are let go
	next   time.Duration // the next are not let go before
	pause  time.Duration
}

const pauseMost = 20 * time.Millisecond

// foundNothing notes a look that began at a generation and what it cost.
func (w *waiters) foundNothing(gen uint64, cost time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = max(w.looked, gen)
	w.pause = min(gateShare*cost, pauseMost)
}

func (w *waiters) lastLook() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looked
}

// letGo is how long a waiter who heard of gen must still wait.
func (w *waiters) letGo(gen uint64, now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gen <= w.freed {
		return 0
	}
	if early := w.next - now; early > 0 {
		return early
	}
	w.freed, w.next = gen, now+w.pause
	return 0
}
