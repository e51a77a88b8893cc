package spool

import (
	"context"

	"beeyard"
)

// eachWaiting hands over what waits in pending and held: from the index where
// that knows the file, else from its body, read as far as choosing reads it.
// The task is good during the call only. A look that had to read many leaves
// the index for the next one.
func (r *Run) eachWaiting(ctx context.Context, seen []sighting, f func(s *sighting, b *sightedBody) error) error {
	rest, at := seen, []int(nil)
	x := r.openIndex()
	defer x.close()
	if x.len() > 0 {
		at = make([]int, len(seen))
		rest = nil
		for i := range seen {
			at[i] = -1
			if seen[i].ino != 0 {
				at[i] = x.find([]byte(seen[i].id), seen[i].ino)
			}
			if at[i] < 0 {
				rest = append(rest, seen[i])
			}
		}
	}
	var keep []*candidate
	saving := !r.ro && worthSaving(len(rest), len(seen))
	var scratch beeyard.Task
	for i := range at {
		if at[i] < 0 {
			continue
		}
		c := &candidate{}
		if !x.candidate(at[i], c) {
			rest = append(rest, seen[i])
			continue
		}
		if saving {
			keep = append(keep, c)
		}
		if err := f(&seen[i], &sightedBody{task: c.task(&scratch), cand: c}); err != nil {
			return err
		}
	}
	err := r.eachBody(ctx, rest, peekTask, func(s *sighting, b *sightedBody) error {
		if saving && b.task != nil && s.ino != 0 && s.ino == b.info.Ino {
			keep = append(keep, newCandidate(b.task, s.ino, b.info))
		}
		return f(s, b)
	})
	if err != nil || !saving {
		return err
	}
	if err := r.saveIndex(keep); err != nil {
		r.note("the index could not be written: %v", err)
	}
	return nil
}
