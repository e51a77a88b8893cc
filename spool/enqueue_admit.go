package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
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
			a.status, a.found, a.body = statusExists, f, nil
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
		a.status = statusExists
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

// publishAll renames what was admitted. The caller holds the lock and has
// flushed the data.
func (r *Run) publishAll(adds []*addition, rule usedRule, onEach func(int)) error {
	if err := r.publishMarks(adds); err != nil {
		return err
	}
	done := 0
	for _, a := range adds {
		if a.status == statusNone {
			if err := r.publishOne(a, rule); err != nil {
				return err
			}
		}
		if done++; onEach != nil && (done%1024 == 0 || done == len(adds)) {
			onEach(done)
		}
	}
	return nil
}

func (r *Run) publishOne(a *addition, rule usedRule) error {
	if a.task.Ext.Priority > 0 {
		// Before the name: a one-shot claim must not overlook it.
		if err := r.markPriority(a.task.ID); err != nil {
			return fmt.Errorf("mark priority: %w", err)
		}
	}
	dir, name := r.place(a.place), bodyName(a.task.ID)
	err := dir.RenameExcl(a.temp, dir, name)
	if err != nil {
		// On NFS a repeat of a rename that was done fails: the body tells.
		there, _, readErr := readTask(dir, name, a.task.ID)
		switch {
		case readErr == nil && there.Life() == a.task.Life():
			_ = dir.Remove(a.temp) // link, then unlink: the second name may be left
		case errors.Is(err, fs.ErrExist):
			// An older program takes no lock.
			a.found = found{place: a.place, name: name}
			if rule == skipUsed || rule == followUps {
				a.status = map[usedRule]string{skipUsed: statusExists, followUps: statusSkipped}[rule]
				return nil
			}
			return inUseError(a.task.ID, a.found)
		default:
			return fmt.Errorf("publish %s: %w", beeyard.Quote(a.task.ID), err)
		}
	}
	a.status, a.temp = statusEnqueued, ""
	return nil
}

// settleNames makes durable what the statuses say. What could not be flushed
// is taken out of the answer. "exists" answers for somebody else's enqueue,
// which may be just before its own flush: it is flushed here as well.
func (r *Run) settleNames(adds []*addition) error {
	var dirs []durable.Dir
	for _, a := range adds {
		switch {
		case a.status == statusEnqueued:
			dirs = append(dirs, r.place(a.place))
		case a.status == statusExists && a.found.place == beeyard.PlaceHeld:
			dirs = append(dirs, r.held)
		case a.status == statusExists && (a.found.place == beeyard.PlacePending || a.found.place == beeyard.PlaceClaimed):
			dirs = append(dirs, r.pending)
		}
	}
	if err := durable.SyncDirs(dirs...); err != nil {
		for _, a := range adds {
			if a.status == statusEnqueued || a.status == statusExists {
				a.status = statusNone
			}
		}
		return fmt.Errorf("sync published names: %w", err)
	}
	for _, a := range adds {
		if a.status == statusEnqueued && a.found.place == "" {
			r.event("enqueued", a.task, "", "")
			r.pickHint(a.task.ID, a.place)
		}
	}
	return nil
}
