package spool

import (
	"container/heap"
	"context"
	"time"
)

func (p *picker) putLater(c *candidate, wake time.Time) {
	c.state, c.wake = pickLater, wake
	heap.Push(&p.times, c)
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
