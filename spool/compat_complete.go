package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// CompleteWith ends a claim that has a token in the name of its worker. A
// failure is final, as it is for older programs. ErrClaimLost when the token is
// another worker's or no longer current.
func (c *Compat) CompleteWith(ctx context.Context, worker string, ref beeyard.Ref, success bool) error {
	if ref.Token.Worker != worker {
		return noClaim(worker, ref.TaskID)
	}
	s := beeyard.Settlement{Outcome: beeyard.OutcomeDone}
	if !success {
		s = beeyard.Settlement{Outcome: beeyard.OutcomeFailed, Final: true, Reason: "completed as a failure"}
	}
	_, err := c.r.Settle(ctx, ref, s)
	return err
}

// Complete moves a worker's claim to done/ or failed/ as it is: there is no
// record of the attempt. ErrClaimLost when that worker has no such claim, or
// when this very task has ended otherwise. On nil the move is durable, a
// success's output too, and completed_tasks lists it if there is a status.json.
func (c *Compat) Complete(ctx context.Context, worker, id string, success bool) (err error) {
	r := c.r
	if err := errors.Join(r.writable("complete"), CheckOlderWorker(worker), beeyard.CheckStoredID(id)); err != nil {
		return err
	}
	dir, err := c.older(worker)
	if missing(err) {
		return noClaim(worker, id)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	t, _, err := readTask(dir, bodyName(id), id)
	if missing(err) {
		return noClaim(worker, id)
	}
	if err != nil {
		return fmt.Errorf("read claim: %w", err)
	}
	left, err := r.leftover(t)
	if err != nil {
		return err
	}
	if left != "" {
		return errors.Join(&beeyard.Error{Op: "complete", ID: id,
			Err:  beeyard.Because(beeyard.ErrClaimLost, "this very task is in "+string(left)+"/ already"),
			Hint: "that record stands; this copy is kept in quarantine/"}, r.setAside(dir, bodyName(id), id, nonce(recordNonce)))
	}
	place := beeyard.PlaceFailed
	if success {
		place = beeyard.PlaceDone
		if err := c.flushArtifact(id); err != nil {
			return err
		}
	}
	if err := c.end(ctx, dir, t, worker, place); err != nil {
		return err
	}
	if err := r.place(place).Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", place, err)
	}
	r.event("settled", t, "", string(place)+" by an older command")
	if success {
		return r.completedNow(ctx, id)
	}
	return nil
}

// flushArtifact: dependants may start once done/ has the task, so its output
// must be on the disk first. The handler wrote it under its final name.
func (c *Compat) flushArtifact(id string) error {
	f, err := c.r.artifacts.Open(id + ".md")
	if missing(err) || errors.Is(err, durable.ErrNotRegular) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open artifact: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync artifact: %w", err)
	}
	if err := c.r.artifacts.Sync(); err != nil {
		return fmt.Errorf("sync artifacts: %w", err)
	}
	return nil
}

// end is the rename. Another life of the id that has ended before meets it
// there: the later stays, the other is kept in quarantine/ (invariant 6).
func (c *Compat) end(ctx context.Context, dir durable.Dir, t *beeyard.Task, worker string, place beeyard.Place) error {
	r, name, to := c.r, bodyName(t.ID), c.r.place(place)
	err := dir.RenameExcl(name, to, name)
	switch {
	case err == nil:
		return nil
	case missing(err):
		return noClaim(worker, t.ID)
	case !exists(err):
		return fmt.Errorf("complete %s: %w", beeyard.Quote(t.ID), err)
	}
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	there, _, err := readTask(to, name, t.ID)
	switch {
	case errors.Is(err, beeyard.ErrNotTask):
		if err := r.setAside(to, name, t.ID, nonce(recordNonce)); err != nil {
			return err
		}
	case missing(err):
	case err != nil:
		return err
	case there.Life() != t.Life() && !later(t, there):
		r.note("%s has two lives: the later record stays in %s/, this one is kept in quarantine/", beeyard.Quote(t.ID), place)
		return r.setAside(dir, name, t.ID, nonce(recordNonce))
	case there.Life() != t.Life():
		r.note("%s has two lives: this later one replaces the record in %s/, which is kept in quarantine/", beeyard.Quote(t.ID), place)
		// A second name first: moved away first, the id would for an instant have
		// ended nowhere.
		if err := to.Link(name, r.quarantine, lateName(t.ID, nonce(recordNonce), "json")); err != nil && !missing(err) {
			return fmt.Errorf("keep the earlier record: %w", err)
		}
		if err := r.quarantine.Sync(); err != nil {
			return fmt.Errorf("sync quarantine: %w", err)
		}
	}
	err = dir.Rename(name, to, name)
	if missing(err) {
		return noClaim(worker, t.ID)
	}
	if err != nil {
		return fmt.Errorf("complete %s: %w", beeyard.Quote(t.ID), err)
	}
	return nil
}
