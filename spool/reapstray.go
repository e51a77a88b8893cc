package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// beatFuture is how far ahead of the file server's clock a beat may be before
// it counts as one that cannot be judged by its time.
const beatFuture = 2 * time.Second

// janitor removes what writers that died left under temporary names, at most
// once an hour: it lists whole folders.
func (g *reaping) janitor() error {
	g.seenMu.Lock()
	due := g.janitorAt.IsZero() || g.now.Sub(g.janitorAt) > oldTemp
	if due {
		g.janitorAt = g.now
	}
	g.seenMu.Unlock()
	if !due {
		return nil
	}
	var errs []error
	for _, d := range []durable.Dir{g.pending, g.held, g.artifacts, g.meta} {
		if _, err := durable.CleanTemps(d, oldTemp, g.now); err != nil {
			errs = append(errs, fmt.Errorf("remove temporary files: %w", err))
		}
	}
	return errors.Join(errs...)
}

// ownerGone: dead beyond doubt, or silent for longer than the limit.
func (g *reaping) ownerGone(l life) bool {
	switch l.State {
	case lifeAlive, lifeStopped:
		return false
	case lifeDead:
		return true
	}
	return !l.BeatAt.IsZero() && g.now.Sub(l.BeatAt) > g.o.StaleAfter
}

// killStopped ends a stopped owner before its claims are taken, so that never
// two run, and waits for the kernel to free its lock.
func (g *reaping) killStopped(ctx context.Context, name string, dir durable.Dir, l life) (life, error) {
	if g.host.Kill == nil {
		return l, nil
	}
	if err := g.host.Kill(l.Beat.PID, l.Beat.Start); err != nil {
		return l, fmt.Errorf("kill stopped worker (pid %d): %w", l.Beat.PID, err)
	}
	g.report.Notes = append(g.report.Notes, fmt.Sprintf("the stopped worker (pid %d) was killed, then its claims were taken", l.Beat.PID))
	for range 250 {
		now, err := g.liveness(ctx, name, dir)
		if err != nil || now.State == lifeDead {
			return now, err
		}
		if err := clock.Sleep(ctx, g.clk, 20*time.Millisecond); err != nil {
			return now, err
		}
	}
	return l, nil
}

// endLeft ends what a killed owner's handlers still run, before its tasks can
// be claimed: two must never run one task. Only once a directory: it looks at
// every process of the host. What does not end after KILL runs no code any
// more, so a failure is told and takes no task hostage.
func (g *reaping) endLeft(name string, l life) {
	if g.o.DryRun || g.host.EndLeft == nil || l.Beat.Boot != g.host.Boot || g.left == name {
		return
	}
	g.left = name
	if err := g.host.EndLeft(); err != nil {
		g.note("end what %s had started: %v", beeyard.Quote(name), err)
	}
}

// strays keeps aside what lies in a dead owner's directory without a claim or
// a decision. Nothing is deleted but what says nothing (a request, a verdict).
func (g *reaping) strays(ctx context.Context, name string, dir durable.Dir, l life) error {
	e, err := listEntries(dir) // again: the claims have been dealt with
	if err != nil || g.o.DryRun {
		return err
	}
	busy := map[string]bool{}
	for _, n := range append(append([]string{}, e.claims...), e.taken...) {
		id, _, _ := parseEntry(n)
		busy[id] = true
	}
	var errs []error
	old := func(n string) (string, bool) {
		id, _, _ := parseEntry(n)
		info, err := dir.Stat(n)
		if busy[id] || err != nil || g.now.Sub(info.ChangeTime) <= decidedGrace {
			return id, false
		}
		// A listing may miss a name that moves meanwhile: ask for the claim, then
		// for the decision, in this order, which is that in which it moves.
		if there, err := dir.Exists(bodyName(id)); err != nil || there {
			return id, false
		}
		taken, err := takenOf(dir, id)
		return id, err == nil && len(taken) == 0
	}
	for _, n := range e.records {
		if id, ok := old(n); ok {
			errs = append(errs, g.strayRecord(ctx, name, dir, id, n, l))
		}
	}
	for _, n := range e.artifacts {
		if id, ok := old(n); ok {
			errs = append(errs, g.keepAside(dir, id, nonce(recordNonce), ""))
		}
	}
	for _, n := range e.nexts {
		if id, ok := old(n); ok {
			_, _, rec := parseEntry(n)
			if err := dir.Rename(n, g.artifacts, lateName(id, rec, "next.json")); err != nil && !missing(err) {
				errs = append(errs, fmt.Errorf("keep follow-up aside: %w", err))
			}
		}
	}
	for _, n := range e.small {
		if _, ok := old(n); ok {
			errs = append(errs, ignoreMissing(dir.Remove(n)))
		}
	}
	return errors.Join(errs...)
}

