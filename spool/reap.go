package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

const (
	// decidedGrace is how long a decision is left to the one who took it.
	decidedGrace = 10 * time.Second
	// emptyDirAge: an idle directory of a dead owner is removed after this.
	emptyDirAge = time.Hour

	defaultStaleAfter = 300 * time.Second
)

// reaping is one round of Reap.
type reaping struct {
	*Run
	o      beeyard.ReapOptions
	now    time.Time // the file server's
	report beeyard.ReapReport
	alias  string // the worker id to report for a claim that was taken to our own directory
	// takeBack: every directory of o.Worker is a dead earlier life of the caller.
	takeBack bool
	// older: the compatibility command, which counts no deaths and fails nothing.
	older bool
	// left is the directory whose owner's processes were ended last.
	left string
}

// Reap ends the claims of the dead and finishes what was decided. An error on
// one directory does not keep it from the others.
func (r *Run) Reap(ctx context.Context, o beeyard.ReapOptions) (beeyard.ReapReport, error) {
	return r.reap(ctx, o, false)
}

func (r *Run) reap(ctx context.Context, o beeyard.ReapOptions, takeBack bool) (beeyard.ReapReport, error) {
	if err := r.writable("reap"); err != nil {
		return beeyard.ReapReport{}, err
	}
	if o.StaleAfter <= 0 {
		o.StaleAfter = defaultStaleAfter
	}
	now, err := durable.ServerNow(r.meta, "clock")
	if err != nil {
		return beeyard.ReapReport{}, fmt.Errorf("ask the file server's clock: %w", err)
	}
	g := &reaping{Run: r, o: o, now: now, takeBack: takeBack,
		report: beeyard.ReapReport{Reaped: []beeyard.Reaped{}, Skipped: []beeyard.Reaped{}}}
	var errs []error
	err = r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		worker, _, _ := beeyard.ParseClaimDir(name)
		if o.Worker != "" && worker != o.Worker {
			return true, nil
		}
		if err := g.directory(ctx, name, dir); err != nil {
			errs = append(errs, fmt.Errorf("reap claimed/%s: %w", name, err))
		}
		return context.Cause(ctx) == nil, nil
	})
	if !o.DryRun {
		errs = append(errs, g.janitor())
	}
	r.saveSeen(!o.DryRun)
	return g.report, errors.Join(append(errs, err)...)
}

// entries are the names of one claim directory by task.
type entries struct {
	claims, taken, records, artifacts, nexts, small []string
	any                                             bool
}

func listEntries(dir durable.Dir) (entries, error) {
	var e entries
	err := dir.Each(func(n durable.Entry) bool {
		_, tag, _ := parseEntry(n.Name)
		switch tag {
		case tagClaim:
			e.claims = append(e.claims, n.Name)
		case tagTaken:
			e.taken = append(e.taken, n.Name)
		case tagRecord:
			e.records = append(e.records, n.Name)
		case tagArtifact:
			e.artifacts = append(e.artifacts, n.Name)
		case tagNext:
			e.nexts = append(e.nexts, n.Name)
		case tagResult, tagCancel:
			e.small = append(e.small, n.Name)
		default:
			return true
		}
		e.any = true
		return true
	})
	if err != nil {
		return e, fmt.Errorf("list claim directory: %w", err)
	}
	return e, nil
}

func (g *reaping) directory(ctx context.Context, name string, dir durable.Dir) error {
	e, err := listEntries(dir)
	if err != nil {
		return err
	}
	l, err := g.liveness(ctx, name, dir)
	if err != nil {
		return err
	}
	if !e.any {
		return g.removeIdle(name, dir, l)
	}
	var errs []error
	for _, n := range e.taken {
		errs = append(errs, g.decided(ctx, name, dir, n, l))
	}
	for _, n := range e.claims {
		errs = append(errs, g.claim(ctx, name, dir, n, l))
	}
	if !l.Older && g.ownerGone(l) {
		errs = append(errs, g.strays(ctx, name, dir, l))
	}
	return errors.Join(errs...)
}

// decided finishes a decision that its owner left, or is too slow with.
func (g *reaping) decided(ctx context.Context, name string, dir durable.Dir, taken string, l life) error {
	info, err := dir.Stat(taken)
	if err != nil {
		return ignoreMissing(err)
	}
	age := g.now.Sub(info.ChangeTime)
	// A single command is done with it in an instant, and helping it is harmless.
	single := l.State == lifeUnknown && l.Beat.Kind == beeyard.KindSingle
	if age < decidedGrace && l.State != lifeDead && !single {
		return nil
	}
	id, _, _ := parseEntry(taken)
	g.add(&g.report.Reaped, id, name, age, "finished", "its settle had been decided")
	if g.o.DryRun {
		return nil
	}
	return g.finishFound(ctx, name, dir, taken)
}

