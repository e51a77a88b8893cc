package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

// depBodies finds what an unmet dependency is: few are read one by one, and
// when they become many, pending/ and held/ are read whole, by the index.
type depBodies struct {
	reads   int
	all     map[string]*candidate // once they are many
	claimed map[string]bool
	now     beeyard.Task // scratch
}

const bodiesFrom = 512

// node looks id up in the order in which tasks move, so that one that moves on
// meanwhile is met where it went.
func (b *depBodies) node(d *deps, id string) (*waitNode, error) {
	if err := context.Cause(d.ctx); err != nil {
		return nil, err
	}
	n := &waitNode{id: id, known: true}
	met, err := d.met(id)
	if err != nil || met {
		n.met, n.state = met, beeyard.StateDone
		return n, err
	}
	t, place, err := b.waiting(d, id)
	if err != nil {
		return nil, err
	}
	if t != nil {
		return n, b.judge(d, n, t, place)
	}
	if err := b.readClaims(d); err != nil {
		return nil, err
	}
	if b.claimed[id] {
		// It runs: whatever it waited for is behind it.
		n.state = beeyard.StateClaimed
		return n, nil
	}
	return n, b.ended(d, n)
}

// waiting finds a body in pending/ or held/.
func (b *depBodies) waiting(d *deps, id string) (*beeyard.Task, beeyard.Place, error) {
	if b.all == nil && b.reads >= bodiesFrom {
		b.all = map[string]*candidate{}
		for _, p := range []beeyard.Place{beeyard.PlaceHeld, beeyard.PlacePending} {
			if err := b.readAll(d, p); err != nil {
				return nil, "", err
			}
		}
	}
	if c := b.all[id]; c != nil {
		place := beeyard.PlacePending
		if c.held {
			place = beeyard.PlaceHeld
		}
		return c.task(&b.now), place, nil
	}
	if b.all != nil {
		return nil, "", nil
	}
	b.reads++
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld} {
		t, _, err := readTask(d.r.place(p), bodyName(id), id)
		switch {
		case err == nil:
			return t, p, nil
		case errors.Is(err, beeyard.ErrNotTask), errors.Is(err, fs.ErrPermission):
			// It is there, and no task that could end: on its way to quarantine.
			return nil, beeyard.PlaceQuarantine, nil
		case !missing(err):
			return nil, "", err
		}
	}
	return nil, "", nil
}

func (b *depBodies) readAll(d *deps, p beeyard.Place) error {
	dir := d.r.place(p)
	var names []listed
	err := durable.EachName(dir, func(name []byte, ino uint64, _ fs.FileMode) bool {
		if id, ok := idOfName(name); ok {
			names = append(names, listed{id: string(id), ino: ino})
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", p, err)
	}
	got, err := d.r.loadCandidates(d.ctx, dir, names)
	for _, c := range got.good {
		c.held = p == beeyard.PlaceHeld
		b.all[c.id] = c
	}
	return errors.Join(err, got.err)
}

// judge asks the one function for the state. It depends on whether each
// dependency is met, not on why.
func (b *depBodies) judge(d *deps, n *waitNode, t *beeyard.Task, place beeyard.Place) error {
	var failed error
	v := beeyard.Judge(t, place, d.r.clk.Now(), func(id string) beeyard.Dep {
		met, err := d.met(id)
		failed = errors.Join(failed, err)
		return beeyard.Dep{ID: id, Met: met, Known: true}
	})
	if failed != nil {
		return failed
	}
	n.state = v.State
	for _, why := range v.Reasons {
		n.stuck = n.stuck || why.Stuck
	}
	for _, id := range t.DependsOn {
		if met, _ := d.met(id); !met || id == n.id {
			n.next = append(n.next, id)
		}
	}
	return nil
}

func (b *depBodies) readClaims(d *deps) error {
	if b.claimed != nil {
		return nil
	}
	claimed := map[string]bool{}
	err := d.r.eachClaimDir(d.ctx, func(_ string, dir durable.Dir) (bool, error) {
		err := dir.Each(func(e durable.Entry) bool {
			if id, tag, _ := parseEntry(e.Name); tag == tagClaim || tag == tagTaken {
				claimed[id] = true
			}
			return true
		})
		if err != nil {
			return false, fmt.Errorf("list claim directory: %w", err)
		}
		return true, nil
	})
	if err == nil {
		b.claimed = claimed
	}
	return err
}

// ended looks where tasks end without being done.
func (b *depBodies) ended(d *deps, n *waitNode) error {
	t, _, err := readTask(d.r.failed, bodyName(n.id), n.id)
	switch {
	case err == nil:
		n.state, n.stuck = beeyard.Judge(t, beeyard.PlaceFailed, d.r.clk.Now(), nil).State, true
		return nil
	case errors.Is(err, beeyard.ErrNotTask), errors.Is(err, fs.ErrPermission):
		n.state, n.stuck = beeyard.StateFailed, true
		return nil
	case !missing(err):
		return err
	}
	// It may have been done while we looked elsewhere.
	if there, err := d.r.done.Exists(bodyName(n.id)); err != nil || there {
		n.met, n.state = there, beeyard.StateDone
		if err != nil {
			return fmt.Errorf("look for dependency: %w", err)
		}
		d.known[n.id] = true
		return nil
	}
	n.stuck = true
	if out, ok := d.pruned[n.id]; ok {
		n.state = beeyard.ArchivedState(&beeyard.Task{Ext: beeyard.Ext{Outcome: out}})
		return nil
	}
	if t, err := d.archived(n.id); err != nil || t != nil {
		if err == nil {
			n.state = beeyard.ArchivedState(t)
		}
		return err
	}
	for _, dir := range []durable.Dir{d.r.pending, d.r.held, d.r.quarantine} {
		there, err := dir.Exists(bodyName(n.id))
		if err != nil {
			return fmt.Errorf("look for dependency: %w", err)
		}
		if there {
			n.state = beeyard.StateQuarantined
			return nil
		}
	}
	n.known = false
	return nil
}
