package spool

import (
	"context"
	"encoding/json"
	"errors"

	"beeyard"
)

// OlderStatus is what a compatibility status-write says. What is left out
// becomes null: older chains signal completion by leaving out the next task.
type OlderStatus struct {
	Summary, NextStep         string
	NextTaskID, CurrentWorker *string
	Risk                      string
	Metadata                  map[string]json.RawMessage // merged
}

func (s OlderStatus) edit() beeyard.CheckpointEdit {
	return beeyard.CheckpointEdit{Summary: &s.Summary, NextStep: &s.NextStep, Risk: &s.Risk,
		NextTaskID: s.NextTaskID, CurrentWorker: s.CurrentWorker, Metadata: s.Metadata}
}

// InitStatus makes status.json, or makes it anew: nothing of an earlier one is
// kept but what done/ says has run. A damaged one is kept aside; one of an
// unknown major version is refused (ErrSchema). On nil it is durable.
func (c *Compat) InitStatus(ctx context.Context, runID string, s OlderStatus) error {
	r := c.r
	if err := errors.Join(r.writable("init status"), checkRunID(runID), checkEdit(s.edit())); err != nil {
		return err
	}
	_, err := r.editStatus(ctx, func(*status) (*beeyard.Checkpoint, error) {
		fresh, err := r.joinDone(nil)
		if err != nil {
			return nil, err
		}
		return &beeyard.Checkpoint{RunID: runID, Summary: s.Summary, NextStep: s.NextStep, NextTaskID: s.NextTaskID,
			CompletedTasks: fresh, Timestamp: beeyard.FormatTime(r.clk.Now()), Metadata: s.Metadata}, nil
	})
	if err != nil {
		return checkpointError("init checkpoint", r.id, err)
	}
	return nil
}

func checkRunID(id string) error {
	if id == "" || len(id) > maxRunID || !beeyard.ValidText(id) {
		return &beeyard.Error{Op: "check run id", ID: id, Err: beeyard.Because(beeyard.ErrUsage, "a run id is 1 to 1024 bytes of UTF-8 text")}
	}
	return nil
}

// WriteStatus changes status.json, and makes it when there is none. run_id,
// completed_tasks, metadata that is not named and other programs' keys stay. On
// nil it is durable.
func (c *Compat) WriteStatus(ctx context.Context, s OlderStatus) error {
	r := c.r
	if err := errors.Join(r.writable("write status"), checkEdit(s.edit())); err != nil {
		return err
	}
	_, err := r.editStatus(ctx, func(old *status) (*beeyard.Checkpoint, error) {
		base := beeyard.Checkpoint{RunID: r.id}
		if old != nil {
			base = *old.cp
		}
		base.NextTaskID, base.CurrentWorker, base.ResumeCommand = nil, nil, nil
		next := base.Apply(s.edit(), r.clk.Now())
		fresh, err := r.joinDone(old.completed())
		if err != nil {
			return nil, err
		}
		next.CompletedTasks = appendIDs(next.CompletedTasks, fresh)
		return &next, nil
	})
	if err != nil {
		return checkpointError("write checkpoint", r.id, err)
	}
	return nil
}

// Status reads status.json without mending it, joined with done/. ErrNotFound
// when there is none, ErrCorrupt when it cannot be read.
func (c *Compat) Status(context.Context) (*beeyard.Checkpoint, error) {
	r := c.r
	s, err := r.readStatus()
	if err != nil {
		return nil, checkpointError("read checkpoint", r.id, err)
	}
	if s == nil {
		return nil, &beeyard.Error{Op: "read checkpoint", ID: r.id, Err: beeyard.Because(beeyard.ErrNotFound, "the run has no status.json"),
			Hint: "status-init makes one"}
	}
	fresh, _, err := r.doneBeyond(s.completed())
	if err != nil {
		return nil, err
	}
	return s.copy(fresh), nil
}
