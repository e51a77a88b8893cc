package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// pass is one settle on its way: the claim (D, x), its record and how far it is.
type pass struct {
	dir   durable.Dir // D
	dname string      // D's name below claimed/
	id    string
	r     string        // names the record
	token beeyard.Token // of the claim
	old   *beeyard.Task // the claimed body
	next  *beeyard.Task // the record: the whole next version
	data  []byte        // next, encoded
	own   bool          // the record was written by us, not found
	// otherBoot: D's owner belongs to another boot, so a missing record does
	// not prove that it was published.
	otherBoot bool

	// extras are names in D that the claim left and its end removes.
	extras  []string
	decided bool // the decision was ours; what is left is to finish

	published, skipped []string
}

// prepare computes the record. Nothing is on disk yet.
func (r *Run) prepare(dir durable.Dir, old *beeyard.Task, tok beeyard.Token, s beeyard.Settlement) (*pass, error) {
	next, err := old.Settle(s, tok.String(), r.clk.Now(), r.jitter())
	if err != nil {
		return nil, fmt.Errorf("settle %s: %w", beeyard.Quote(old.ID), err)
	}
	data, err := next.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return &pass{dir: dir, dname: tok.Dir(), id: old.ID, r: nonce(recordNonce), token: tok, old: old, next: next, data: data, own: true}, nil
}

// record writes x~out.<r>. It must be whole and on the disk before it can be
// decided (invariant 4): the decision that follows is a rename, which a power
// cut may keep while it empties a file that was not flushed. sync is false
// only when the caller flushes many at once before any is decided.
func (r *Run) record(p *pass, sync bool) error {
	if err := writeBody(p.dir, tagged(p.id, tagRecord, p.r), p.data, sync); err != nil {
		// No decision was taken: the claim stays, and another settle tries anew.
		return &beeyard.Error{Op: "settle", ID: p.id, Err: fmt.Errorf("write record: %w", err),
			Hint: "the claim is kept; make room or mend the disk, then settle again"}
	}
	return nil
}

// decide is the one step that ends a claim: D/x.json becomes x~taken.<r>. A
// rename, so it checks the token (the path) and takes the claim at once.
// ErrClaimLost when the claim is no longer ours. decided is false with a nil
// error when a helper has finished it meanwhile.
func (r *Run) decide(ctx context.Context, p *pass) (decided bool, err error) {
	taken := tagged(p.id, tagTaken, p.r)
	err = p.dir.Rename(bodyName(p.id), p.dir, taken)
	if err == nil {
		return true, nil
	}
	// Look in this order, for others act meanwhile: our decision, then our
	// record, then nothing. A record may be withdrawn only by its writer, and
	// only after it saw no decision that names it: else a task would be lost
	// with a decision that points at nothing.
	there, lookErr := p.dir.Exists(taken)
	if lookErr != nil {
		return false, errors.Join(fmt.Errorf("decide: %w", err), lookErr)
	}
	if there {
		return true, nil
	}
	if !missing(err) {
		// The claim may still be there. While it is, somebody may decide with our
		// record, so the record stays.
		if claim, lookErr := p.dir.Exists(bodyName(p.id)); lookErr != nil || claim {
			return false, errors.Join(&beeyard.Error{Op: "settle", ID: p.id, Err: fmt.Errorf("decide: %w", err),
				Hint: "the claim is kept; settle again"}, lookErr)
		}
	}
	there, lookErr = p.dir.Exists(tagged(p.id, tagRecord, p.r))
	if lookErr != nil {
		return false, errors.Join(fmt.Errorf("decide: %w", err), lookErr)
	}
	if there {
		// A decision with our record may have come between the two looks.
		if there, lookErr = p.dir.Exists(taken); lookErr == nil && there {
			return true, nil
		}
		return false, errors.Join(r.lost(p), lookErr)
	}
	// Neither: a helper decided with our record and published it, unless the
	// record was never written or is another's now.
	done, err := r.carries(p)
	if err != nil {
		return false, err
	}
	if done {
		return false, nil
	}
	return false, r.lost(p)
}