// claim judges one D/x.json and ends it if its owner is gone.
func (g *reaping) claim(ctx context.Context, name string, dir durable.Dir, entry string, l life) error {
	id, ok := taskIDOf(entry)
	if !ok {
		return g.quarantineFile(ctx, dir, entry, "its name cannot be a task id")
	}
	info, err := dir.Stat(entry)
	if err != nil {
		return ignoreMissing(err)
	}
	// A claim counts as a beat: a fresh one is never judged by an old heartbeat.
	newest := l.BeatAt
	if info.ChangeTime.After(newest) {
		newest = info.ChangeTime
	}
	age := g.now.Sub(newest)
	shown := age
	if l.BeatAt.IsZero() && l.Older {
		shown = -time.Second
	}
	if newest.After(g.now.Add(beatFuture)) {
		age = g.unchangedFor(name, newest)
	}
	if l.State == lifeStopped && g.o.KillStopped && !g.o.DryRun {
		if l, err = g.killStopped(ctx, name, dir, l); err != nil {
			return err
		}
	}
	switch {
	case l.State == lifeStopped:
		g.add(&g.report.Skipped, id, name, shown, "deferred", fmt.Sprintf("pid %d is alive but stopped", l.Beat.PID))
		return nil
	case l.State == lifeAlive:
		g.add(&g.report.Skipped, id, name, shown, "deferred", fmt.Sprintf("pid %d is alive", l.Beat.PID))
		return nil
	case l.State == lifeDead, g.takeBack && l.Beat.Kind == beeyard.KindProcess:
	case age <= g.o.StaleAfter:
		g.add(&g.report.Skipped, id, name, shown, "deferred", "its beat is recent")
		return nil
	}
	if l.Older {
		return g.takeOlder(ctx, name, dir, id, shown)
	}
	g.endLeft(name, l)
	return g.end(ctx, name, dir, id, shown)
}

// takeOlder moves an older program's claim into a directory of our own, where
// there is a fence, under the lock.
func (g *reaping) takeOlder(ctx context.Context, name string, dir durable.Dir, id string, age time.Duration) error {
	if g.o.DryRun {
		g.add(&g.report.Reaped, id, name, age, "requeued", "")
		return nil
	}
	own := name
	if beeyard.CheckID("worker", name) != nil {
		own = "" // an operation's: its death would cost no attempt, which is the safe side
	}
	// (D, x) is used once, and the name carries the worker: one for each.
	d, err := g.newClaimDir(ctx, own, beeyard.KindProcess)
	if err != nil {
		return err
	}
	defer func() { _ = d.close() }()
	unlock, err := g.lockQueue(ctx)
	if err != nil {
		return err
	}
	err = dir.Rename(bodyName(id), d.dir, bodyName(id))
	unlock()
	if err != nil {
		return ignoreMissing(err)
	}
	g.reportAs(name)
	return g.end(ctx, d.name, d.dir, id, age)
}

// end settles a claim whose owner is gone.
func (g *reaping) end(ctx context.Context, name string, dir durable.Dir, id string, age time.Duration) error {
	worker, n, _ := beeyard.ParseClaimDir(name)
	tok := beeyard.Token{Worker: worker, Nonce: n}
	body, _, err := readTask(dir, bodyName(id), id)
	switch {
	case missing(err):
		return nil
	case errors.Is(err, beeyard.ErrNotTask):
		return g.quarantineFile(ctx, dir, bodyName(id), err.Error())
	case err != nil:
		return err
	}
	tok.Rev = body.Ext.Rev
	if p, err := g.wholeRecord(dir, name, body); err != nil || p != nil {
		if err != nil {
			return err
		}
		g.add(&g.report.Reaped, id, name, age, "finished", "its record was whole: the work was done and is not run again")
		if g.o.DryRun {
			return nil
		}
		return g.conclude(ctx, p)
	}
	counts, err := g.dropCopy(ctx, body, name, dir)
	if err != nil || counts {
		if counts {
			g.add(&g.report.Reaped, id, name, age, "dropped", "a newer copy of this task exists")
		}
		return err
	}
	s := beeyard.Settlement{Outcome: beeyard.OutcomeReaped, Reason: "its worker died", Limits: g.o.Limits}
	action := "requeued"
	if cancel, err := dir.Exists(tagged(id, tagCancel, "")); err != nil {
		return fmt.Errorf("look for a cancel: %w", err)
	} else if cancel {
		s = beeyard.Settlement{Outcome: beeyard.OutcomeCanceled, Reason: "canceled; its worker died"}
	} else if worker == "" {
		s = beeyard.Settlement{Outcome: beeyard.OutcomeRelease, Reason: "the operation on it did not end"}
	} else if g.older {
		s = beeyard.Settlement{Outcome: beeyard.OutcomeRelease, Reason: "its worker is gone"}
	}
	p, err := g.prepare(dir, body, tok, s)
	if err == nil && worker == "" && s.Outcome == beeyard.OutcomeRelease {
		action, err = "returned", p.goBack(body)
	}
	if err != nil {
		return err
	}
	switch p.next.Ext.Outcome {
	case beeyard.OutcomeFailed:
		action = "failed"
	case beeyard.OutcomeCanceled:
		action = "canceled"
	}
	g.add(&g.report.Reaped, id, name, age, action, p.next.Ext.Reason)
	if g.o.DryRun {
		return nil
	}
	if p.extras, err = extrasOf(dir, id); err != nil {
		return err
	}
	if err := g.record(p, true); err != nil {
		return err
	}
	return g.conclude(ctx, p)
}