// strayRecord: a record alone is a lost claim's and is kept aside; after a
// reboot a whole one whose life is nowhere else is published, since a power
// cut may have kept it alone.
func (g *reaping) strayRecord(ctx context.Context, dname string, dir durable.Dir, id, name string, l life) error {
	_, _, rec := parseEntry(name)
	otherBoot := l.Beat.Boot != "" && g.host.Boot != "" && l.Beat.Boot != g.host.Boot
	if otherBoot {
		t, _, err := readTask(dir, name, id)
		if err == nil && t.Ext.Target != "" {
			known, err := g.lifeElsewhere(ctx, t, dname, name)
			if err != nil {
				return err
			}
			if !known {
				worker, n, _ := beeyard.ParseClaimDir(dname)
				p := &pass{dir: dir, dname: dname, id: id, r: rec, next: t,
					token: beeyard.Token{Rev: t.Ext.Rev - 1, Worker: worker, Nonce: n}}
				g.report.Notes = append(g.report.Notes, "a record of "+beeyard.Quote(id)+" survived a power cut alone and was published")
				if err := g.finish(ctx, p); err != nil {
					return err
				}
				return g.recorded(ctx, p, true)
			}
		} else if err != nil && !errors.Is(err, beeyard.ErrNotTask) {
			return ignoreMissing(err)
		}
	}
	g.report.Notes = append(g.report.Notes, "a lost claim's record of "+beeyard.Quote(id)+" was kept aside")
	return g.keepAside(dir, id, rec, name)
}

func (g *reaping) lifeElsewhere(ctx context.Context, t *beeyard.Task, dname, name string) (bool, error) {
	unlock, err := g.lockQueue(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	all, err := g.lookup(ctx, t.ID, true, false)
	if err != nil {
		return false, err
	}
	for _, f := range all {
		if f.task != nil && f.task.Life() == t.Life() {
			return true, nil
		}
	}
	return false, nil
}

// removeIdle removes a directory without any claim, an hour after its owner was
// last seen.
func (g *reaping) removeIdle(name string, dir durable.Dir, l life) error {
	if l.Older || l.State == lifeAlive || l.State == lifeStopped || g.o.DryRun {
		return nil
	}
	info, err := dir.Info()
	if err != nil {
		return ignoreMissing(err)
	}
	newest := info.ChangeTime
	if l.BeatAt.After(newest) {
		newest = l.BeatAt
	}
	if g.now.Sub(newest) < emptyDirAge {
		return nil
	}
	for _, n := range []string{fileBeat, fileBeatNote} {
		if err := dir.Remove(n); err != nil && !missing(err) {
			return fmt.Errorf("remove idle directory: %w", err)
		}
	}
	// Not empty: somebody left something meanwhile; the next round sees it.
	if err := g.claimed.Rmdir(name); err != nil && !missing(err) {
		g.note("claimed/%s could not be removed: %v", name, err)
	}
	return nil
}

func (g *reaping) add(to *[]beeyard.Reaped, id, dirName string, age time.Duration, action, detail string) {
	worker := dirName
	if w, _, ours := beeyard.ParseClaimDir(dirName); ours {
		worker = w
	}
	if g.alias != "" {
		worker = g.alias
		g.alias = ""
	}
	secs := age.Seconds()
	if age < 0 && age != -time.Second {
		secs = 0 // a beat in the future
	}
	*to = append(*to, beeyard.Reaped{TaskID: id, Worker: worker, Age: secs, Action: action, Detail: detail})
}

// reportAs names the next reported claim's worker as the older program did.
func (g *reaping) reportAs(worker string) { g.alias = worker }

// seen is what was observed of beats that are ahead of the clock: each counts
// as gone once it has not changed for the limit, by one's own clock.
type seen struct {
	Beat  time.Time `json:"beat"`
	Since time.Time `json:"since"`
}

const fileSeen = "seen"

// unchangedFor is how long a beat from the future has stayed the same. Single
// runs of reap keep what they saw in .beeyard/seen.
func (g *reaping) unchangedFor(name string, beat time.Time) time.Duration {
	g.seenMu.Lock()
	defer g.seenMu.Unlock()
	if g.seen == nil {
		g.seen = map[string]seen{}
		if data, _, err := g.meta.ReadFile(fileSeen, 1<<20); err == nil {
			_ = json.Unmarshal(data, &g.seen) // a hint: damaged counts as none
		}
	}
	now := g.clk.Now()
	s, ok := g.seen[name]
	if !ok || !s.Beat.Equal(beat) {
		g.seen[name] = seen{Beat: beat, Since: now}
		g.seenNew = true
		return 0
	}
	return now.Sub(s.Since)
}

func (r *Run) saveSeen(write bool) {
	r.seenMu.Lock()
	defer r.seenMu.Unlock()
	if !write || !r.seenNew {
		return
	}
	r.seenNew = false
	data, err := json.Marshal(r.seen)
	if err == nil {
		err = durable.WriteFile(r.meta, fileSeen, data, fileMode)
	}
	if err != nil {
		r.note("what was seen of beats ahead of the clock could not be kept: %v", err)
	}
}

// cancelOlder takes an older program's claim, under the lock, and settles it as
// canceled. Its worker goes on; its completion will find no claim.
func (g *reaping) cancelOlder(ctx context.Context, name string, dir durable.Dir, id string, request []byte) error {
	d, err := g.newClaimDir(ctx, "", beeyard.KindProcess)
	if err != nil {
		return err
	}
	defer func() { _ = d.close() }()
	if err := writeBody(d.dir, tagged(id, tagCancel, ""), request, false); err != nil {
		return err
	}
	unlock, err := g.lockQueue(ctx)
	if err != nil {
		return err
	}
	err = dir.Rename(bodyName(id), d.dir, bodyName(id))
	unlock()
	if err != nil {
		return ignoreMissing(err)
	}
	return g.end(ctx, d.name, d.dir, id, 0)
}
