package spool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// claims finds decisions that nobody carried out, claims whose owner is gone or
// stopped, and what claims left behind.
func (d *doctor) claims(ctx context.Context) error {
	err := d.r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
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
		return true, nil
	})
	if err != nil || d.r.ro {
		return err // whose life has ended is asked through a file that is touched
	}
	rep, err := d.r.Reap(ctx, beeyard.ReapOptions{DryRun: true, StaleAfter: d.o.StaleAfter})
	if err != nil {
		return fmt.Errorf("look for claims of the dead: %w", err)
	}
	for _, c := range rep.Reaped {
		if c.Action == "finished" && strings.Contains(c.Detail, "decided") {
			continue // told above
		}
		d.add(Finding{Code: "expired-claim", Severity: Warn, Subject: c.TaskID,
			Detail: fmt.Sprintf("its claimer %s is gone%s", beeyard.Quote(c.Worker), since(c.Age)),
			Fix:    "any worker, or beeyard reap, takes it back (" + c.Action + ")"})
	}
	for _, c := range rep.Skipped {
		if strings.Contains(c.Detail, "stopped") {
			d.add(Finding{Code: "stopped-worker", Severity: Warn, Subject: c.TaskID,
				Detail: "its worker " + beeyard.Quote(c.Worker) + " is stopped: " + c.Detail,
				Fix:    "let the process go on, or end it; its claim is then taken back"})
		}
	}
	return nil
}

func since(seconds float64) string {
	if seconds < 0 {
		return ""
	}
	return fmt.Sprintf(", last heard of %s ago", (time.Duration(seconds * float64(time.Second))).Round(time.Second))
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
