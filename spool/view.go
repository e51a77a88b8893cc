package spool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"beeyard"
	"beeyard/internal/durable"
)

// viewPart is what looking at a run keeps between two looks.
type viewPart struct {
	ended    endedCache
	names    atomic.Int64 // how many the last scan saw
	watchers watchers
}

func (r *Run) initView() {
	r.view.watchers.init()
	r.onClose(r.view.watchers.close)
}

// tries bounds how often a look begins anew because what it saw had moved on.
const viewTries = 4

// Get looks one task up: its body, where it is, its state with all reasons, and
// who has it. It takes no lock. ErrNotFound when the run never had the id; a
// pruned id is found with its outcome only. A body that cannot be read is
// shown as quarantined (or as finished, by its place), with Detail saying why;
// where more than one life of the id exists, the open one is shown.
func (r *Run) Get(ctx context.Context, id string) (*beeyard.View, error) {
	if err := beeyard.CheckStoredID(id); err != nil {
		return nil, err
	}
	j := r.newJudge(ctx)
	for range viewTries {
		all, err := r.lookup(ctx, id, true, false)
		if err != nil {
			return nil, fmt.Errorf("look for task: %w", err)
		}
		lives := current(all)
		if len(lives) == 0 {
			continue // moving back while we looked forward, or not there
		}
		v, err := r.viewOf(ctx, id, &lives[0], j)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if err := j.err(); err != nil {
			return nil, err
		}
		if len(lives) > 1 && v.Detail == "" {
			v.Detail = fmt.Sprintf("another task of this id is in %s/", lives[1].place)
		}
		return v, nil
	}
	return r.getGone(ctx, id)
}

// getGone answers for an id that has no body in a state folder.
func (r *Run) getGone(ctx context.Context, id string) (*beeyard.View, error) {
	var v *beeyard.View
	err := r.eachQuarantined(ctx, func(q quarantined) bool {
		if q.id == id {
			v = r.viewQuarantined(q)
		}
		return v == nil
	})
	if err != nil || v != nil {
		return v, err
	}
	pruned, err := r.pruned()
	if err != nil {
		return nil, fmt.Errorf("read pruned ids: %w", err)
	}
	if out, ok := pruned[id]; ok {
		t := &beeyard.Task{ID: id, Ext: beeyard.Ext{Outcome: out}}
		return &beeyard.View{Task: t, Place: beeyard.PlaceArchive, State: beeyard.ArchivedState(t),
			Detail: "pruned: only its id and its outcome are kept"}, nil
	}
	return nil, &beeyard.Error{Op: "look for task", ID: id,
		Err:  beeyard.Because(beeyard.ErrNotFound, "this run has no such task"),
		Hint: "beeyard ls lists the tasks of a run"}
}

// viewOf makes the view of one body; nil when it has moved on meanwhile.
func (r *Run) viewOf(ctx context.Context, id string, f *found, j *judge) (*beeyard.View, error) {
	dir := r.place(f.place)
	if f.place == beeyard.PlaceArchive {
		d, err := r.archiveDir()
		if err != nil {
			return nil, fmt.Errorf("open archive: %w", err)
		}
		dir = d
	}
	v := &beeyard.View{Task: f.task, Place: f.place}
	if f.place == beeyard.PlaceClaimed {
		d, err := r.claimed.OpenDir(f.claim)
		if missing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("open claim directory: %w", err)
		}
		defer closeRead(d)
		if v.Claim, err = r.claimInfo(ctx, f, id, d); err != nil {
			return nil, err
		}
		dir = d
	}
	info, err := dir.Stat(f.name)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at task: %w", err)
	}
	v.Since = info.ModTime.Unix()
	if v.Task == nil {
		v.Task = &beeyard.Task{ID: id}
		v.Detail = r.whyUnreadable(dir, f.name, id)
	}
	v.State, v.Reasons = j.full(v.Task, f.place, f.task != nil)
	return v, nil
}

// whyUnreadable reads once more: only a reader knows what is wrong.
func (r *Run) whyUnreadable(dir durable.Dir, name, id string) string {
	if _, _, err := readTask(dir, name, id); errors.Is(err, beeyard.ErrNotTask) {
		return err.Error()
	}
	return "it could not be read as a task"
}
