package spool

import (
	"fmt"
	"time"

	"beeyard/internal/durable"
)

// stamp answers whether a folder may hold another set of names than when it
// was listed last, by one fstat.
type stamp struct {
	valid bool
	mod   time.Time
	first time.Duration // when a listing first saw this mod
	last  time.Duration // when the latest listing began
}

// unchanged reports whether a listing now would give what the last one gave.
// Two changes within one step of the kernel's clock leave one stamp, so a stamp
// counts only once it was seen by two listings more than a step apart. Other
// hosts' changes may reach us late, so on network file systems it never does.
func (s *stamp) unchanged(r *Run, dir durable.Dir) (bool, error) {
	if !s.valid || s.last-s.first < tick || r.networked() {
		return false, nil
	}
	info, err := dir.Info()
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", dir.Path(), err)
	}
	return info.ModTime.Equal(s.mod), nil
}

// listing notes that a listing begins now.
func (s *stamp) listing(dir durable.Dir, now time.Duration) error {
	info, err := dir.Info()
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir.Path(), err)
	}
	if !s.valid || !s.mod.Equal(info.ModTime) {
		s.valid, s.mod, s.first = true, info.ModTime, now
	}
	s.last = now
	return nil
}

// gate bounds what looks may take of the time: a twentieth. Cheap ones pass
// always, so that small runs are looked at exactly; between two claims that both
// succeed (busy) only those that cost less than a claim does.
type gate struct {
	ran  bool
	last time.Duration // when it ended
	cost time.Duration
}

const (
	gateCheap = 2 * time.Millisecond
	gateBusy  = 100 * time.Microsecond
	gateShare = 20
)

func (g *gate) open(now time.Duration, dry bool) bool {
	cheap := gateBusy
	if dry {
		cheap = gateCheap
	}
	return !g.ran || g.cost < cheap || now-g.last >= gateShare*g.cost
}

func (g *gate) ended(began, now time.Duration) {
	g.ran, g.last, g.cost = true, now, now-began
}
