package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"beeyard/internal/durable"
)

// quarantine lists what is no task.
func (d *doctor) quarantine(ctx context.Context) error {
	return d.r.eachQuarantined(ctx, func(q quarantined) bool {
		why := q.why
		if why == "" {
			why = "no reason is kept beside it"
		}
		d.add(Finding{Code: "quarantined", Severity: Warn, Subject: q.name, Detail: why,
			Fix: "mend it and enqueue it again, or leave it"})
		return true
	})
}

// spelling names ids that some file systems take for one: there a copy of the
// run would lose one of them.
func (d *doctor) spelling(context.Context) error {
	byFold := map[string][]string{}
	add := func(id string) {
		f := foldID(id)
		if !slices.Contains(byFold[f], id) {
			byFold[f] = append(byFold[f], id)
		}
	}
	for i := range d.sight.open {
		add(d.sight.open[i].id)
	}
	for id := range d.sight.ended {
		add(id)
	}
	var alike [][]string
	for _, ids := range byFold {
		if len(ids) > 1 {
			slices.Sort(ids)
			alike = append(alike, ids)
		}
	}
	slices.SortFunc(alike, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	for _, ids := range alike {
		d.add(Finding{Code: "ids-alike", Severity: Warn, Subject: ids[0],
			Detail: "these ids differ only in case or in how letters are composed: " + some(ids),
			Fix:    "all run; do not copy the run to a file system that ignores the difference"})
	}
	return nil
}

// checkpoint compares status.json with the record.
func (d *doctor) checkpoint(ctx context.Context) error {
	if err := d.corruptCopies(); err != nil {
		return err
	}
	s, err := d.r.readStatus()
	var broken *damage
	switch {
	case errors.As(err, &broken):
		d.fix(Finding{Code: "checkpoint-damaged", Severity: Bad, Subject: fileStatus, Detail: err.Error(),
			Fix: "it is kept as " + fileStatus + ".corrupt-<time> and rebuilt from the run's folders"}, func() error {
			_, err := d.r.Checkpoint(ctx)
			return err
		})
		return nil
	case err != nil:
		return fmt.Errorf("read checkpoint: %w", err)
	case s == nil:
		d.add(Finding{Code: "no-checkpoint", Severity: Info, Subject: fileStatus, Detail: "the run has none",
			Fix: "beeyard checkpoint init makes one"})
		return nil
	}
	done := s.completed()
	fresh, both, err := d.r.doneBeyond(done)
	if err != nil {
		return err
	}
	if len(fresh) > 0 {
		d.fix(Finding{Code: "checkpoint-behind", Severity: Info, Subject: fileStatus,
			Detail: fmt.Sprintf("%d finished tasks are not in completed_tasks yet: %s", len(fresh), some(fresh)),
			Fix:    "they are added, as every worker does"}, func() error { return d.r.reconcile(ctx) })
	}
	if both == len(done) {
		return nil
	}
	ahead, err := d.r.aheadOfDone(done)
	if err != nil {
		return err
	}
	// Run again after it was done: completed_tasks keeps it, as it has run.
	open := map[string]bool{}
	for i := range d.sight.open {
		open[d.sight.open[i].id] = true
	}
	ahead = slices.DeleteFunc(ahead, func(id string) bool { return open[id] || d.sight.ended[id] })
	for _, id := range ahead {
		d.add(Finding{Code: "completed-without-record", Severity: Warn, Subject: id,
			Detail: "completed_tasks lists it, and neither done/ nor the archive has it",
			Fix:    "tasks that depend on it count it as done; bring the file back from a copy if there is one"})
	}
	return nil
}

func (d *doctor) corruptCopies() error {
	var names []string
	err := d.r.root.Each(func(e durable.Entry) bool {
		if strings.HasPrefix(e.Name, fileStatus+".corrupt-") {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list the run's folder: %w", err)
	}
	if len(names) > 0 {
		d.add(Finding{Code: "checkpoint-kept", Severity: Info, Subject: d.r.path,
			Detail: "damaged checkpoints were kept: " + some(names), Fix: "take from them what the rebuilt one lacks"})
	}
	return nil
}
