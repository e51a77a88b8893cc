package spool

import (
	"context"

	"beeyard"
)

// judge decides, under the lock, which additions may be published.
func (r *Run) judge(ctx context.Context, adds []*addition, rule usedRule) error {
	hits, err := r.uses(ctx, openIDs(adds, true))
	if err != nil {
		return err
	}
	marks, err := r.foldMarks(adds)
	if err != nil {
		return err
	}
	var no refusals
	for _, a := range adds {
		if a.status != statusNone {
			continue
		}
		f, used := hits[a.task.ID]
		if used {
			a.found = f
			if err := r.whenUsed(ctx, a, rule); err != nil {
				no.add(err)
			}
			continue
		}
		other, err := r.foldedElsewhere(ctx, a.task.ID, hits, marks)
		switch {
		case err != nil:
			return err
		case other == "":
		case rule == followUps:
			a.status = statusSkipped
		default:
			no.add(foldClash(a.task.ID, other))
		}
	}
	// A follow-up was checked when it was asked for, and is promised: one that
	// got into a cycle since is published and shown as blocked by it.
	if rule == followUps || no.n > 0 {
		return no.err()
	}
	return r.checkCycles(ctx, adds)
}

// whenUsed gives an addition whose id is in use its fate.
func (r *Run) whenUsed(ctx context.Context, a *addition, rule usedRule) error {
	waits := a.found.place == beeyard.PlacePending || a.found.place == beeyard.PlaceHeld
	switch {
	case rule == skipUsed:
		a.exists(a.found)
	case rule == followUps:
		same, err := r.livesHere(ctx, a.task)
		if err != nil {
			return err
		}
		a.status = statusSkipped
		if same {
			a.status = statusEnqueued
		}
	case rule == replacePending && waits:
		a.status = statusReplace
	case rule == replacePending:
		return &beeyard.Error{Op: "replace", ID: a.task.ID, Err: beeyard.Because(beeyard.ErrConflict, inUseText(a.found)),
			Hint: "a task can be replaced while it waits to run"}
	default:
		return inUseError(a.task.ID, a.found)
	}
	return nil
}

// livesHere reports whether this very life is in the run: an earlier finisher
// of the same decision published it.
func (r *Run) livesHere(ctx context.Context, t *beeyard.Task) (bool, error) {
	all, err := r.lookup(ctx, t.ID, true, false)
	if err != nil {
		return false, err
	}
	for _, f := range all {
		if f.task != nil && f.task.Life() == t.Life() {
			return true, nil
		}
	}
	return false, nil
}
