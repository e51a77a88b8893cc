package spool

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"beeyard/internal/clock"
)

// takeIn adds what was read of a folder, in place of what was known under the
// same names.
func (p *picker) takeIn(ctx context.Context, s *shelf, got readings) error {
	if got.err != nil {
		p.sick = got.err
		s.stamp.valid = false // read again, though no name changes
	}
	for _, c := range got.good {
		if old := s.known[c.id]; old != nil {
			p.forget(s, c.id, old)
		}
		c.seen = s.seen
		c.held = s == p.held
		s.known[c.id] = c
		if s == p.pending {
			delete(p.given, c.id)
			delete(s.bad, bodyName(c.id))
		}
	}
	for _, f := range got.bad {
		if id, ok := taskIDOf(f.name); ok && s.known[id] != nil {
			p.forget(s, id, s.known[id])
		}
		if err := p.quarantine(ctx, s, f); err != nil {
			return err
		}
	}
	return p.putAll(ctx, got.good)
}

// putAll puts each where it belongs; those that are ready go to the lanes as
// one sorted batch.
func (p *picker) putAll(ctx context.Context, list []*candidate) error {
	deps := p.r.newDeps(ctx)
	if err := deps.prime(func(yield func(string) bool) {
		for _, c := range list {
			for _, d := range c.deps {
				if !yield(d) {
					return
				}
			}
		}
	}); err != nil {
		return err
	}
	var ready []*candidate
	for _, c := range list {
		where, unmet, err := p.where(c, deps)
		if err != nil {
			return err
		}
		if where == pickReady {
			c.state = pickReady
			ready = append(ready, c)
			continue
		}
		p.put(c, where, unmet)
	}
	p.toLanes(ready...)
	return nil
}

// where says where a candidate belongs now, as Judge would, and which distinct
// dependencies keep it from running.
func (p *picker) where(c *candidate, deps *deps) (pickState, []string, error) {
	now := p.r.clk.Now()
	switch {
	case c.hold || c.never:
		return pickOff, nil, nil
	case c.held:
		return pickLater, nil, nil // promotion comes first, and looks at time alone
	case !c.dueBy(now):
		return pickLater, nil, nil
	}
	var unmet []string
	for _, d := range c.deps {
		if d == c.id {
			return pickOff, nil, nil
		}
		met, err := deps.met(d)
		if err != nil {
			return pickOff, nil, err
		}
		if !met && !slices.Contains(unmet, d) {
			unmet = append(unmet, d)
		}
	}
	if len(unmet) > 0 {
		return pickBlocked, unmet, nil
	}
	return pickReady, nil, nil
}

func (p *picker) put(c *candidate, where pickState, unmet []string) {
	switch where {
	case pickReady:
		p.toLanes(c)
	case pickBlocked:
		c.unmet = int32(len(unmet))
		for _, d := range unmet {
			p.waits[d] = append(p.waits[d], c)
		}
	case pickLater:
		p.putLater(c, c.due)
		return
	}
	c.state = where
}

func (p *picker) putLater(c *candidate, wake time.Time) {
	c.state, c.wake = pickLater, wake
	heap.Push(&p.times, c)
}

// toLanes offers ready ones to every filter that takes them.
func (p *picker) toLanes(list ...*candidate) {
	if len(list) == 0 {
		return
	}
	sortCandidates(list)
	for _, c := range list {
		c.state = pickReady
	}
	for _, l := range p.lanes {
		mine := make([]*candidate, 0, len(list))
		for _, c := range list {
			if c.match(&l.filter, &p.scratch) {
				mine = append(mine, c)
			}
		}
		l.merge(mine)
	}
}

// forget drops what is no longer in a folder, or no longer the same file.
func (p *picker) forget(s *shelf, id string, c *candidate) {
	if c.state == pickBlocked {
		p.orphans += int(c.unmet)
	}
	c.state = pickGone
	delete(s.known, id)
}

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

// awake deals with what came due: a held task is promoted, another looked at again.
func (p *picker) awake(ctx context.Context) error {
	now := p.r.clk.Now()
	var promote []string
	var again []*candidate
	for c := p.firstWake(); c != nil && !c.wake.After(now); c = p.firstWake() {
		heap.Pop(&p.times)
		if c.held {
			promote = append(promote, c.id)
		} else {
			again = append(again, c)
		}
	}
	if err := p.putAll(ctx, again); err != nil {
		return err
	}
	if len(promote) == 0 {
		return nil
	}
	moved, err := p.r.promote(ctx, promote)
	came := map[string]bool{}
	for _, id := range moved {
		came[id] = true
		if c := p.held.known[id]; c != nil {
			p.forget(p.held, id, c)
		}
	}
	for _, id := range promote {
		// What could not be promoted stays a while: another has its name, or it
		// is another file by now, of which we hear.
		if c := p.held.known[id]; c != nil {
			p.putLater(c, now.Add(promoteAgain))
		}
	}
	if err != nil {
		return err
	}
	return p.look(ctx, p.pending, came)
}

// firstWake is the next in the heap of times that is still there.
func (p *picker) firstWake() *candidate {
	for c := p.times.first(); c != nil; c = p.times.first() {
		if c.state == pickLater {
			return c
		}
		heap.Pop(&p.times)
	}
	return nil
}

// save writes an index of all that is known when much had to be read.
func (p *picker) save(read int) error {
	n := len(p.pending.known) + len(p.held.known)
	if !worthSaving(read, n) {
		return nil
	}
	list := make([]*candidate, 0, n)
	for _, s := range []*shelf{p.pending, p.held} {
		for _, c := range s.known {
			list = append(list, c)
		}
	}
	return p.r.saveIndex(list)
}
