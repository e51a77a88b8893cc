package spool

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// pruneChunk bounds how many bodies move under one hold of the lock.
const pruneChunk = 256

// outgoing is a finished task that is to be pruned.
type outgoing struct {
	id    string
	from  beeyard.Place
	state beeyard.State
}

// Prune moves finished tasks out of the way, or removes their bodies: see
// beeyard.Queue. A pruned id stays used, and meets dependencies if it was done.
// Outputs and logs under artifacts/ stay. A task with a decision that is still
// being carried out is left for the next prune, with a note. On nil all is
// durable; after an error the report says what was pruned before it.
func (r *Run) Prune(ctx context.Context, o beeyard.PruneOptions) (beeyard.PruneReport, error) {
	report := beeyard.PruneReport{Pruned: []string{}, Deleted: o.Delete, DryRun: o.DryRun}
	if !o.DryRun {
		if err := r.writable("prune"); err != nil {
			return report, err
		}
	}
	tasks, err := r.pruneCandidates(ctx, o)
	if err != nil {
		return report, err
	}
	if o.DryRun {
		for _, t := range tasks {
			report.Pruned = append(report.Pruned, t.id)
		}
		return report, nil
	}
	if err := r.beforePrune(ctx, tasks); err != nil {
		return report, err
	}
	for len(tasks) > 0 {
		n := min(len(tasks), pruneChunk)
		moved, err := r.pruneSome(ctx, tasks[:n], o.Delete)
		report.Pruned = append(report.Pruned, moved...)
		if err != nil {
			return report, fmt.Errorf("prune: %w", err)
		}
		tasks = tasks[n:]
	}
	return report, nil
}

// pruneCandidates lists what the options choose, by id.
func (r *Run) pruneCandidates(ctx context.Context, o beeyard.PruneOptions) ([]outgoing, error) {
	want := map[beeyard.State]bool{}
	for _, s := range o.States {
		if !s.Finished() {
			return nil, &beeyard.Error{Op: "prune", Err: beeyard.Because(beeyard.ErrUsage, "a task that is "+string(s)+" has not ended"),
				Hint: "done, failed and canceled tasks can be pruned"}
		}
		want[s] = true
	}
	if len(want) == 0 {
		want[beeyard.StateDone] = true
	}
	only := map[string]bool{}
	for _, id := range o.IDs {
		only[id] = true
	}
	now, err := r.serverNowReading(o.DryRun)
	if err != nil {
		return nil, err
	}
	var all []outgoing
	for _, p := range []beeyard.Place{beeyard.PlaceDone, beeyard.PlaceFailed} {
		if p == beeyard.PlaceDone && !want[beeyard.StateDone] ||
			p == beeyard.PlaceFailed && !want[beeyard.StateFailed] && !want[beeyard.StateCanceled] {
			continue
		}
		ids, err := r.endedIDs(p, only)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			t, ok, err := r.pruneCandidate(id, p, now, o.OlderThan)
			if err != nil {
				return nil, err
			}
			if ok && want[t.state] {
				all = append(all, t)
			}
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].id < all[j].id })
	return all, r.knownAll(ctx, o.IDs, all)
}

// serverNowReading does not touch the run's clock file where nothing may be written.
func (r *Run) serverNowReading(readOnly bool) (time.Time, error) {
	if readOnly || r.ro {
		return r.clk.Now(), nil
	}
	return r.serverNow()
}

func (r *Run) endedIDs(p beeyard.Place, only map[string]bool) ([]string, error) {
	var ids []string
	if len(only) > 0 {
		for id := range only {
			if beeyard.CheckStoredID(id) == nil {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	err := r.place(p).Each(func(e durable.Entry) bool {
		if id, ok := taskIDOf(e.Name); ok {
			ids = append(ids, id)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", p, err)
	}
	return ids, nil
}

// pruneCandidate tells how a task ended and whether that is long enough ago. A
// body's modification time is when its last record was written.
func (r *Run) pruneCandidate(id string, p beeyard.Place, now time.Time, age time.Duration) (outgoing, bool, error) {
	t := outgoing{id: id, from: p, state: beeyard.StateDone}
	dir, name := r.place(p), bodyName(id)
	info, err := dir.Stat(name)
	if missing(err) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("look at %s: %w", beeyard.Quote(id), err)
	}
	if !info.Mode.IsRegular() || now.Sub(info.ModTime) < age {
		return t, false, nil
	}
	if p == beeyard.PlaceFailed {
		body, _, err := readTask(dir, name, id)
		switch {
		case missing(err):
			return t, false, nil
		case errors.Is(err, beeyard.ErrNotTask):
			r.note("%s/%s cannot be read and is not pruned: %v", p, name, err)
			return t, false, nil
		case err != nil:
			return t, false, err
		}
		t.state = beeyard.Judge(body, p, now, nil).State
	}
	return t, true, nil
}

// knownAll refuses ids that were named and that the run does not have. One that
// was pruned before is as it should be.
func (r *Run) knownAll(ctx context.Context, ids []string, chosen []outgoing) error {
	have := map[string]bool{}
	for _, t := range chosen {
		have[t.id] = true
	}
	for _, id := range ids {
		if have[id] {
			continue
		}
		if err := beeyard.CheckStoredID(id); err != nil {
			return err
		}
		f, used, err := r.inUse(ctx, id)
		if err != nil {
			return err
		}
		if !used {
			return notFound("prune", id)
		}
		if f.place != beeyard.PlaceArchive && f.place != beeyard.PlaceDone && f.place != beeyard.PlaceFailed {
			return &beeyard.Error{Op: "prune", ID: id, Err: beeyard.Because(beeyard.ErrConflict, "it has not ended: it is "+string(f.place))}
		}
	}
	return nil
}
