package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

// operate is a claim followed by a settle, made by a person or a program that
// does not run the task: hold, cancel, replace, retry, promote to another
// tier. It claims first and writes its record then, so it can never decide
// with what somebody else has meanwhile changed. ErrConflict when the task is
// in none of the places. Its death costs the task no attempt.
func (r *Run) operate(ctx context.Context, id string, from []beeyard.Place, f func(t *beeyard.Task) (beeyard.Settlement, error)) (beeyard.Settled, error) {
	if err := r.writable("change"); err != nil {
		return beeyard.Settled{}, err
	}
	d, err := r.operationDir(ctx, id)
	if err != nil {
		return beeyard.Settled{}, err
	}
	place, err := r.grab(ctx, d, id, from)
	if err != nil {
		return beeyard.Settled{}, err
	}
	body, _, err := readTask(d.dir, bodyName(id), id)
	if err != nil {
		return beeyard.Settled{}, errors.Join(fmt.Errorf("read %s: %w", beeyard.Quote(id), err), r.giveBack(ctx, d, id, place))
	}
	s, err := f(body)
	if err != nil {
		return beeyard.Settled{}, errors.Join(err, r.giveBack(ctx, d, id, place))
	}
	p, err := r.prepare(d.dir, body, d.token(body.Ext.Rev), s)
	if err != nil {
		return beeyard.Settled{}, errors.Join(err, r.giveBack(ctx, d, id, place))
	}
	if err := r.settleOne(ctx, p); err != nil {
		return beeyard.Settled{}, err
	}
	return p.answer(), r.recorded(ctx, p, true)
}

// operationDir is this process's claimed/~<nonce>/, a new one where it has
// been used for the id already.
func (r *Run) operationDir(ctx context.Context, id string) (*claimDir, error) {
	r.opMu.Lock()
	defer r.opMu.Unlock()
	if d := r.opDir; d != nil && !d.gone() && d.use(id) {
		return d, nil
	}
	d, err := r.newClaimDir(ctx, "", beeyard.KindProcess)
	if err != nil {
		return nil, err
	}
	d.use(id)
	r.opDir = d
	// All of them live as long as the run is open: an operation may still be in one.
	r.onClose(d.close)
	return d, nil
}

// grab renames x.json into the operation's directory. Out of failed and done
// this happens under the lock: there the id would for an instant be nowhere
// that an enqueue looks (invariant 7).
func (r *Run) grab(ctx context.Context, d *claimDir, id string, from []beeyard.Place) (beeyard.Place, error) {
	name := bodyName(id)
	for _, p := range from {
		err := func() error {
			if p == beeyard.PlaceFailed || p == beeyard.PlaceDone {
				unlock, err := r.lockQueue(ctx)
				if err != nil {
					return err
				}
				defer unlock()
			}
			move := func() error { return r.place(p).Rename(name, d.dir, name) }
			if p != beeyard.PlaceDone {
				return move()
			}
			if there, err := r.done.Exists(name); err != nil || !there {
				return errors.Join(err, fs.ErrNotExist)
			}
			return r.withoutCompleted(ctx, id, move)
		}()
		if err == nil {
			return p, nil
		}
		if !missing(err) {
			if there, lookErr := d.dir.Exists(name); lookErr == nil && there {
				return p, nil
			}
			return "", fmt.Errorf("take %s out of %s: %w", beeyard.Quote(id), p, err)
		}
	}
	d.unuse(id)
	all, err := r.lookup(ctx, id, false, true)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		if pruned, err := r.pruned(); err == nil {
			if _, ok := pruned[id]; ok {
				return "", &beeyard.Error{Op: "change", ID: id, Err: beeyard.Because(beeyard.ErrConflict, "it was pruned")}
			}
		}
		return "", notFound("change", id)
	}
	return "", &beeyard.Error{Op: "change", ID: id,
		Err:  beeyard.Because(beeyard.ErrConflict, "it is in "+string(all[0].place)+", where this cannot be done"),
		Hint: "beeyard show TASK says where it is and what can be done"}
}

func notFound(op, id string) error {
	return &beeyard.Error{Op: op, ID: id, Err: beeyard.Because(beeyard.ErrNotFound, "there is no such task in this run"),
		Hint: "beeyard ls RUN lists the tasks"}
}

// giveBack returns a body unchanged to where it was taken from. If that fails
// a reaper does it: the claim is one of an operation that died.
func (r *Run) giveBack(ctx context.Context, d *claimDir, id string, p beeyard.Place) error {
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.dir.RenameExcl(bodyName(id), r.place(p), bodyName(id)); err != nil && !missing(err) {
		return fmt.Errorf("give %s back: %w", beeyard.Quote(id), err)
	}
	r.pickHint(id, p)
	return nil
}

var openPlaces = []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld}

