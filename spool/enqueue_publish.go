package spool

import (
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

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
			switch rule {
			case skipUsed:
				a.exists(a.found)
				return nil
			case followUps:
				a.status = statusSkipped
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