// lost keeps the record and the staged output of a lost claim aside.
func (r *Run) lost(p *pass) error {
	err := r.keepAside(p.dir, p.id, p.r, tagged(p.id, tagRecord, p.r))
	r.event("claim_lost", p.old, p.token.String(), "")
	return errors.Join(claimLost(p.id), err)
}

func claimLost(id string) error {
	return &beeyard.Error{Op: "settle", ID: id, Err: beeyard.ErrClaimLost,
		Hint: "the task was taken back or settled by another; output is kept beside the artifacts under a name with .late-"}
}

// keepAside moves a lost attempt's record and output to artifacts/, where
// nothing else is called so. Nothing is deleted.
func (r *Run) keepAside(dir durable.Dir, id, rec, record string) error {
	var errs []error
	for name, end := range map[string]string{record: "json", tagged(id, tagArtifact, ""): "output"} {
		if name == "" {
			continue
		}
		if err := dir.Rename(name, r.artifacts, lateName(id, rec, end)); err != nil && !missing(err) {
			errs = append(errs, fmt.Errorf("keep late output aside: %w", err))
		}
	}
	return errors.Join(errs...)
}

// lateName stays within 255 bytes for the longest id.
func lateName(id, rec, end string) string {
	const room = 255 - len(".late-") - recordNonce - len(".next.json")
	if len(id) > room {
		id = id[:room]
	}
	return id + ".late-" + rec + "." + end
}

// carries reports whether a helper has published this very record, and makes
// sure that it stays published: the helper may not have flushed it yet. The
// record is compared, not its token alone: a reaper that took the claim wrote
// another one under the same token.
func (r *Run) carries(p *pass) (bool, error) {
	dir := r.place(p.next.Ext.Target)
	data, _, err := dir.ReadFile(bodyName(p.id), beeyard.MaxTaskBytes)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the published record: %w", err)
	}
	if !bytes.Equal(data, p.data) {
		return false, nil
	}
	if err := dir.Sync(); err != nil {
		return false, fmt.Errorf("sync %s: %w", p.next.Ext.Target, err)
	}
	return true, nil
}

// byToken finds the record that a token settled, wherever it was published;
// nil when there is none.
func (r *Run) byToken(id string, tok beeyard.Token) (*beeyard.Task, error) {
	for _, p := range []beeyard.Place{beeyard.PlaceDone, beeyard.PlaceFailed, beeyard.PlaceHeld, beeyard.PlacePending} {
		t, _, err := readTask(r.place(p), bodyName(id), id)
		switch {
		case missing(err), errors.Is(err, beeyard.ErrNotTask):
		case err != nil:
			return nil, err
		case t.Ext.Token == tok.String():
			return t, r.place(p).Sync()
		}
	}
	return nil, nil
}

// settleOne takes one prepared pass through record, decision and finish.
func (r *Run) settleOne(ctx context.Context, p *pass) error {
	if err := r.record(p, true); err != nil {
		return err
	}
	decided, err := r.decide(ctx, p)
	if err != nil || !decided {
		return err
	}
	p.decided = true
	return r.finish(ctx, p)
}

