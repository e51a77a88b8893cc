package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
		if len(p.next.Ext.Next) > 0 {
			if p.published, p.skipped, err = r.publishFollowUps(ctx, p.next.Ext.Next); err != nil {
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
		return true, nil
	}
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
		case end.Life() == p.next.Life() && end.Ext.Token != p.next.Ext.Token:
			return true, nil
		}
	}
	return false, nil
}

// publishArtifact makes the staged output visible. When neither the staged file
// nor a published one of the recorded digest is there (a power cut took it),
// the record becomes a retry, by one rename.
func (r *Run) publishArtifact(ctx context.Context, p *pass) error {
	want := p.next.Ext.Artifact
	staged, name := tagged(p.id, tagArtifact, ""), p.id+".md"
	err := p.dir.Rename(staged, r.artifacts, name)
	if err == nil {
		// rename(2) between two names of one file does nothing: a link that NFS
		// or a copy made by hand left would stay and look staged for ever.
		if there, err := p.dir.Exists(staged); err == nil && there {
			return p.dir.Remove(staged)
		}
		return nil
	}
	if !missing(err) {
		return fmt.Errorf("publish artifact: %w", err)
	}
	if have, err := digest(r.artifacts, name); err == nil && have.SHA256 == want.SHA256 {
		return nil
	} else if err != nil && !missing(err) {
		return fmt.Errorf("read artifact: %w", err)
	}
	old := *p.next
	old.Ext.Rev--
	old.Ext.Attempt-- // the settle below counts the attempt that this record counted
	if n := len(old.Ext.Attempts); n > 0 {
		old.Ext.Attempts = old.Ext.Attempts[:n-1]
	}
	q, err := r.prepare(p.dir, &old, p.token, beeyard.Settlement{Outcome: beeyard.OutcomeRetry, Reason: "its output was lost before it could be published"})
	if err != nil {
		return err
	}
	temp := tempName("out")
	if err := writeBody(p.dir, temp, q.data, true); err != nil {
		return err
	}
	if err := p.dir.Rename(temp, p.dir, tagged(p.id, tagRecord, p.r)); err != nil {
		return errors.Join(fmt.Errorf("replace record: %w", err), ignoreMissing(p.dir.Remove(temp)))
	}
	p.next, p.data = q.next, q.data
	return nil
}

// lockFor takes the queue's lock where the target wants it: whatever enters
// pending or held does so under it (invariant 7).
func (r *Run) lockFor(ctx context.Context, target beeyard.Place) (func(), error) {
	if target == beeyard.PlacePending || target == beeyard.PlaceHeld {
		return r.lockQueue(ctx)
	}
	return func() {}, nil
}

// publish moves the record to its target, never over another task.
func (r *Run) publish(ctx context.Context, p *pass) error {
	rec, name, target := tagged(p.id, tagRecord, p.r), bodyName(p.id), r.place(p.next.Ext.Target)
	if target == nil {
		return fmt.Errorf("%w: record of %s has no target", beeyard.ErrCorrupt, beeyard.Quote(p.id))
	}
	for range 3 {
		err := p.dir.RenameExcl(rec, target, name)
		switch {
		case err == nil:
			r.pickHint(p.id, p.next.Ext.Target)
			return nil
		case missing(err):
			return nil // another finisher has published it
		case !errors.Is(err, fs.ErrExist):
			return fmt.Errorf("publish %s: %w", beeyard.Quote(p.id), err)
		}
		again, err := r.publishOver(ctx, p, target, rec, name)
		if err != nil || !again {
			return err
		}
	}
	return fmt.Errorf("publish %s: %w: its name in %s/ keeps changing", beeyard.Quote(p.id), beeyard.ErrConflict, p.next.Ext.Target)
}

// publishOver decides what happens when the target's name is taken.
func (r *Run) publishOver(ctx context.Context, p *pass, target durable.Dir, rec, name string) (again bool, err error) {
	there, _, err := readTask(target, name, p.id)
	end := p.next.Ext.Target == beeyard.PlaceDone || p.next.Ext.Target == beeyard.PlaceFailed
	switch {
	case missing(err):
		return true, nil
	case errors.Is(err, beeyard.ErrNotTask):
		r.note("%s/%s was no task and stood in the way of a record: moved to quarantine/", p.next.Ext.Target, name)
		return true, r.setAside(target, name, p.id, nonce(recordNonce))
	case err != nil:
		return false, err
	case there.Life() == p.next.Life() && there.Ext.Token == p.next.Ext.Token && there.Ext.Rev == p.next.Ext.Rev:
		return false, ignoreMissing(p.dir.Remove(rec)) // published already; link then unlink was cut in two
	case there.Life() == p.next.Life() && there.Ext.Rev < p.next.Ext.Rev && !end:
		if err := p.dir.Rename(rec, target, name); err != nil {
			return false, ignoreMissing(err)
		}
		r.pickHint(p.id, p.next.Ext.Target)
		return false, nil
	case there.Life() == p.next.Life():
		return false, r.keepAside(p.dir, p.id, p.r, rec)
	}
	r.note("%s has two lives: an older program enqueued the id again; the later record stays", beeyard.Quote(p.id))
	if end && later(p.next, there) {
		return true, r.setAside(target, name, p.id, nonce(recordNonce))
	}
	return false, r.setAside(p.dir, rec, p.id, p.r)
}

// later orders two lives of one id by created_at.
func later(a, b *beeyard.Task) bool {
	at, aok := a.Created()
	bt, bok := b.Created()
	if aok && bok {
		return at.After(bt)
	}
	return a.CreatedAt > b.CreatedAt
}

// setAside moves a whole body that lost to another to quarantine/.
func (r *Run) setAside(dir durable.Dir, name, id, rec string) error {
	if err := dir.Rename(name, r.quarantine, lateName(id, rec, "json")); err != nil && !missing(err) {
		return fmt.Errorf("set aside %s: %w", beeyard.Quote(id), err)
	}
	return r.quarantine.Sync()
}

// afterPublish is step 4: what the claim left goes, the decision last.
func (r *Run) afterPublish(p *pass) error {
	if p.next != nil && p.next.Ext.Target != beeyard.PlaceDone {
		// An attempt that did not count as done may have left half an answer; it
		// stays beside that attempt's log and never under the task's own name.
		aside := fmt.Sprintf("%s~%d.md", p.id, p.next.Ext.Attempt)
		if len(aside) > 255 {
			aside = lateName(p.id, p.r, "md")
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
