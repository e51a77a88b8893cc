package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// found is one body of an id, and where.
type found struct {
	place beeyard.Place
	claim string // the claim directory's name when place is claimed
	name  string
	taken bool          // an x~taken.<r>: decided, about to move
	task  *beeyard.Task // nil when it cannot be read
}

// rank orders copies of one life at one revision: a finished one counts, then
// a claimed, a held, a pending one (invariant 6).
func (f *found) rank() int {
	switch f.place {
	case beeyard.PlaceDone, beeyard.PlaceFailed, beeyard.PlaceArchive:
		return 3
	case beeyard.PlaceClaimed:
		return 2
	case beeyard.PlaceHeld:
		return 1
	}
	return 0
}

// lookup finds every body of an id in the order pending, held, claimed, failed,
// done, archive. Under .queue.lock this order misses nothing that our programs
// move: each moves only forward in it without the lock. read says whether
// bodies are wanted; first stops at the first hit.
func (r *Run) lookup(ctx context.Context, id string, read, first bool) ([]found, error) {
	var all []found
	look := func(dir durable.Dir, p beeyard.Place, claim, name string, taken bool) (bool, error) {
		f := found{place: p, claim: claim, name: name, taken: taken}
		if !read {
			ok, err := dir.Exists(name)
			if err != nil || !ok {
				return false, err
			}
			all = append(all, f)
			return true, nil
		}
		t, _, err := readTask(dir, name, id)
		switch {
		case missing(err):
			return false, nil
		case errors.Is(err, beeyard.ErrNotTask):
		case err != nil:
			return false, err
		}
		f.task = t
		all = append(all, f)
		return true, nil
	}
	name := bodyName(id)
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld} {
		if hit, err := look(r.place(p), p, "", name, false); err != nil || hit && first {
			return all, err
		}
	}
	err := r.eachClaimDir(ctx, func(d string, dir durable.Dir) (bool, error) {
		if hit, err := look(dir, beeyard.PlaceClaimed, d, name, false); err != nil || hit && first {
			return false, err
		}
		taken, err := takenOf(dir, id)
		if err != nil {
			return false, err
		}
		for _, n := range taken {
			if hit, err := look(dir, beeyard.PlaceClaimed, d, n, true); err != nil || hit && first {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil || first && len(all) > 0 {
		return all, err
	}
	for _, p := range []beeyard.Place{beeyard.PlaceFailed, beeyard.PlaceDone} {
		if hit, err := look(r.place(p), p, "", name, false); err != nil || hit && first {
			return all, err
		}
	}
	archive, err := r.archiveDir()
	if err != nil {
		return all, err
	}
	_, err = look(archive, beeyard.PlaceArchive, "", name, false)
	return all, err
}

// eachClaimDir opens every directory below claimed/, ours and older programs',
// until f returns false. One that vanishes meanwhile is passed over.
func (r *Run) eachClaimDir(ctx context.Context, f func(name string, dir durable.Dir) (bool, error)) error {
	var names []string
	if err := r.claimed.Each(func(e durable.Entry) bool {
		names = append(names, e.Name)
		return true
	}); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	for _, n := range names {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		d, err := r.claimed.OpenDir(n)
		if err != nil {
			if !missing(err) {
				// A link, a file or another user's folder: no claim that we may touch.
				r.note("claimed/%s cannot be opened as a folder and is passed over: %v", n, err)
			}
			continue
		}
		more, err := f(n, d)
		if err = errors.Join(err, d.Close()); err != nil || !more {
			return err
		}
	}
	return nil
}

// takenOf lists x~taken.* of one id in a claim directory.
func takenOf(dir durable.Dir, id string) ([]string, error) {
	var names []string
	err := dir.Each(func(e durable.Entry) bool {
		if i, tag, _ := parseEntry(e.Name); tag == tagTaken && i == id {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list claim directory: %w", err)
	}
	return names, nil
}