// Settle ends a claim by its token, from whatever process: see beeyard.Queue.
func (r *Run) Settle(ctx context.Context, ref beeyard.Ref, s beeyard.Settlement) (beeyard.Settled, error) {
	if err := r.writable("settle"); err != nil {
		return beeyard.Settled{}, err
	}
	dir, err := r.openClaimDir(ref.Token)
	if missing(err) {
		return beeyard.Settled{}, claimLost(ref.TaskID)
	}
	if err != nil {
		return beeyard.Settled{}, err
	}
	defer dir.Close()
	old, _, err := readTask(dir, bodyName(ref.TaskID), ref.TaskID)
	switch {
	case missing(err):
		return r.settledBefore(ctx, dir, ref, s)
	case err != nil:
		return beeyard.Settled{}, fmt.Errorf("read claim: %w", err)
	case old.Ext.Rev != ref.Token.Rev:
		return beeyard.Settled{}, claimLost(ref.TaskID)
	}
	if s.Outcome == beeyard.OutcomeDone {
		if s.Artifact == nil {
			if s.Artifact, err = r.stagedArtifact(dir, ref.TaskID); err != nil {
				return beeyard.Settled{}, err
			}
		}
		if s.FollowUps == nil {
			if s.FollowUps, _, err = r.readFollowUps(dir, ref.TaskID); err != nil {
				return beeyard.Settled{}, err
			}
		}
	}
	p, err := r.prepare(dir, old, ref.Token, s)
	if err != nil {
		return beeyard.Settled{}, err
	}
	if err := r.settleOne(ctx, p); err != nil {
		return beeyard.Settled{}, err
	}
	return p.answer(), r.recorded(ctx, p, true)
}

// settledBefore answers for a claim that is not there: the same settle once
// more is a success, so that who did not hear the answer may ask again.
func (r *Run) settledBefore(ctx context.Context, dir durable.Dir, ref beeyard.Ref, s beeyard.Settlement) (beeyard.Settled, error) {
	// A settle that was decided and could not be published goes on here.
	taken, err := takenOf(dir, ref.TaskID)
	if err != nil {
		return beeyard.Settled{}, err
	}
	for _, n := range taken {
		if err := r.finishFound(ctx, ref.Token.Dir(), dir, n); err != nil {
			return beeyard.Settled{}, err
		}
	}
	t, err := r.byToken(ref.TaskID, ref.Token)
	if err != nil {
		return beeyard.Settled{}, err
	}
	if t != nil && t.Ext.Outcome == s.Outcome {
		return settledOf(t), nil
	}
	return beeyard.Settled{}, errors.Join(claimLost(ref.TaskID), r.keepAside(dir, ref.TaskID, nonce(recordNonce), ""))
}

func (p *pass) answer() beeyard.Settled {
	s := settledOf(p.next)
	s.Published, s.Skipped = p.published, p.skipped
	return s
}

func settledOf(t *beeyard.Task) beeyard.Settled {
	s := beeyard.Settled{TaskID: t.ID, Outcome: t.Ext.Outcome, Rev: t.Ext.Rev, Attempt: t.Ext.Attempt,
		RetryAt: t.Ext.RetryAt, Published: t.Ext.NextIDs}
	switch t.Ext.Target {
	case beeyard.PlaceDone:
		s.State = beeyard.StateDone
	case beeyard.PlaceFailed:
		s.State = beeyard.StateFailed
		if t.Ext.Outcome == beeyard.OutcomeCanceled {
			s.State = beeyard.StateCanceled
		}
	case beeyard.PlaceHeld:
		s.State = beeyard.StateWaiting
		if t.Ext.Hold != nil {
			s.State = beeyard.StateHeld
		}
	default:
		s.State = beeyard.StateReady
	}
	return s
}

// recorded tells the rest of the run of a settle that is durable: the
// checkpoint and the events. now writes the checkpoint before the answer, as a
// single-shot complete must; a worker owes it.
func (r *Run) recorded(ctx context.Context, p *pass, now bool) error {
	r.event("settled", p.next, p.token.String(), string(p.next.Ext.Outcome))
	switch p.next.Ext.Target {
	case beeyard.PlaceDone:
		if now {
			return r.completedNow(ctx, p.id)
		}
		r.owe(p.id)
	case beeyard.PlaceFailed:
		if p.next.Ext.Outcome == beeyard.OutcomeFailed {
			return r.failureRisk(ctx, p.id, p.next.Ext.Reason)
		}
	}
	return nil
}

func (r *Run) writable(op string) error {
	if r.ro {
		return &beeyard.Error{Op: op, ID: r.id, Err: beeyard.Because(beeyard.ErrNotAllowed, "the run was opened for reading only")}
	}
	return nil
}
