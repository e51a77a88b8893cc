package spool

import (
	"context"
	"slices"
)

// takeIn adds what was read of a folder, in place of what was known under the
// same names.
func (p *picker) takeIn(ctx context.Context, s *shelf, got readings) error {
	p.unsaved += got.read
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

// save writes an index of all that is known when much had to be read.
func (p *picker) save() error {
	n := len(p.pending.known) + len(p.held.known)
	if !worthSaving(p.unsaved, n) {
		return nil
	}
	p.unsaved = 0
	list := make([]*candidate, 0, n)
	for _, s := range []*shelf{p.pending, p.held} {
		for _, c := range s.known {
			list = append(list, c)
		}
	}
	return p.r.saveIndex(list)
}
