package spool

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// netEvery is how often a picker that is never idle looks all the same: an
// event may have been lost.
const netEvery = 30 * time.Second

func (p *picker) mustList(s *shelf, dry bool) (bool, error) {
	now := clock.Elapsed(p.r.clk)
	switch {
	case !s.gate.ran:
		return true, nil
	case !s.gate.open(now, dry) && !p.polled:
		return false, nil
	case s.all:
		return true, nil
	case !dry && !p.polled && p.hearing() && now-s.gate.last < netEvery:
		return false, nil
	}
	same, err := s.stamp.unchanged(p.r, s.dir)
	return !same, err
}

// list reads the names of a folder and takes in the difference.
func (p *picker) list(ctx context.Context, s *shelf) error {
	began := clock.Elapsed(p.r.clk)
	if err := s.stamp.listing(s.dir, began); err != nil {
		return err
	}
	s.seen++
	var fresh []listed
	var odd []notTask
	gone := len(s.known)
	err := durable.EachName(s.dir, func(name []byte, ino uint64, _ fs.FileMode) bool {
		id, ok := idOfName(name)
		if !ok {
			if len(id) > 0 || string(name) == ".json" {
				odd = append(odd, notTask{string(name), ino, "its name cannot be an id"})
			}
			return true
		}
		if len(s.bad) > 0 && ino != 0 && s.bad[string(name)] == ino {
			return true
		}
		if c := s.known[string(id)]; c != nil && c.ino == ino && ino != 0 {
			if c.seen != s.seen {
				c.seen = s.seen
				gone--
			}
			return true
		}
		fresh = append(fresh, listed{id: string(id), ino: ino})
		return true
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", s.place, err)
	}
	s.all = false
	if s == p.pending {
		p.sick = nil
	}
	if gone > 0 {
		for id, c := range s.known {
			if c.seen != s.seen {
				p.forget(s, id, c)
			}
		}
		p.sweepWaits()
	}
	if s == p.pending {
		if fresh, err = p.notGiven(s, fresh); err != nil {
			return err
		}
	}
	got, err := p.r.loadCandidates(ctx, s.dir, fresh)
	if err != nil {
		return err
	}
	got.bad = append(got.bad, odd...)
	if err := p.takeIn(ctx, s, got); err != nil {
		return err
	}
	if err := p.save(); err != nil {
		p.r.note("the index of pending tasks could not be written; claims go on without it: %v", err)
	}
	s.gate.ended(began, clock.Elapsed(p.r.clk))
	return nil
}

// notGiven leaves out what was handed out a moment ago and is about to be
// claimed. It is the same file; another one is a task that came back.
func (p *picker) notGiven(s *shelf, fresh []listed) ([]listed, error) {
	now := clock.Elapsed(p.r.clk)
	kept := fresh[:0]
	still := map[string]*candidate{}
	for _, l := range fresh {
		c := p.given[l.id]
		if c != nil && c.ino == l.ino && now-c.given < givenFor {
			info, err := s.dir.Stat(bodyName(l.id))
			if err != nil && !missing(err) {
				return nil, fmt.Errorf("look at task: %w", err)
			}
			if err == nil && c.sameFile(info) {
				still[l.id] = c
				s.stamp.valid = false // look again, though nothing changes
				continue
			}
		}
		// In full: what was claimed, found to be no task and put back passed for
		// one when it was read as a candidate.
		l.full = c != nil
		kept = append(kept, l)
	}
	p.given = still
	return kept, nil
}

// idOfName is taskIDOf for a name that is still in the listing's buffer; id is
// set for every name that ends in .json.
func idOfName(name []byte) (id []byte, ok bool) {
	const end = len(".json")
	if len(name) < end || string(name[len(name)-end:]) != ".json" {
		return nil, false
	}
	id = name[:len(name)-end]
	for _, c := range id {
		// The common case costs no allocation: plain ASCII without control characters.
		if c < 0x20 || c >= 0x7f {
			return id, beeyard.CheckStoredID(string(id)) == nil
		}
	}
	return id, len(id) > 0 && len(id) <= beeyard.MaxIDBytes && string(id) != "." && string(id) != ".."
}
