package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"beeyard"
	"beeyard/internal/durable"
)

// surveyed bounds how many bodies of pending/ are read to find the best ready
// one, as for a single claim.
const surveyed = 1024

// firstLeft is what a rebuilt checkpoint points at: the first claimed id, else
// the best ready one, else the first blocked, else one that waits or is held.
// nil means that nothing is left.
func (r *Run) firstLeft(ctx context.Context) (*string, error) {
	claimed, err := r.firstClaimed(ctx)
	if err != nil || claimed != nil {
		return claimed, err
	}
	deps := r.newDeps(ctx)
	open, err := idsIn(r.pending)
	if err != nil {
		return nil, err
	}
	var best *beeyard.Task
	var rest *string
	for i, id := range open {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if i >= surveyed && (best != nil || rest != nil) {
			break
		}
		t, _, err := readTask(r.pending, bodyName(id), id)
		switch {
		case missing(err), errors.Is(err, beeyard.ErrNotTask):
			continue
		case err != nil:
			return nil, err
		}
		if beeyard.Judge(t, beeyard.PlacePending, r.clk.Now(), deps.dep).State != beeyard.StateReady {
			if rest == nil {
				rest = &t.ID
			}
		} else if best == nil || beeyard.Before(t, best) {
			best = t
		}
	}
	if best != nil {
		return &best.ID, nil
	}
	if rest != nil {
		return rest, nil
	}
	waiting, err := idsIn(r.held)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	return &waiting[0], nil
}

func (r *Run) firstClaimed(ctx context.Context) (*string, error) {
	var first *string
	err := r.eachClaimDir(ctx, func(_ string, dir durable.Dir) (bool, error) {
		return true, dir.Each(func(e durable.Entry) bool {
			id, tag, _ := parseEntry(e.Name)
			if (tag == tagClaim || tag == tagTaken) && beeyard.CheckStoredID(id) == nil && (first == nil || id < *first) {
				first = &id
			}
			return true
		})
	})
	return first, err
}

// idsIn lists the ids of a state folder, sorted.
func idsIn(dir durable.Dir) ([]string, error) {
	var ids []string
	err := dir.Each(func(e durable.Entry) bool {
		if id, ok := taskIDOf(e.Name); ok {
			ids = append(ids, id)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir.Path(), err)
	}
	slices.Sort(ids)
	return ids, nil
}