// goBack makes the record of a dead operation's task: where it was, as it was,
// with the next revision. An operation that died has asked for nothing.
func (p *pass) goBack(body *beeyard.Task) error {
	next := *body
	next.Ext.Rev, next.Ext.Token = body.Ext.Rev+1, p.token.String()
	if next.Ext.Target == "" || next.Ext.Target == beeyard.PlaceClaimed {
		next.Ext.Target = beeyard.PlacePending
		if due, err := body.Due(); err != nil || !due.IsZero() || body.Ext.Hold != nil {
			next.Ext.Target = beeyard.PlaceHeld // enqueued there; a due one is promoted from there
		}
	}
	data, err := next.Encode()
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	p.next, p.data = &next, data
	return nil
}

// conclude decides with a record and finishes. Losing to another reaper, or to
// an owner that was slower than dead, is no error: somebody settled it.
func (g *reaping) conclude(ctx context.Context, p *pass) error {
	decided, err := g.decideQuietly(p)
	if err != nil || !decided {
		return err
	}
	if err := g.finish(ctx, p); err != nil {
		return err
	}
	g.event("reaped", p.next, p.token.String(), string(p.next.Ext.Outcome))
	return g.recorded(ctx, p, true)
}

// decideQuietly is decide for one who has no output to keep: on loss our own
// record is withdrawn, after a look for a decision that names it.
func (g *reaping) decideQuietly(p *pass) (bool, error) {
	taken := tagged(p.id, tagTaken, p.r)
	err := p.dir.Rename(bodyName(p.id), p.dir, taken)
	if err == nil {
		return true, nil
	}
	there, lookErr := p.dir.Exists(taken)
	if lookErr != nil || there {
		return there, lookErr
	}
	if !missing(err) {
		return false, fmt.Errorf("decide: %w", err)
	}
	if p.own {
		return false, ignoreMissing(p.dir.Remove(tagged(p.id, tagRecord, p.r)))
	}
	return false, nil
}

// wholeRecord finds a record that the dead owner had prepared for this very
// claim, a success first: the work was done.
func (g *reaping) wholeRecord(dir durable.Dir, dname string, body *beeyard.Task) (*pass, error) {
	e, err := listEntries(dir)
	if err != nil {
		return nil, err
	}
	worker, n, _ := beeyard.ParseClaimDir(dname)
	tok := beeyard.Token{Rev: body.Ext.Rev, Worker: worker, Nonce: n}
	var best *pass
	for _, name := range e.records {
		id, _, rec := parseEntry(name)
		if id != body.ID {
			continue
		}
		t, _, err := readTask(dir, name, id)
		if missing(err) || errors.Is(err, beeyard.ErrNotTask) {
			continue // torn: it died while writing
		}
		if err != nil {
			return nil, err
		}
		// A record belongs to this claim only if it carries its token.
		if t.Ext.Token != tok.String() || t.Life() != body.Life() || t.Ext.Rev != body.Ext.Rev+1 {
			continue
		}
		p := &pass{dir: dir, dname: dname, id: id, r: rec, token: tok, old: body, next: t}
		if best == nil || t.Ext.Target == beeyard.PlaceDone && best.next.Ext.Target != beeyard.PlaceDone {
			best = p
		}
	}
	if best == nil {
		return nil, nil
	}
	// The owner may have died between write and flush: the decision may only
	// follow a record that is on the disk (invariant 4).
	f, err := dir.Append(tagged(best.id, tagRecord, best.r), fileMode)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("sync record: %w", err)
	}
	best.extras, err = extrasOf(dir, best.id)
	return best, err
}

// dropCopy unlinks the claim when another copy of this life counts more.
func (g *reaping) dropCopy(ctx context.Context, body *beeyard.Task, dname string, dir durable.Dir) (bool, error) {
	unlock, err := g.lockQueue(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	counts, err := g.copyCounts(ctx, body, dname, bodyName(body.ID), false)
	if err != nil || !counts || g.o.DryRun {
		return counts, err
	}
	return true, ignoreMissing(dir.Remove(bodyName(body.ID)))
}

// copyCounts reports whether another body of this life has a revision at least
// as high. The caller holds .queue.lock. With lives, a later life counts too.
func (r *Run) copyCounts(ctx context.Context, t *beeyard.Task, dname, name string, lives bool) (bool, error) {
	all, err := r.lookup(ctx, t.ID, true, false)
	if err != nil {
		return false, err
	}
	for _, f := range all {
		if f.task == nil || f.place == beeyard.PlaceClaimed && f.claim == dname && f.name == name {
			continue
		}
		same := f.task.Life() == t.Life()
		if same && f.task.Ext.Rev >= t.Ext.Rev || !same && lives && later(f.task, t) {
			return true, nil
		}
	}
	return false, nil
}
