package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

// rebuild is what a damaged status.json is replaced by, but for the completed
// tasks, which are listed when it is written.
type rebuild struct {
	damage *damage
	run    string
	next   *string
	aside  string // the name that the damaged file is kept under
}

// planRebuild finds out what the folders say.
func (r *Run) planRebuild(ctx context.Context, d *damage) (*rebuild, error) {
	next, err := r.firstLeft(ctx)
	if err != nil {
		return nil, fmt.Errorf("rebuild status.json: %w", err)
	}
	return &rebuild{damage: d, run: r.salvageRunID(d.data), next: next}, nil
}

// rebuilt is the new content. Nothing but the run's id is taken from the
// damaged text: which half of it a power cut left nobody knows.
func (r *Run) rebuilt(plan *rebuild) (*status, error) {
	info, err := r.root.Stat(fileStatus)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("look at status.json: %w", err)
	}
	fresh, err := r.joinDone(nil)
	if err != nil {
		return nil, err
	}
	if plan.aside, err = r.freeName(fileStatus + ".corrupt-" + r.clk.Now().UTC().Format("20060102T150405.000000Z")); err != nil {
		return nil, err
	}
	return newStatus(plan.damage.data, info, &beeyard.Checkpoint{
		SchemaVersion:  beeyard.SchemaVersion,
		RunID:          plan.run,
		Summary:        "status.json was damaged and rebuilt from the run's folders",
		NextStep:       "read what is left of the last summary in " + plan.aside + ", then go on with next_task_id",
		NextTaskID:     plan.next,
		Risk:           "status.json was damaged (" + plan.damage.why + "): summary, next step and metadata are lost, completed_tasks is from done/; the damaged file is kept as " + plan.aside,
		CompletedTasks: fresh,
		Timestamp:      beeyard.FormatTime(r.clk.Now()),
	}), nil
}

func (r *Run) freeName(name string) (string, error) {
	try := name
	for n := 2; n < 100; n++ {
		there, err := r.root.Exists(try)
		if err != nil {
			return "", fmt.Errorf("look for a free name: %w", err)
		}
		if !there {
			return try, nil
		}
		try = fmt.Sprintf("%s-%d", name, n)
	}
	return "", fmt.Errorf("%w: no free name like %s", beeyard.ErrConflict, name)
}

// keepDamaged gives the damaged file a second name. It keeps its first until
// the new one takes that: a crash in between must not leave a run without any
// status.json, which would read as one that never had a checkpoint.
func (r *Run) keepDamaged(plan *rebuild) error {
	err := r.root.Link(fileStatus, r.root, plan.aside)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep the damaged status.json: %w", err)
	}
	if err != nil { // no hard links here
		if err = durable.WriteExcl(r.root, plan.aside, plan.damage.data, fileMode); err != nil {
			return fmt.Errorf("keep the damaged status.json: %w", err)
		}
	}
	r.note("status.json is damaged (%s): it is kept as %s and rebuilt from done/ and the other folders", plan.damage.why, plan.aside)
	r.event("checkpoint_rebuilt", nil, "", plan.aside)
	return nil
}

// mend rebuilds the file, or what a reader gets of it where nothing may be written.
func (r *Run) mend(ctx context.Context, d *damage) (*status, error) {
	if !r.ro {
		return r.editStatus(ctx, func(*status) (*beeyard.Checkpoint, error) { return nil, nil })
	}
	plan, err := r.planRebuild(ctx, d)
	if err != nil {
		return nil, err
	}
	fresh, _, err := r.doneBeyond(nil)
	if err != nil {
		return nil, err
	}
	r.note("%v; the run was opened for reading, so it stays as it is", d)
	return newStatus(d.data, durable.Info{}, &beeyard.Checkpoint{
		SchemaVersion:  beeyard.SchemaVersion,
		RunID:          plan.run,
		NextTaskID:     plan.next,
		Risk:           d.Error() + ": what is shown is from the run's folders",
		CompletedTasks: fresh,
	}), nil
}
