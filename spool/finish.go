package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// finish carries a decision out: follow-ups, artifact, publish, unlink. It may
// be run by anyone, at any time, any number of times, also while the owner of
// the claim runs it too. Any error leaves x~taken for the next finisher.
func (r *Run) finish(ctx context.Context, p *pass) error {
	go4, err := r.beforePublish(ctx, p)
	if err != nil {
		return err
	}
	if !go4 {
		// Dependants may start once done/ has the task: what it promises them,
		// its output, must be on the disk first.
		if p.next.Ext.Artifact != nil && p.next.Ext.Target == beeyard.PlaceDone {
			if err := r.artifacts.Sync(); err != nil {
				return fmt.Errorf("sync artifacts: %w", err)
			}
		}
		unlock, err := r.lockFor(ctx, p.next.Ext.Target)
		if err != nil {
			return err
		}
		err = r.publish(ctx, p)
		unlock()
		if err != nil {
			return err
		}
		// Without this a power cut brings the claim back after the answer.
		if err := r.place(p.next.Ext.Target).Sync(); err != nil {
			return fmt.Errorf("sync %s: %w", p.next.Ext.Target, err)
		}
	}
	return r.afterPublish(p)
}

// beforePublish does steps 0 to 2, without the sync of artifacts/. ended is
// true when there is nothing to publish.
func (r *Run) beforePublish(ctx context.Context, p *pass) (ended bool, err error) {
	if ended, err := r.load(ctx, p); err != nil || ended {
		return ended, err
	}
	late, err := r.superseded(p)
	if err != nil {
		return false, err
	}
	if late {
		r.note("%s had ended otherwise when a late claim was decided: its record is kept beside the artifacts", beeyard.Quote(p.id))
		return true, r.keepAside(p.dir, p.id, p.r, tagged(p.id, tagRecord, p.r))
	}
	if p.next.Ext.Target == beeyard.PlaceDone {
		bodies, err := r.decidedFollowUps(p)
		if err != nil {
			return false, err
		}
		if len(bodies) > 0 {
			if p.published, p.skipped, err = r.publishFollowUps(ctx, bodies); err != nil {
				return false, fmt.Errorf("publish follow-ups: %w", err)
			}
			for _, id := range p.skipped {
				r.note("follow-up %s of %s was left out: the id is in use", beeyard.Quote(id), beeyard.Quote(p.id))
			}
		}
		if p.next.Ext.Artifact != nil {
			if err := r.publishArtifact(ctx, p); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// load reads the record of a decision that we found. A missing one was
// published, within one boot: records go only by publishing. Of another boot a
// power cut may have kept the decision and lost the publish, so we look first.
func (r *Run) load(ctx context.Context, p *pass) (ended bool, err error) {
	if p.next != nil {
		return false, nil
	}
	p.next, _, err = readTask(p.dir, tagged(p.id, tagRecord, p.r), p.id)
	if err == nil {
		p.token = beeyard.Token{Rev: p.next.Ext.Rev - 1, Worker: p.token.Worker, Nonce: p.token.Nonce}
		return false, nil
	}
	if !missing(err) {
		return false, fmt.Errorf("read decided record of %s: %w", beeyard.Quote(p.id), err)
	}
	if !p.otherBoot {
		// Another finisher published it, and may not have flushed it yet: the
		// decision must not go before that is on the disk.
		return true, durable.SyncDirs(r.done, r.failed, r.pending, r.held)
	}
	// The lock is held from the look until a new record is there: two finishers
	// that both found nothing would publish twice.
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	taken := tagged(p.id, tagTaken, p.r)
	old, _, err := readTask(p.dir, taken, p.id)
	if err != nil {
		return missing(err), ignoreMissing(err)
	}
	if p.next, _, err = readTask(p.dir, tagged(p.id, tagRecord, p.r), p.id); err == nil {
		p.token.Rev = p.next.Ext.Rev - 1
		return false, nil
	} else if !missing(err) {
		return false, fmt.Errorf("read decided record of %s: %w", beeyard.Quote(p.id), err)
	}
	if counts, err := r.copyCounts(ctx, old, p.dname, taken, true); err != nil || counts {
		return counts, err
	}
	p.token.Rev = old.Ext.Rev
	q, err := r.prepare(p.dir, old, p.token, beeyard.Settlement{Outcome: beeyard.OutcomeReaped,
		Reason: "a power cut lost the record of its last attempt"})
	if err != nil {
		return false, err
	}
	p.old, p.next, p.data = old, q.next, q.data
	return false, r.record(p, true)
}

// superseded: done or failed holds this very life already, by another token.
func (r *Run) superseded(p *pass) (bool, error) {
	for _, place := range []beeyard.Place{beeyard.PlaceDone, beeyard.PlaceFailed} {
		if place == p.next.Ext.Target && p.own && len(p.next.Ext.Next) == 0 && p.next.Ext.Artifact == nil {
			continue // publishing without replacing meets it, and nothing comes before that
		}
		dir := r.place(place)
		if there, err := dir.Exists(bodyName(p.id)); err != nil || !there {
			if err != nil {
				return false, fmt.Errorf("look for an earlier end: %w", err)
			}
			continue
		}
		end, _, err := readTask(dir, bodyName(p.id), p.id)
		switch {
		case missing(err), errors.Is(err, beeyard.ErrNotTask):
		case err != nil:
			return false, err
		case end.Life() == p.next.Life() && end.Ext.Token != p.next.Ext.Token && end.Ext.Rev >= p.next.Ext.Rev:
			// A copy with a lower rev makes nobody late: a power cut left it.
			return true, dir.Sync()
		}
	}
	return false, nil
}

// lockFor takes the queue's lock where the target wants it: whatever enters
// pending or held does so under it (invariant 7).
func (r *Run) lockFor(ctx context.Context, target beeyard.Place) (func(), error) {
	if target == beeyard.PlacePending || target == beeyard.PlaceHeld {
		return r.lockQueue(ctx)
	}
	return func() {}, nil
}

// afterPublish is step 4: what the claim left goes, the decision last.
func (r *Run) afterPublish(p *pass) error {
	if p.next != nil && p.next.Ext.Target != beeyard.PlaceDone {
		// An attempt that did not count as done may have left half an answer; it
		// stays beside that attempt's log and never under the task's own name.
		// Not .md: whoever reads artifacts/*.md means what tasks have published.
		aside := fmt.Sprintf("%s~%d.partial", p.id, p.next.Ext.Attempt)
		if len(aside) > 255 {
			aside = lateName(p.id, p.r, "partial")
		}
		if err := p.dir.Rename(tagged(p.id, tagArtifact, ""), r.artifacts, aside); err != nil && !missing(err) {
			return fmt.Errorf("keep output aside: %w", err)
		}
	}
	for _, name := range p.extras {
		if err := p.dir.Remove(name); err != nil && !missing(err) {
			return fmt.Errorf("clear claim: %w", err)
		}
	}
	if err := p.dir.Remove(tagged(p.id, tagTaken, p.r)); err != nil && !missing(err) {
		return fmt.Errorf("clear decision: %w", err)
	}
	return nil
}

// finishTaken finishes every decision on an id, in whatever directory.
func (r *Run) finishTaken(ctx context.Context, id string) error {
	return r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		names, err := takenOf(dir, id)
		if err != nil {
			return false, err
		}
		for _, n := range names {
			if err := r.finishFound(ctx, name, dir, n); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// finishFound finishes one x~taken.<r> that was found in a directory.
func (r *Run) finishFound(ctx context.Context, dirName string, dir durable.Dir, taken string) error {
	id, _, rec := parseEntry(taken)
	worker, n, _ := beeyard.ParseClaimDir(dirName)
	l, err := r.liveness(ctx, dirName, dir)
	if err != nil {
		return err
	}
	p := &pass{dir: dir, dname: dirName, id: id, r: rec, token: beeyard.Token{Worker: worker, Nonce: n},
		otherBoot: l.Beat.Boot == "" || l.Beat.Boot != r.host.Boot}
	if p.extras, err = extrasOf(dir, id); err != nil {
		return err
	}
	if err := r.finish(ctx, p); err != nil {
		return err
	}
	if p.next != nil {
		return r.recorded(ctx, p, true)
	}
	return nil
}

// extrasOf lists what a claim of id may have left beside record, decision and
// staged output.
func extrasOf(dir durable.Dir, id string) ([]string, error) {
	var names []string
	err := dir.Each(func(e durable.Entry) bool {
		if i, tag, _ := parseEntry(e.Name); i == id && (tag == tagNext || tag == tagResult || tag == tagCancel) {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list claim directory: %w", err)
	}
	return names, nil
}
