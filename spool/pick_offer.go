package spool

import (
	"context"
	"fmt"
	"math/bits"

	"beeyard"
)

// offer merges the index's entries and what was read, both in claim order, and
// offers what is ready.
func (o *once) offer(ctx context.Context, try func(id string) (bool, error)) (won bool, err error) {
	var scratch beeyard.Task
	var entry candidate
	now := o.r.clk.Now()
	for i := o.nextHere(0); ; {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		var c *candidate
		fromIndex := false
		if i >= 0 {
			if !o.x.candidate(i, &entry) {
				o.drop(i)
				i = o.nextHere(i + 1)
				continue
			}
			c, fromIndex = &entry, true
		}
		if len(o.queue) > 0 && (c == nil || o.queue[0].compare(c) < 0) {
			c, fromIndex = o.queue[0], false
		}
		if c == nil {
			return false, nil
		}
		at := i
		if fromIndex {
			i = o.nextHere(i + 1)
		} else {
			o.queue = o.queue[1:]
		}
		if !c.match(o.f, &scratch) || !c.dueBy(now) {
			continue
		}
		if ready, err := o.met(c); err != nil {
			return false, err
		} else if !ready {
			continue
		}
		if fromIndex {
			same, err := o.same(ctx, c, at)
			if err != nil {
				return false, err
			}
			if !same {
				continue
			}
		}
		if won, err := try(c.id); err != nil || won {
			return won, err
		}
		if fromIndex {
			o.drop(at)
		}
	}
}

func (o *once) nextHere(from int) int {
	for from < o.x.len() {
		if w := o.here[from/64] >> (from % 64); w != 0 {
			return from + bits.TrailingZeros64(w)
		}
		from = (from/64 + 1) * 64
	}
	return -1
}

func (o *once) met(c *candidate) (bool, error) {
	for _, d := range c.deps {
		if d == c.id {
			return false, nil
		}
		if met, err := o.deps.met(d); err != nil || !met {
			return false, err
		}
	}
	return true, nil
}

// same proves the one entry that is about to be offered, and reads the file
// again when it is another: it then comes in its own place in the order.
func (o *once) same(ctx context.Context, c *candidate, at int) (bool, error) {
	info, err := o.r.pending.Stat(bodyName(c.id))
	if missing(err) {
		o.drop(at)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at task: %w", err)
	}
	if c.sameFile(info) {
		return true, nil
	}
	o.drop(at)
	got, err := o.r.readCandidates(ctx, o.r.pending, []listed{{id: c.id, ino: c.ino}})
	if err != nil {
		return false, err
	}
	o.add(got)
	return false, nil
}

// save writes an index of what is known now. A listing that was cut short says
// nothing of entries beyond it: they stay, while they are not too many.
func (o *once) save() error {
	at := make([]int32, o.x.len())
	keep := !o.whole && len(at) < indexMost/2
	for i := range at {
		at[i] = int32(i)
		if !keep && !o.isHere(i) {
			at[i] = -1
		}
	}
	for _, c := range o.all {
		if i := o.x.find([]byte(c.id), c.ino); i >= 0 {
			at[i] = -1 // read anew
		}
	}
	sortCandidates(o.all)
	return o.r.saveIndex(mergeCandidates(o.x.take(at), o.all))
}
