package spool

import (
	"context"
	"slices"

	"beeyard/internal/clock"
)

// sweepWaits rebuilds waits when most of it is of candidates that are gone.
func (p *picker) sweepWaits() {
	if p.orphans < 1024 {
		return
	}
	p.orphans = 0
	for id, list := range p.waits {
		list = slices.DeleteFunc(list, func(c *candidate) bool { return c.state != pickBlocked })
		if len(list) == 0 {
			delete(p.waits, id)
		} else {
			p.waits[id] = list
		}
	}
}

// finished tells those who wait for id, if it is met indeed.
func (p *picker) finished(ctx context.Context, id string) error {
	if len(p.waits[id]) == 0 {
		return nil
	}
	met, err := p.r.newDeps(ctx).met(id)
	if err != nil || !met {
		return err
	}
	return p.release(ctx, id)
}

func (p *picker) release(ctx context.Context, id string) error {
	var free []*candidate
	for _, c := range p.waits[id] {
		if c.state != pickBlocked {
			continue
		}
		if c.unmet--; c.unmet == 0 {
			free = append(free, c)
		}
	}
	delete(p.waits, id)
	return p.putAll(ctx, free)
}

// askDone asks again for everything that is waited for, when done/ changed and
// it may have gone unheard.
func (p *picker) askDone(ctx context.Context, dry, unheard bool) error {
	if len(p.waits) == 0 {
		return nil
	}
	began := clock.Elapsed(p.r.clk)
	switch {
	case p.polled:
	case !p.doneGo.open(began, dry):
		return nil
	case unheard || dry || !p.hearing():
		if same, err := p.doneAt.unchanged(p.r, p.r.done); err != nil || same && !unheard {
			return err
		}
	default:
		return nil
	}
	if err := p.doneAt.listing(p.r.done, began); err != nil {
		return err
	}
	deps := p.r.newDeps(ctx)
	if err := deps.prime(func(yield func(string) bool) {
		for id := range p.waits {
			if !yield(id) {
				return
			}
		}
	}); err != nil {
		return err
	}
	var met []string
	for id := range p.waits {
		ok, err := deps.met(id)
		if err != nil {
			return err
		}
		if ok {
			met = append(met, id)
		}
	}
	for _, id := range met {
		if err := p.release(ctx, id); err != nil {
			return err
		}
	}
	p.doneGo.ended(began, clock.Elapsed(p.r.clk))
	return nil
}
