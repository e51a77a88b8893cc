package spool

import (
	"context"
	"slices"

	"beeyard"
)

// withoutCompleted takes id off completed_tasks and runs then, all under
// .status.lock: then moves the task out of done/, and the list may at no moment
// name what done/ does not hold (invariant 9). Without the lock over both, a
// worker's fold in between would put the id back.
func (r *Run) withoutCompleted(ctx context.Context, id string, then func() error) error {
	// A damaged list is rebuilt first, outside the lock that is taken below.
	keep := func(*status) (*beeyard.Checkpoint, error) { return nil, nil }
	if _, err := r.editStatus(ctx, keep); err != nil {
		return checkpointError("read checkpoint", r.id, err)
	}
	unlock, err := r.lockStatus(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := r.readStatus()
	if err != nil {
		return checkpointError("read checkpoint", r.id, err)
	}
	if old != nil && slices.Contains(old.cp.CompletedTasks, id) {
		next := *old.cp
		next.CompletedTasks = slices.DeleteFunc(slices.Clone(old.cp.CompletedTasks), func(s string) bool { return s == id })
		next.Timestamp = beeyard.FormatTime(r.clk.Now())
		if _, err := r.writeStatus(&next, old); err != nil {
			return checkpointError("write checkpoint", r.id, err)
		}
	}
	return then()
}
