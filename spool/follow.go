package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// enqueueUnder leaves additions beside a claim, as x~next.<r>: its settle
// publishes them if it is done. On nil they are durable.
func (r *Run) enqueueUnder(ctx context.Context, adds []*addition, ref beeyard.Ref, ifAbsent bool) (err error) {
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
	if err := r.checkFollowUps(ctx, dir, ref.TaskID, adds, ifAbsent); err != nil {
		return err
	}
	var written []string
	for _, a := range adds {
		if a.status != statusNone {
			continue
		}
		name := tagged(ref.TaskID, tagNext, nonce(recordNonce))
		if err = leaveFollowUp(dir, name, a.body); err != nil {
			break
		}
		written = append(written, name)
	}
	if err == nil {
		err = dir.Sync()
	}
	if err == nil {
		// The settle looks for follow-ups after its decision: what is named before
		// that is published, and only that may be answered for.
		err = r.current(dir, ref.TaskID)
	}
	if err != nil {
		for _, name := range written {
			_ = dir.Remove(name) // with the claim lost its reaper keeps or drops it
		}
		return err
	}
	for _, a := range adds {
		if a.status == statusNone {
			a.status, a.body, a.state = statusFollowUp, nil, ""
		}
	}
	return nil
}

// current checks that a claim is still its owner's.
func (r *Run) current(dir durable.Dir, id string) error {
	ok, err := dir.Exists(bodyName(id))
	if err != nil {
		return fmt.Errorf("look for the claim: %w", err)
	}
	if !ok {
		return claimLost(id)
	}
	return nil
}

// checkFollowUps refuses early what the settle would have to leave out. It
// asks without the lock: the settle asks again, under it.
func (r *Run) checkFollowUps(ctx context.Context, dir durable.Dir, id string, adds []*addition, ifAbsent bool) error {
	rule := refuseUsed
	if ifAbsent {
		rule = skipUsed
	}
	staged, _, err := r.readFollowUps(dir, id)
	if err != nil {
		return err
	}
	byFold := make(map[string]string, len(staged))
	for _, t := range staged {
		byFold[beeyard.Fold(t.ID)] = t.ID
	}
	var no refusals
	for _, a := range adds {
		other, there := byFold[beeyard.Fold(a.task.ID)]
		switch {
		case !there || a.status != statusNone:
		case other != a.task.ID:
			no.add(foldClash(a.task.ID, other))
		case ifAbsent:
			a.exists(found{})
		default:
			no.add(&beeyard.Error{Op: "enqueue", ID: a.task.ID, Err: beeyard.Because(beeyard.ErrExists, "this claim has asked for it already"),
				Hint: "pass over it with --if-absent"})
		}
	}
	if no.n > 0 {
		return no.err()
	}
	return r.judge(ctx, adds, rule)
}

// leaveFollowUp makes a whole, flushed file appear under name in D.
func leaveFollowUp(dir durable.Dir, name string, body []byte) error {
	temp, err := durable.WriteTemp(dir, "next", body, fileMode)
	if err != nil {
		return fmt.Errorf("write follow-up: %w", err)
	}
	if err := dir.RenameExcl(temp, dir, name); err != nil {
		_ = dir.Remove(temp)
		return fmt.Errorf("leave follow-up: %w", err)
	}
	return nil
}
