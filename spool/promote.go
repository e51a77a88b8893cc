package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// promoteAgain is when a task that could not be promoted is tried again.
const promoteAgain = 30 * time.Second

// promoteMost bounds how many are moved under one hold of the lock.
const promoteMost = 256

// promoteDue moves what came due from held/ to pending/, bodies unchanged, and
// gives their number. Workers do so by themselves; a one-shot claim has to.
func (r *Run) promoteDue(ctx context.Context) (int, error) {
	if r.ro {
		return 0, nil
	}
	held, err := r.heldCandidates(ctx)
	if err != nil {
		return 0, err
	}
	n, err := r.promoteThose(ctx, held.good)
	return n, errors.Join(err, held.err)
}

// heldCandidates reads held/. Unlike in pending/, an entry of the index that is
// out of date would go unnoticed here, so each is compared with its file.
func (r *Run) heldCandidates(ctx context.Context) (readings, error) {
	var names []listed
	err := durable.EachName(r.held, func(name []byte, ino uint64, _ fs.FileMode) bool {
		if id, ok := idOfName(name); ok {
			names = append(names, listed{id: string(id), ino: ino})
		}
		return true
	})
	if err != nil {
		return readings{}, fmt.Errorf("list held tasks: %w", err)
	}
	if len(names) == 0 {
		return readings{}, nil
	}
	got, err := r.loadCandidates(ctx, r.held, names)
	if err != nil {
		return got, err
	}
	for _, f := range got.bad {
		if _, err := r.strange(ctx, r.held, f); err != nil {
			return got, err
		}
	}
	return got, nil
}

func (r *Run) promoteThose(ctx context.Context, held []*candidate) (int, error) {
	now := r.clk.Now()
	var due []string
	for _, c := range held {
		if c.dueBy(now) {
			due = append(due, c.id)
		}
	}
	moved, err := r.promote(ctx, due)
	return len(moved), err
}

// promote moves those of ids that are due indeed.
func (r *Run) promote(ctx context.Context, ids []string) (moved []string, err error) {
	for len(ids) > 0 {
		n := min(len(ids), promoteMost)
		some, err := r.promoteSome(ctx, ids[:n])
		moved, ids = append(moved, some...), ids[n:]
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

func (r *Run) promoteSome(ctx context.Context, ids []string) (moved []string, err error) {
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, id := range ids {
		// The file decides, not what was read of it before: it may be on hold by now.
		t, _, err := readTask(r.held, bodyName(id), id)
		switch {
		case missing(err), errors.Is(err, beeyard.ErrNotTask), errors.Is(err, fs.ErrPermission):
			continue
		case err != nil:
			return moved, err
		}
		if due, err := t.Due(); t.Ext.Hold != nil || err != nil || due.After(r.clk.Now()) {
			continue
		}
		if t.Ext.Priority > 0 {
			if err := r.markPriority(id); err != nil {
				return moved, err
			}
		}
		ok, err := r.promoteOne(t)
		if err != nil {
			return moved, err
		}
		if ok {
			moved = append(moved, id)
			r.event("promoted", t, "", "")
			r.pickHint(id, beeyard.PlacePending)
		}
	}
	return moved, nil
}

// promoteOne moves one body under the lock. A copy of the same life in pending/
// (a power cut between the two names of a rename) gives way to the higher
// revision; another life keeps its name, and ours waits until that is free.
func (r *Run) promoteOne(t *beeyard.Task) (bool, error) {
	name := bodyName(t.ID)
	err := r.held.RenameExcl(name, r.pending, name)
	switch {
	case err == nil:
		return true, nil
	case missing(err):
		return false, nil
	case !errors.Is(err, fs.ErrExist):
		return false, fmt.Errorf("promote %s: %w", beeyard.Quote(t.ID), err)
	}
	there, _, err := readTask(r.pending, name, t.ID)
	switch {
	case missing(err), errors.Is(err, beeyard.ErrNotTask), errors.Is(err, fs.ErrPermission):
		return false, nil
	case err != nil:
		return false, err
	case there.Life() != t.Life():
		r.note("%s came due in held/, but pending/ has another task of that id, enqueued by an older program: that one runs first", beeyard.Quote(t.ID))
		return false, nil
	case there.Ext.Rev > t.Ext.Rev:
		return true, ignoreMissing(r.held.Remove(name))
	}
	if err := r.held.Rename(name, r.pending, name); err != nil && !missing(err) {
		return false, fmt.Errorf("promote %s: %w", beeyard.Quote(t.ID), err)
	}
	return true, nil
}
