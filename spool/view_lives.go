package spool

import (
	"slices"

	"beeyard"
)

// current picks of all bodies of one id those that count: of each life one, by
// invariant 6 (higher rev, then how far it came). The first is the one that the
// id stands for: what may still run before what has ended, the later end first.
// What cannot be read has no life that we know of, so each counts.
func current(all []found) []found {
	var best []found
	for _, f := range all {
		if f.task == nil {
			best = append(best, f)
			continue
		}
		at := slices.IndexFunc(best, func(b found) bool {
			return b.task != nil && b.task.Life() == f.task.Life()
		})
		switch {
		case at < 0:
			best = append(best, f)
		case outranks(&f, &best[at]):
			best[at] = f
		}
	}
	slices.SortStableFunc(best, func(a, b found) int { return standing(&b) - standing(&a) })
	from := slices.IndexFunc(best, func(f found) bool { return standing(&f) == endedStanding })
	if from >= 0 {
		to := from
		for to < len(best) && standing(&best[to]) == endedStanding {
			to++
		}
		slices.SortStableFunc(best[from:to], func(a, b found) int { return laterFirst(a.task, b.task) })
	}
	return best
}

// outranks is invariant 6 for two copies of one life.
func outranks(a, b *found) bool {
	if a.task.Ext.Rev != b.task.Ext.Rev {
		return a.task.Ext.Rev > b.task.Ext.Rev
	}
	return a.rank() > b.rank()
}

const endedStanding = 0

func standing(f *found) int {
	switch {
	case f.task == nil:
		return endedStanding - 1
	case f.place == beeyard.PlaceClaimed:
		return 3
	case f.place == beeyard.PlacePending:
		return 2
	case f.place == beeyard.PlaceHeld:
		return 1
	}
	return endedStanding
}

func laterFirst(a, b *beeyard.Task) int {
	switch {
	case later(a, b):
		return -1
	case later(b, a):
		return 1
	}
	return 0
}
