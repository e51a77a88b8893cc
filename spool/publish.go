package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// publish moves the record to its target, never over another task.
func (r *Run) publish(ctx context.Context, p *pass) error {
	rec, name, target := tagged(p.id, tagRecord, p.r), bodyName(p.id), r.place(p.next.Ext.Target)
	if target == nil {
		return fmt.Errorf("%w: record of %s has no target", beeyard.ErrCorrupt, beeyard.Quote(p.id))
	}
	if p.next.Ext.Priority > 0 && !p.next.Ext.Target.Ended() {
		// Its marker went when it ended. A claim that overlooks it for want of one
		// is out of order, no more: that must not keep the record from its place.
		if err := r.markPriority(p.id); err != nil {
			r.note("%v", err)
		}
	}
	err := p.dir.RenameExcl(rec, target, name)
	switch {
	case err == nil:
		r.pickHint(p.id, p.next.Ext.Target)
		return nil
	case missing(err):
		return r.helped(p)
	case !exists(err):
		return fmt.Errorf("publish %s: %w", beeyard.Quote(p.id), err)
	}
	// Two who meet at one name settle it one after the other. Into pending and
	// held the caller holds the lock already.
	if p.next.Ext.Target.Ended() {
		unlock, err := r.lockQueue(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	}
	for range 3 {
		if again, err := r.publishOver(p, target, rec, name); err != nil || !again {
			return err
		}
		if err := p.dir.RenameExcl(rec, target, name); err == nil {
			r.pickHint(p.id, p.next.Ext.Target)
			return nil
		} else if missing(err) {
			return r.helped(p)
		} else if !exists(err) {
			return fmt.Errorf("publish %s: %w", beeyard.Quote(p.id), err)
		}
	}
	return fmt.Errorf("publish %s: %w: its name in %s/ keeps changing", beeyard.Quote(p.id), beeyard.ErrConflict, p.next.Ext.Target)
}

// helped: another finisher moved our record. It published it, or found it late
// and kept it aside; a writer who is about to answer "done" looks which.
func (r *Run) helped(p *pass) error {
	if !p.own || p.next.Ext.Target != beeyard.PlaceDone {
		return nil
	}
	there, err := r.carries(p)
	if err != nil {
		return err
	}
	if !there {
		return claimLost(p.id)
	}
	return nil
}

// publishOver decides what happens when the target's name is taken. The caller
// holds .queue.lock.
func (r *Run) publishOver(p *pass, target durable.Dir, rec, name string) (again bool, err error) {
	there, _, err := readTask(target, name, p.id)
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
	case there.Life() == p.next.Life() && there.Ext.Rev < p.next.Ext.Rev:
		return false, r.replaceWith(p, target, rec, name)
	case there.Life() == p.next.Life():
		return false, r.keepAside(p.dir, p.id, p.r, rec)
	}
	r.note("%s has two lives: an older program enqueued the id again; the later record stays", beeyard.Quote(p.id))
	if !p.next.Ext.Target.Ended() || !later(p.next, there) {
		return false, r.setAside(p.dir, rec, p.id, p.r)
	}
	// Kept under a second name first and replaced by one rename then: moved away
	// first, the id would for an instant have ended nowhere.
	if err := target.Link(name, r.quarantine, lateName(p.id, nonce(recordNonce), "json")); err != nil {
		return missing(err), ignoreMissing(err)
	}
	if err := r.quarantine.Sync(); err != nil {
		return false, fmt.Errorf("sync quarantine: %w", err)
	}
	return false, r.replaceWith(p, target, rec, name)
}

func (r *Run) replaceWith(p *pass, target durable.Dir, rec, name string) error {
	err := p.dir.Rename(rec, target, name)
	switch {
	case err == nil:
		r.pickHint(p.id, p.next.Ext.Target)
		return nil
	case missing(err):
		return r.helped(p)
	}
	return fmt.Errorf("publish %s: %w", beeyard.Quote(p.id), err)
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
	if err := r.quarantine.Sync(); err != nil {
		return fmt.Errorf("sync quarantine: %w", err)
	}
	return nil
}

// publishArtifact makes the staged output visible. One that is there already is
// replaced only under the lock and after a look for a later life's success,
// whose output it may be. When neither the staged file nor a published one of
// the recorded digest is there (a power cut took it), the record becomes a
// retry, by one rename, under the lock too: a second finisher must not publish
// it meanwhile.
func (r *Run) publishArtifact(ctx context.Context, p *pass) error {
	staged, name := tagged(p.id, tagArtifact, ""), p.id+".md"
	err := p.dir.RenameExcl(staged, r.artifacts, name)
	if err == nil {
		return nil
	}
	if !exists(err) && !missing(err) {
		return fmt.Errorf("publish artifact: %w", err)
	}
	if missing(err) {
		if same, err := r.artifactIs(name, p.next.Ext.Artifact); err != nil || same {
			return err
		}
	}
	unlock, lerr := r.lockQueue(ctx)
	if lerr != nil {
		return lerr
	}
	defer unlock()
	beaten, lerr := r.laterSuccess(ctx, p.next)
	if lerr != nil {
		return lerr
	}
	if beaten {
		return r.keepAside(p.dir, p.id, p.r, "")
	}
	err = p.dir.Rename(staged, r.artifacts, name)
	switch {
	case err == nil:
		// rename(2) between two names of one file does nothing: the staged name
		// would stay and look like output for ever.
		return ignoreMissing(p.dir.Remove(staged))
	case !missing(err):
		return fmt.Errorf("publish artifact: %w", err)
	}
	if same, err := r.artifactIs(name, p.next.Ext.Artifact); err != nil || same {
		return err
	}
	return r.artifactLost(p)
}

func (r *Run) artifactIs(name string, want *beeyard.Artifact) (bool, error) {
	have, err := digest(r.artifacts, name)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read artifact: %w", err)
	}
	return have.SHA256 == want.SHA256, nil
}

// laterSuccess: another, later life of the id has succeeded. The caller holds
// the lock.
func (r *Run) laterSuccess(ctx context.Context, t *beeyard.Task) (bool, error) {
	all, err := r.lookup(ctx, t.ID, true, false)
	if err != nil {
		return false, err
	}
	for _, f := range all {
		if f.task != nil && f.task.Life() != t.Life() && f.place == beeyard.PlaceDone && later(f.task, t) {
			return true, nil
		}
	}
	return false, nil
}

func (r *Run) artifactLost(p *pass) error {
	rec := tagged(p.id, tagRecord, p.r)
	now, _, err := readTask(p.dir, rec, p.id)
	switch {
	case missing(err):
		return nil // published by another finisher: publish() meets that
	case err != nil:
		return fmt.Errorf("read decided record: %w", err)
	case now.Ext.Target != beeyard.PlaceDone:
		p.next, p.own = now, false // another finisher has replaced it
		return nil
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
	if err := p.dir.Rename(temp, p.dir, rec); err != nil {
		return errors.Join(fmt.Errorf("replace record: %w", err), ignoreMissing(p.dir.Remove(temp)))
	}
	p.next, p.data, p.own = q.next, q.data, false
	return nil
}