// Hold keeps an open task from running until Unhold.
func (r *Run) Hold(ctx context.Context, id string, h beeyard.Hold) error {
	if h.At == "" {
		h.At = beeyard.FormatTime(r.clk.Now())
	}
	_, err := r.operate(ctx, id, openPlaces, func(*beeyard.Task) (beeyard.Settlement, error) {
		return beeyard.Settlement{Outcome: beeyard.OutcomeHold, Reason: h.Reason, Hold: &h}, nil
	})
	return err
}

// Unhold lets it run again; a backoff ends with it.
func (r *Run) Unhold(ctx context.Context, id string) error {
	_, err := r.operate(ctx, id, []beeyard.Place{beeyard.PlaceHeld}, func(*beeyard.Task) (beeyard.Settlement, error) {
		return beeyard.Settlement{Outcome: beeyard.OutcomeUnhold}, nil
	})
	return err
}

// Retry runs a finished task again, its history kept. A done one leaves
// completed_tasks, so what depends on it and has not started waits again.
func (r *Run) Retry(ctx context.Context, id string, o beeyard.RetryOptions) error {
	_, err := r.operate(ctx, id, []beeyard.Place{beeyard.PlaceFailed, beeyard.PlaceDone}, func(*beeyard.Task) (beeyard.Settlement, error) {
		s := beeyard.Settlement{Outcome: beeyard.OutcomeRequeue, Tier: o.Tier, RetryAfter: o.After}
		if o.By != "" {
			s.Reason = "retry by " + o.By
		}
		return s, nil
	})
	return err
}

// Replace gives an open task a new body; id, life and history stay.
func (r *Run) Replace(ctx context.Context, id string, with *beeyard.Task) error {
	_, err := r.operate(ctx, id, openPlaces, func(*beeyard.Task) (beeyard.Settlement, error) {
		return beeyard.Settlement{Outcome: beeyard.OutcomeReplace, Replace: with}, nil
	})
	return err
}

// cancelRequest is the text of x~cancel.
type cancelRequest struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     string `json:"at"`
}

// Cancel ends an open task, or asks the owner of a running one to end its
// process tree first. Whoever settles first wins: done first means done.
func (r *Run) Cancel(ctx context.Context, id, by, reason string) (beeyard.CancelResult, error) {
	why := "canceled"
	if by != "" {
		why += " by " + by
	}
	if reason != "" {
		why += ": " + reason
	}
	out := beeyard.CancelResult{TaskID: id, Status: "canceled"}
	// A task that moves while we look is met again: pending, claimed, pending.
	for range 5 {
		_, err := r.operate(ctx, id, openPlaces, func(*beeyard.Task) (beeyard.Settlement, error) {
			return beeyard.Settlement{Outcome: beeyard.OutcomeCanceled, Reason: why}, nil
		})
		if err == nil || !errors.Is(err, beeyard.ErrConflict) {
			return out, err
		}
		asked, worker, err := r.askCancel(ctx, id, cancelRequest{by, reason, beeyard.FormatTime(r.clk.Now())})
		if err != nil {
			return out, err
		}
		if asked {
			out.Status, out.Worker = "requested", worker
			// An owner that is gone will not obey: the reap takes the claim and sees the request.
			_, err := r.Reap(ctx, beeyard.ReapOptions{Worker: worker})
			if err != nil {
				return out, err
			}
			if f, err := r.lookup(ctx, id, true, true); err == nil && len(f) > 0 && f[0].place == beeyard.PlaceFailed {
				out.Status = "canceled"
			}
			return out, nil
		}
		for _, p := range []beeyard.Place{beeyard.PlaceDone, beeyard.PlaceFailed} {
			there, err := r.place(p).Exists(bodyName(id))
			if err != nil {
				return out, fmt.Errorf("look at %s: %w", p, err)
			}
			if there && p == beeyard.PlaceDone {
				out.Status = "already_done"
				return out, nil
			}
			if there {
				return out, &beeyard.Error{Op: "cancel", ID: id, Err: beeyard.Because(beeyard.ErrConflict, "it has failed or been canceled already")}
			}
		}
	}
	return out, &beeyard.Error{Op: "cancel", ID: id, Err: beeyard.Because(beeyard.ErrConflict, "it moved each time"), Hint: "try again"}
}

// askCancel leaves x~cancel beside a running claim. An older program's claim
// has no owner that would look: it is taken and settled here.
func (r *Run) askCancel(ctx context.Context, id string, req cancelRequest) (asked bool, worker string, err error) {
	text, err := json.Marshal(req)
	if err != nil {
		return false, "", fmt.Errorf("encode cancel: %w", err)
	}
	err = r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		there, err := dir.Exists(bodyName(id))
		if err != nil || !there {
			return true, err
		}
		w, _, ours := beeyard.ParseClaimDir(name)
		if !ours {
			g := &reaping{Run: r, o: beeyard.ReapOptions{StaleAfter: defaultStaleAfter}}
			asked, worker = true, name
			return false, g.cancelOlder(ctx, name, dir, id, text)
		}
		err = writeBody(dir, tagged(id, tagCancel, ""), text, false)
		if exists(err) {
			err = nil
		}
		asked, worker = err == nil, w
		return false, err
	})
	return asked, worker, err
}
