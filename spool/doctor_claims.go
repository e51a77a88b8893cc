package spool

import (
	"context"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// claims finds decisions that nobody carried out, claims whose owner is gone or
// stopped, and what claims left behind.
func (d *doctor) claims(ctx context.Context) error {
	return d.r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		e, err := listEntries(dir)
		if err != nil {
			return false, err
		}
		for _, taken := range e.taken {
			if err := d.decided(ctx, name, dir, taken); err != nil {
				return false, err
			}
		}
		d.strays(name, &e)
		if len(e.claims) == 0 {
			return true, nil
		}
		l, err := d.r.liveness(ctx, name, dir)
		if err != nil {
			return false, fmt.Errorf("look at claimer: %w", err)
		}
		for _, claim := range e.claims {
			if err := d.owner(name, dir, claim, l); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// owner judges one claim as reap does, by the same clock where the run may be
// written; a beat from the future, which reap watches for a while, is only told.
func (d *doctor) owner(dname string, dir durable.Dir, claim string, l life) error {
	id, _, _ := parseEntry(claim)
	worker := workerOf(dname)
	if worker == "" {
		worker = "an operation"
	}
	newest := l.BeatAt
	info, err := dir.Stat(claim)
	if err != nil {
		return ignoreMissing(err)
	}
	if info.ChangeTime.After(newest) {
		newest = info.ChangeTime
	}
	age := d.now.Sub(newest)
	switch {
	case l.State == lifeStopped:
		d.add(Finding{Code: "stopped-worker", Severity: Warn, Subject: id,
			Detail: fmt.Sprintf("its worker %s is alive and stopped (pid %d)", beeyard.Quote(worker), l.Beat.PID),
			Fix:    "let the process go on, or end it; its claim is then taken back"})
	case age < -beatFuture:
		d.add(Finding{Code: "beat-ahead", Severity: Warn, Subject: id,
			Detail: fmt.Sprintf("the beat of its worker %s is %s ahead of this host's clock", beeyard.Quote(worker), -age.Round(time.Second)),
			Fix:    "set the clocks of both hosts by a time service"})
	case l.State == lifeDead, l.State == lifeUnknown && age > d.o.StaleAfter:
		d.add(Finding{Code: "expired-claim", Severity: Warn, Subject: id,
			Detail: fmt.Sprintf("its claimer %s is gone, last heard of %s ago", beeyard.Quote(worker), age.Round(time.Second)),
			Fix:    "any worker takes it back, and beeyard reap does"})
	}
	return nil
}

// decided finishes what was decided a while ago: a decision is left to its
// owner for a short time, and anyone's after that.
func (d *doctor) decided(ctx context.Context, dname string, dir durable.Dir, taken string) error {
	old, err := d.changedBefore(dir, taken, decidedGrace)
	if err != nil || !old {
		return err
	}
	id, _, _ := parseEntry(taken)
	d.fix(Finding{Code: "unfinished-settle", Severity: Warn, Subject: id,
		Detail: "its settle was decided in claimed/" + dname + " and not carried out to the end",
		Fix:    "it is finished, as any worker or reap does"}, func() error { return d.r.finishTaken(ctx, id) })
	return nil
}

// changedBefore asks the change time alone: a rename leaves the other one as it was.
func (d *doctor) changedBefore(dir durable.Dir, name string, age time.Duration) (bool, error) {
	info, err := dir.Stat(name)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", name, err)
	}
	return d.now.Sub(info.ChangeTime) > age, nil
}

// strays are what a claim left that is neither claimed nor decided any more.
func (d *doctor) strays(dname string, e *entries) {
	current := map[string]bool{}
	for _, n := range append(append([]string(nil), e.claims...), e.taken...) {
		id, _, _ := parseEntry(n)
		current[id] = true
	}
	for _, n := range append(append(append([]string(nil), e.records...), e.artifacts...), e.nexts...) {
		if id, _, _ := parseEntry(n); !current[id] {
			d.add(Finding{Code: "claim-leftover", Severity: Info, Subject: "claimed/" + dname + "/" + n,
				Detail: "its claim was lost before it was settled", Fix: "beeyard reap keeps it aside once the claimer is gone; nothing of it is thrown away"})
		}
	}
}

// keptAside counts what lost to another result and was kept for a person.
func (d *doctor) keptAside(context.Context) error {
	for _, dir := range []durable.Dir{d.r.quarantine, d.r.artifacts} {
		var names []string
		err := dir.Each(func(e durable.Entry) bool {
			if isLate(e.Name) {
				names = append(names, e.Name)
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", dir.Path(), err)
		}
		if len(names) > 0 {
			d.add(Finding{Code: "kept-aside", Severity: Info, Subject: dir.Path(),
				Detail: fmt.Sprintf("%d records or outputs came too late or lost to another and were kept: %s", len(names), some(names)),
				Fix:    "look at them; nothing of beeyard's needs them"})
		}
	}
	return nil
}
