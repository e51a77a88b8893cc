package spool

import (
	"context"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// shelf is one folder of bodies as a picker knows it.
type shelf struct {
	place beeyard.Place
	dir   durable.Dir
	known map[string]*candidate
	stamp stamp
	gate  gate
	all   bool // a hint said that there is more than it could name
	seen  uint32
	// bad are names that are no task, by inode number: looked at again at polls.
	bad map[string]uint64
}

func newShelf(place beeyard.Place, dir durable.Dir) *shelf {
	return &shelf{place: place, dir: dir, known: map[string]*candidate{}, bad: map[string]uint64{}}
}

// catchUp makes the lists true: what was heard, what came due, and, when
// nothing is ready (dry), what a look at the folders tells. A look is spared
// where one fstat shows that nothing changed, and held back where it would take
// more than its share of the time.
func (p *picker) catchUp(ctx context.Context, dry bool) (err error) {
	h := p.hints.take()
	defer func() {
		if err != nil { // what was heard and not dealt with is found by listing
			p.pending.all, p.held.all, p.doneAt.valid = true, true, false
		}
	}()
	p.pending.all = p.pending.all || h.all[beeyard.PlacePending]
	p.held.all = p.held.all || h.all[beeyard.PlaceHeld]
	for _, s := range []*shelf{p.held, p.pending} {
		if err := p.look(ctx, s, h.ids[s.place]); err != nil {
			return err
		}
	}
	if err := p.lookMarked(ctx, dry); err != nil {
		return err
	}
	for id := range h.ids[beeyard.PlaceDone] {
		if err := p.finished(ctx, id); err != nil {
			return err
		}
	}
	for _, s := range []*shelf{p.held, p.pending} {
		if now, err := p.mustList(s, dry); err != nil {
			return err
		} else if now {
			if err := p.list(ctx, s); err != nil {
				return err
			}
		}
	}
	if err := p.askDone(ctx, dry, h.all[beeyard.PlaceDone]); err != nil {
		return err
	}
	if p.polled {
		if err := p.lookBad(ctx); err != nil {
			return err
		}
		p.polled = false
	}
	return p.awake(ctx)
}

// look reads single names that were heard of.
func (p *picker) look(ctx context.Context, s *shelf, ids map[string]bool) error {
	var fresh []listed
	for id := range ids {
		c, given := s.known[id], s == p.pending && p.given[id] != nil
		if given {
			c = p.given[id]
		}
		if c == nil {
			fresh = append(fresh, listed{id: id})
			continue
		}
		info, err := s.dir.Stat(bodyName(id))
		switch {
		case missing(err):
			if given {
				delete(p.given, id)
			}
			if c := s.known[id]; c != nil {
				p.forget(s, id, c)
			}
		case err != nil:
			return fmt.Errorf("look at task: %w", err)
		case info.Ino == c.ino && c.sameFile(info):
			// An event of the file that we know: its own enqueue's, mostly.
		default:
			fresh = append(fresh, listed{id: id})
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	got, err := p.r.readCandidates(ctx, s.dir, fresh)
	if err != nil {
		return err
	}
	return p.takeIn(ctx, s, got)
}

// hearing reports whether file events come for all folders.
func (p *picker) hearing() bool { return p.watch != nil && p.watch.Degraded() == nil }

// lookBad looks again at names that were no task: a slow producer may have
// finished writing, or they are old enough to be quarantined by now.
func (p *picker) lookBad(ctx context.Context) error {
	for _, s := range []*shelf{p.pending, p.held} {
		again := s.bad
		s.bad = map[string]uint64{}
		ids := map[string]bool{}
		for name, ino := range again {
			if id, ok := taskIDOf(name); ok {
				ids[id] = true
			} else if err := p.quarantine(ctx, s, notTask{name, ino, "its name cannot be an id"}); err != nil {
				return err
			}
		}
		if err := p.look(ctx, s, ids); err != nil {
			return err
		}
	}
	return nil
}

// quarantine hands a name that is no task on; it moves once it is old enough.
func (p *picker) quarantine(ctx context.Context, s *shelf, f notTask) error {
	there, err := p.r.strange(ctx, s.dir, f)
	if there {
		s.bad[f.name] = f.ino
	}
	return err
}
