package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
)

// liveClaim is a claim that this process holds.
type liveClaim struct {
	claim  *beeyard.Claim
	dir    *claimDir
	synced bool  // D was fsynced since: a crash of the machine finds the claim
	stuck  *pass // decided, but publishing failed
	// What the handler left, once listed.
	listed   bool
	artifact bool     // x~artifact is there
	extras   []string // names in D that the end of the claim removes
}

// errNotWon: another has it, or it is gone, or it was no task. Look for the next.
var errNotWon = errors.New("not won")

// take is the protocol's claim of one id out of pending: one rename into D.
// errNotWon when there is nothing to have. again says that D cannot be used
// for this id (used before, or removed) and a new one is needed.
func (r *Run) take(ctx context.Context, d *claimDir, id string) (t *beeyard.Task, again bool, err error) {
	if !d.use(id) {
		return nil, true, errNotWon
	}
	name := bodyName(id)
	if err := r.pending.Rename(name, d.dir, name); err != nil {
		if missing(err) {
			d.unuse(id)
			return nil, d.gone(), errNotWon
		}
		// An odd error may hide a rename that happened (NFS): the destination tells.
		there, lookErr := d.dir.Exists(name)
		if lookErr != nil || !there {
			d.unuse(id)
			return nil, false, errors.Join(fmt.Errorf("claim %s: %w", beeyard.Quote(id), err), lookErr)
		}
	}
	t, err = r.taken(ctx, d, id)
	return t, false, err
}

// taken reads what was claimed. This is the task that runs, not what was read
// before the rename: an older enqueue may have replaced it in between.
func (r *Run) taken(ctx context.Context, d *claimDir, id string) (*beeyard.Task, error) {
	name := bodyName(id)
	t, _, err := readTask(d.dir, name, id)
	switch {
	case errors.Is(err, beeyard.ErrNotTask):
		return nil, errors.Join(errNotWon, r.putBack(ctx, d, id, err))
	case missing(err):
		return nil, errNotWon // reaped between the two calls: we slept that long
	case err != nil:
		return nil, errors.Join(err, r.putBack(ctx, d, id, err))
	}
	left, err := r.leftover(t)
	if err != nil {
		return nil, err
	}
	if left != "" {
		// The same life has ended already: a copy that a power cut or a copy made
		// by hand left behind.
		if err := ignoreMissing(d.dir.Remove(name)); err != nil {
			return nil, fmt.Errorf("drop leftover of %s: %w", beeyard.Quote(id), err)
		}
		r.note("%s was in pending/ though this very task is in %s/: the leftover was dropped", beeyard.Quote(id), left)
		r.event("leftover", t, "", string(left))
		return nil, errNotWon
	}
	return t, nil
}

// leftover names the place where a copy of this life counts more: it has ended
// with at least this rev, or waits in held (a power cut can leave the name in
// pending too). Done wins by life, not by name: another life of the id is
// another task.
func (r *Run) leftover(t *beeyard.Task) (beeyard.Place, error) {
	for _, p := range []beeyard.Place{beeyard.PlaceHeld, beeyard.PlaceFailed, beeyard.PlaceDone} {
		dir := r.place(p)
		there, err := dir.Exists(bodyName(t.ID))
		if err != nil {
			return "", fmt.Errorf("look for an earlier end: %w", err)
		}
		if !there {
			continue
		}
		end, _, err := readTask(dir, bodyName(t.ID), t.ID)
		switch {
		case missing(err), errors.Is(err, beeyard.ErrNotTask):
		case err != nil:
			return "", err
		case end.Life() == t.Life() && end.Ext.Rev >= t.Ext.Rev:
			return p, nil
		}
	}
	return "", nil
}

// putBack returns what turned out to be no task, or could not be read, to
// pending, where it is quarantined once it is old enough: a foreign producer
// may still be writing it.
func (r *Run) putBack(ctx context.Context, d *claimDir, id string, why error) error {
	name := bodyName(id)
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	err = d.dir.RenameExcl(name, r.pending, name)
	unlock()
	if err != nil && !missing(err) {
		// Its name is taken by a newer one: this file is in nobody's way here.
		return r.quarantineFile(ctx, d.dir, name, why.Error())
	}
	if errors.Is(why, beeyard.ErrNotTask) {
		return r.quarantineFile(ctx, r.pending, name, why.Error())
	}
	return nil
}
