package spool

import (
	"context"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

const (
	// listFrom is the number of names from which one listing may be cheaper than
	// a look for each.
	listFrom = 16
	// A look costs about as much as listNames listed names.
	listNames = 8
)

// present reports which names a folder has. Many are found by one listing,
// unless the folder turns out so large that looking for each is cheaper.
func present(dir durable.Dir, names map[string]bool) (map[string]bool, error) {
	have := map[string]bool{}
	if len(names) >= listFrom {
		left := listNames * len(names)
		whole := true
		err := durable.EachName(dir, func(n []byte, _ uint64, _ fs.FileMode) bool {
			if left--; left < 0 {
				whole = false
				return false
			}
			if names[string(n)] {
				have[string(n)] = true
			}
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir.Path(), err)
		}
		if whole {
			return have, nil
		}
	}
	for n := range names {
		ok, err := dir.Exists(n)
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", beeyard.Quote(n), err)
		}
		if ok {
			have[n] = true
		}
	}
	return have, nil
}

// uses finds those of the ids that are in use anywhere in the run, and where
// each was found first. One look at each folder, in the order pending, held,
// claimed, failed, done, archive, then the pruned list and the checkpoint: a
// task moves only forward in that order without .queue.lock, so while the
// caller holds it nothing of ours is missed (invariant 7).
func (r *Run) uses(ctx context.Context, ids []string) (map[string]found, error) {
	hits := make(map[string]found)
	left := make(map[string]bool, len(ids)) // file names not found yet
	for _, id := range ids {
		left[bodyName(id)] = true
	}
	look := func(p beeyard.Place, dir durable.Dir) error {
		have, err := present(dir, left)
		for name := range have {
			id, _ := taskIDOf(name)
			hits[id] = found{place: p, name: name}
			delete(left, name)
		}
		return err
	}
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld} {
		if err := look(p, r.place(p)); err != nil {
			return nil, err
		}
	}
	if len(left) == 0 {
		return hits, nil
	}
	err := r.eachClaimDir(ctx, func(d string, dir durable.Dir) (bool, error) {
		err := dir.Each(func(e durable.Entry) bool {
			id, tag, _ := parseEntry(e.Name)
			if (tag == tagClaim || tag == tagTaken) && left[bodyName(id)] {
				hits[id] = found{place: beeyard.PlaceClaimed, claim: d, name: e.Name, taken: tag == tagTaken}
				delete(left, bodyName(id))
			}
			return true
		})
		if err != nil {
			return false, fmt.Errorf("list claimed/%s: %w", d, err)
		}
		return len(left) > 0, nil
	})
	if err != nil {
		return nil, err
	}
	archive, err := r.archiveDir()
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		place beeyard.Place
		dir   durable.Dir
	}{{beeyard.PlaceFailed, r.failed}, {beeyard.PlaceDone, r.done}, {beeyard.PlaceArchive, archive}} {
		if len(left) == 0 {
			return hits, nil
		}
		if err := look(f.place, f.dir); err != nil {
			return nil, err
		}
	}
	return hits, r.usedByName(left, hits)
}

// usedByName adds ids of which only the name is left.
func (r *Run) usedByName(left map[string]bool, hits map[string]found) error {
	pruned, err := r.pruned()
	if err != nil {
		return err
	}
	completed, err := r.completedSet()
	if err != nil {
		return fmt.Errorf("read completed tasks: %w", err)
	}
	for name := range left {
		id, _ := taskIDOf(name)
		if _, ok := pruned[id]; ok {
			hits[id] = found{place: beeyard.PlaceArchive}
		} else if completed[id] {
			hits[id] = found{place: beeyard.PlaceDone}
		}
	}
	return nil
}

// inUse is uses for one id. The caller holds .queue.lock.
func (r *Run) inUse(ctx context.Context, id string) (found, bool, error) {
	hits, err := r.uses(ctx, []string{id})
	if err != nil {
		return found{}, false, err
	}
	f, ok := hits[id]
	return f, ok, nil
}
