package spool

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// sighting is one name that stands for a task, and where it was seen.
type sighting struct {
	id    string
	place beeyard.Place
	ino   uint64
	typ   fs.FileMode
	claim string        // the claim directory's name
	taken string        // the name x~taken.<r> when the claim is decided
	task  *beeyard.Task // where it had to be read already
}

func (s *sighting) name() string {
	if s.taken != "" {
		return s.taken
	}
	return bodyName(s.id)
}

// scanner gathers the names of a run so that each task is there exactly once.
type scanner struct {
	r    *Run
	all  []sighting
	at   map[string]int32   // the first sighting of an id
	more map[string][]int32 // further ones, rare
	// only ids not seen in an earlier pass are wanted
	again bool
	known int
}

// scan lists the names in pending, held, claimed, failed and done, in this
// order: what moves forward meanwhile is seen once or more, never not at all.
// What moves back (a release, a retry) can slip past, so the pass is repeated
// for unknown ids when something came into pending or held meanwhile. Bodies
// are read only where one id was seen in several places.
func (r *Run) scan(ctx context.Context) ([]sighting, error) {
	s, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	return s.settle(ctx)
}

func (r *Run) look(ctx context.Context) (*scanner, error) {
	most := r.view.names.Load()
	s := &scanner{r: r, all: make([]sighting, 0, most+most/8), at: make(map[string]int32, most), more: map[string][]int32{}}
	for pass := range viewTries {
		before, err := r.marks()
		if err != nil {
			return nil, err
		}
		s.again, s.known = pass > 0, len(s.all)
		if err := s.pass(ctx); err != nil {
			return nil, err
		}
		after, err := r.marks()
		if err != nil {
			return nil, err
		}
		quiet := after == before && !before.fresh(r.clk.Now()) && !r.networked()
		if quiet || pass > 0 && len(s.all) == s.known {
			break
		}
	}
	r.view.names.Store(int64(len(s.all)))
	return s, nil
}

// marks change when something comes into pending or held, or a new claim
// directory is made.
type marks [3]time.Time

func (r *Run) marks() (marks, error) {
	var m marks
	for i, d := range []durable.Dir{r.pending, r.held, r.claimed} {
		info, err := d.Info()
		if missing(err) {
			continue
		}
		if err != nil {
			return m, fmt.Errorf("look at %s: %w", d.Path(), err)
		}
		m[i] = info.ModTime
	}
	return m, nil
}

// tick is more than the steps in which any kernel stamps times: two changes
// within one step leave one stamp.
const tick = 50 * time.Millisecond

// fresh reports whether a change just before the mark could hide one after it.
func (m marks) fresh(now time.Time) bool {
	for _, at := range m {
		if d := now.Sub(at); d > -tick && d < tick {
			return true
		}
	}
	return false
}

func (s *scanner) pass(ctx context.Context) error {
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld, beeyard.PlaceClaimed, beeyard.PlaceFailed, beeyard.PlaceDone} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p == beeyard.PlaceClaimed {
			if err := s.claims(ctx); err != nil {
				return err
			}
			continue
		}
		err := durable.EachName(s.r.place(p), func(name []byte, ino uint64, typ fs.FileMode) bool {
			if id, ok := taskIDOf(string(name)); ok {
				s.add(sighting{id: id, place: p, ino: ino, typ: typ})
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", p, err)
		}
	}
	return nil
}

func (s *scanner) claims(ctx context.Context) error {
	return s.r.eachClaimDir(ctx, func(d string, dir durable.Dir) (bool, error) {
		err := dir.Each(func(e durable.Entry) bool {
			id, tag, _ := parseEntry(e.Name)
			seen := sighting{id: id, place: beeyard.PlaceClaimed, ino: e.Ino, typ: e.Type, claim: d}
			switch tag {
			case tagTaken:
				seen.taken = e.Name
			case tagClaim:
				if _, ok := taskIDOf(e.Name); !ok {
					return true
				}
			default:
				return true
			}
			s.add(seen)
			return true
		})
		if err != nil {
			return true, fmt.Errorf("list claim directory: %w", err)
		}
		return true, nil
	})
}

func (s *scanner) add(f sighting) {
	first, seen := s.at[f.id]
	switch {
	case !seen:
		s.at[f.id] = int32(len(s.all))
	case s.again && int(first) < s.known:
		return
	default:
		s.more[f.id] = append(s.more[f.id], int32(len(s.all)))
	}
	s.all = append(s.all, f)
}

// settle decides about ids that were seen more than once: mostly one task that
// moved, and then only its last place is still there.
func (s *scanner) settle(ctx context.Context) ([]sighting, error) {
	if len(s.more) == 0 {
		return s.all, nil
	}
	drop := map[int32]bool{}
	for id, rest := range s.more {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		seen := append([]int32{s.at[id]}, rest...)
		var there []int32
		for _, i := range seen {
			ok, err := s.r.stillThere(&s.all[i])
			if err != nil {
				return nil, err
			}
			if ok {
				there = append(there, i)
			}
		}
		for _, i := range seen {
			drop[i] = true
		}
		if len(there) == 1 {
			delete(drop, there[0])
			continue
		}
		lives, err := s.r.livesOf(ctx, id)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, lives...)
	}
	kept := s.all[:0]
	for i := range s.all {
		if !drop[int32(i)] {
			kept = append(kept, s.all[i])
		}
	}
	return kept, nil
}

func (r *Run) stillThere(s *sighting) (bool, error) {
	if s.place != beeyard.PlaceClaimed {
		return r.place(s.place).Exists(s.name())
	}
	d, err := r.claimed.OpenDir(s.claim)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open claim directory: %w", err)
	}
	defer closeRead(d)
	return d.Exists(s.name())
}

// livesOf looks one id up with its bodies and gives what counts.
func (r *Run) livesOf(ctx context.Context, id string) ([]sighting, error) {
	for range viewTries {
		all, err := r.lookup(ctx, id, true, false)
		if err != nil {
			return nil, fmt.Errorf("look for task: %w", err)
		}
		var lives []sighting
		for _, f := range current(all) {
			if f.place == beeyard.PlaceArchive {
				continue // out of the way: not listed
			}
			l := sighting{id: id, place: f.place, claim: f.claim, task: f.task}
			if f.taken {
				l.taken = f.name
			}
			lives = append(lives, l)
		}
		if len(all) > 0 {
			return lives, nil
		}
	}
	return nil, nil
}
