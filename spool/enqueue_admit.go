package spool

import (
	"context"
	"errors"

	"beeyard"
)

// usedRule says what becomes of an addition whose id is in use.
type usedRule int

const (
	refuseUsed     usedRule = iota
	skipUsed                // it is passed over
	replacePending          // it is noted for replaceAll while it waits to run, else refused
	followUps               // published before by another finisher, or passed over and reported
)

// admit publishes additions: temporary files, one flush of their data, the
// lock, all looks and all renames under it, one flush of the names. Never a
// name before its data; temporary files are removed on an error.
func (r *Run) admit(ctx context.Context, adds []*addition, rule usedRule, onEach func(int)) (err error) {
	if rule == skipUsed {
		// What is in use stays so: found without the lock, it need not be written.
		if err := r.passOver(ctx, adds); err != nil {
			return err
		}
	}
	defer func() { r.dropTemps(adds) }()
	if err := r.stage(ctx, adds); err != nil {
		return err
	}
	if fresh(adds) > 0 {
		unlock, err := r.lockQueue(ctx)
		if err != nil {
			return err
		}
		err = r.judge(ctx, adds, rule)
		if err == nil {
			err = r.publishAll(adds, rule, onEach)
		}
		unlock()
		if err != nil {
			return errors.Join(err, r.settleNames(adds))
		}
	}
	return r.settleNames(adds)
}

// fresh counts those whose fate is open.
func fresh(adds []*addition) int {
	n := 0
	for _, a := range adds {
		if a.status == statusNone {
			n++
		}
	}
	return n
}

func (r *Run) passOver(ctx context.Context, adds []*addition) error {
	hits, err := r.uses(ctx, openIDs(adds, false))
	if err != nil {
		return err
	}
	for _, a := range adds {
		if f, used := hits[a.task.ID]; used && a.status == statusNone {
			a.exists(f)
		}
	}
	return nil
}

// openIDs lists the ids whose fate is open, and with folds their lower-case forms.
func openIDs(adds []*addition, folds bool) []string {
	ids := make([]string, 0, len(adds))
	for _, a := range adds {
		if a.status != statusNone {
			continue
		}
		ids = append(ids, a.task.ID)
		if f := beeyard.Fold(a.task.ID); folds && f != a.task.ID {
			ids = append(ids, f)
		}
	}
	return ids
}
