package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
)

// Enqueue publishes one task as the older command does: a pending file of that
// id is replaced, and an id that has run runs again. The body has the nine
// fields alone, so its life is its created_at, which is made later than that of
// every other life of the id. With under it is a follow-up of that claim. On
// nil it is durable.
func (c *Compat) Enqueue(ctx context.Context, t *beeyard.Task, under *beeyard.Ref) error {
	r := c.r
	if err := r.writable("enqueue"); err != nil {
		return err
	}
	n := *t
	n.Ext, n.Unknown = beeyard.Ext{}, nil
	n.CreatedAt = beeyard.FormatTime(r.clk.Now())
	if n.RunID == "" {
		n.RunID = r.id
	}
	if err := checkOlder(&n); err != nil {
		return err
	}
	if under != nil {
		return c.followUp(ctx, &n, *under)
	}
	temp, err := c.stage(&n)
	if err != nil {
		return err
	}
	defer func() { _ = r.pending.Remove(temp) }() // there only after an error
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	again, err := c.publish(ctx, &n, &temp)
	unlock()
	if err != nil {
		return err
	}
	if err := r.pending.Sync(); err != nil {
		return fmt.Errorf("sync pending: %w", err)
	}
	r.event("enqueued", &n, "", again)
	r.pickHint(n.ID, beeyard.PlacePending)
	return nil
}

// checkOlder is the compatibility door's check of a whole task: what older
// programs accept, as far as a reader of ours would not quarantine it.
func checkOlder(t *beeyard.Task) error {
	if err := errors.Join(beeyard.CheckStoredID(t.ID), beeyard.CheckType(t.Type)); err != nil {
		return err
	}
	for _, d := range t.DependsOn {
		if err := beeyard.CheckStoredID(d); err != nil {
			return err
		}
	}
	for _, s := range []string{t.RunID, t.CreatedBy, t.TierHint} {
		if !beeyard.ValidText(s) {
			return refused(t, "it holds text that is not UTF-8, or NUL: "+beeyard.Quote(s))
		}
	}
	_, err := encodeOlder(t)
	return err
}

func encodeOlder(t *beeyard.Task) ([]byte, error) {
	body, err := t.Encode()
	if err != nil {
		return nil, refused(t, "it cannot be written as JSON: "+err.Error())
	}
	if err := strict.Check(body, strict.Options{MaxBytes: beeyard.MaxTaskBytes}); err != nil {
		return nil, refused(t, err.Error())
	}
	return body, nil
}

func (c *Compat) stage(t *beeyard.Task) (string, error) {
	body, err := encodeOlder(t)
	if err != nil {
		return "", err
	}
	temp, err := durable.WriteTemp(c.r.pending, "older", body, fileMode)
	if err != nil {
		return "", &beeyard.Error{Op: "enqueue", ID: t.ID, Err: err, Hint: "nothing was enqueued; make room or mend the disk, then repeat"}
	}
	return temp, nil
}

// publish renames over what is pending. The caller holds .queue.lock. again
// says where another life of the id is.
func (c *Compat) publish(ctx context.Context, t *beeyard.Task, temp *string) (again string, err error) {
	r := c.r
	all, err := r.lookup(ctx, t.ID, true, false)
	if err != nil {
		return "", err
	}
	late := t.CreatedAt
	for _, f := range all {
		if f.place != beeyard.PlacePending {
			again = "again: the id is " + string(f.place)
		}
		if f.place == beeyard.PlaceHeld {
			r.note("%s is also in held/: that one runs too when it comes due or is let go", beeyard.Quote(t.ID))
		}
		if f.task != nil && !later(&beeyard.Task{CreatedAt: late}, f.task) {
			late = after(f.task, late)
		}
	}
	if late != t.CreatedAt {
		// Two enqueues within a microsecond, or a clock that went back: with an
		// equal created_at it would be a leftover of the task that has run, with an
		// earlier one the older record would stay.
		_ = r.pending.Remove(*temp)
		t.CreatedAt = late
		if *temp, err = c.stage(t); err != nil {
			return "", err
		}
	}
	if err := r.pending.Rename(*temp, r.pending, bodyName(t.ID)); err != nil {
		return "", fmt.Errorf("publish %s: %w", beeyard.Quote(t.ID), err)
	}
	return again, nil
}

// after is the first microsecond past another life, or now where that cannot
// be told.
func after(t *beeyard.Task, now string) string {
	at, ok := t.Created()
	if !ok {
		return now
	}
	return beeyard.FormatTime(at.Add(time.Microsecond))
}

// followUp leaves the task beside the claim under which it was asked for. Asked
// for twice, the later body stands, as it does among pending ones. An id in use
// is refused: what a decision publishes replaces nothing.
func (c *Compat) followUp(ctx context.Context, t *beeyard.Task, ref beeyard.Ref) (err error) {
	r := c.r
	dir, err := r.openClaimDir(ref.Token)
	if missing(err) {
		return claimLost(ref.TaskID)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := r.current(dir, ref.TaskID); err != nil {
		return err
	}
	hits, err := r.uses(ctx, []string{t.ID})
	if err != nil {
		return err
	}
	if f, used := hits[t.ID]; used {
		return &beeyard.Error{Op: "enqueue", ID: t.ID, Err: beeyard.Because(beeyard.ErrExists, inUseText(f)),
			Hint: "a follow-up replaces nothing and runs nothing again; without BEEYARD_CLAIM_TOKEN it is enqueued at once"}
	}
	// Follow-ups of one claim are told apart by their lives.
	if t.Ext.UID, err = r.newUID(); err != nil {
		return err
	}
	body, err := encodeOlder(t)
	if err != nil {
		return err
	}
	staged, names, err := r.readFollowUps(dir, ref.TaskID)
	if err != nil {
		return err
	}
	name := tagged(ref.TaskID, tagNext, nonce(recordNonce))
	if err := leaveFollowUp(dir, name, body); err != nil {
		return err
	}
	if err = dir.Sync(); err == nil {
		// What is named before the decision is published, and only that may be
		// answered for.
		err = r.current(dir, ref.TaskID)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(name)))
	}
	for i, s := range staged {
		if s.ID == t.ID {
			if err := dir.Remove(names[i]); err != nil && !missing(err) {
				return fmt.Errorf("drop the earlier follow-up: %w", err)
			}
		}
	}
	return nil
}
