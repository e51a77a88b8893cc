package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// OlderReap is what a compatibility reap did.
type OlderReap struct {
	Reaped  []beeyard.Reaped // back in pending/
	Skipped []string         // workers that live and hold claims, by id
}

// Reap puts the claims of workers whose beat is older than the limit back into
// pending/, never over a file that is there; without a beat they are stale at
// once. It counts no deaths and fails nothing. Claims with a token are ended by
// the rules for those: never while the worker's lock is held, and what was
// decided or recorded is finished and not run again.
func (c *Compat) Reap(ctx context.Context, limit time.Duration) (OlderReap, error) {
	r := c.r
	var out OlderReap
	if err := r.writable("reap"); err != nil {
		return out, err
	}
	now, err := durable.ServerNow(r.meta, "clock")
	if err != nil {
		return out, fmt.Errorf("ask the file server's clock: %w", err)
	}
	g := &reaping{Run: r, o: beeyard.ReapOptions{StaleAfter: limit}, now: now, older: true}
	var errs []error
	err = r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		reap := g.directory
		if _, _, ours := beeyard.ParseClaimDir(name); !ours {
			reap = g.olderDirectory
		}
		if err := reap(ctx, name, dir); err != nil {
			errs = append(errs, fmt.Errorf("reap claimed/%s: %w", name, err))
		}
		return context.Cause(ctx) == nil, nil
	})
	r.saveSeen(true)
	for _, e := range g.report.Reaped {
		if e.Action == "requeued" || e.Action == "returned" {
			out.Reaped = append(out.Reaped, e)
		} else {
			r.note("%s of %s %s: %s", beeyard.Quote(e.TaskID), beeyard.Quote(e.Worker), e.Action, e.Detail)
		}
	}
	for _, e := range g.report.Skipped {
		out.Skipped = append(out.Skipped, e.Worker)
	}
	slices.Sort(out.Skipped)
	out.Skipped = slices.Compact(out.Skipped)
	return out, errors.Join(append(errs, err)...)
}

// olderDirectory reaps claimed/<worker>/ as an older reaper does, by the beat alone.
func (g *reaping) olderDirectory(ctx context.Context, name string, dir durable.Dir) error {
	e, err := listEntries(dir)
	if err != nil || len(e.claims) == 0 {
		return err
	}
	age := -time.Second // as it is reported without a beat
	info, err := dir.Stat(fileBeat)
	switch {
	case missing(err):
	case err != nil:
		return fmt.Errorf("look at beat: %w", err)
	default:
		if age = max(g.now.Sub(info.ModTime), 0); info.ModTime.After(g.now.Add(beatFuture)) {
			age = g.unchangedFor(name, info.ModTime)
		}
	}
	slices.Sort(e.claims)
	var errs []error
	for _, entry := range e.claims {
		id, ok := taskIDOf(entry)
		switch {
		case !ok:
			errs = append(errs, g.quarantineFile(ctx, dir, entry, "its name cannot be a task id"))
		case age >= 0 && age <= g.o.StaleAfter:
			g.add(&g.report.Skipped, id, name, age, "deferred", "its beat is recent")
		default:
			errs = append(errs, g.olderClaim(ctx, name, dir, id, age))
		}
	}
	return errors.Join(errs...)
}

// olderClaim puts one claim back, under the lock.
func (g *reaping) olderClaim(ctx context.Context, name string, dir durable.Dir, id string, age time.Duration) error {
	body, _, err := readTask(dir, bodyName(id), id)
	switch {
	case missing(err):
		return nil
	case errors.Is(err, beeyard.ErrNotTask):
		return g.quarantineFile(ctx, dir, bodyName(id), err.Error())
	case err != nil:
		return err
	}
	unlock, err := g.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	counts, err := g.copyCounts(ctx, body, name, bodyName(id), false)
	if err != nil {
		return err
	}
	if counts {
		g.add(&g.report.Reaped, id, name, age, "dropped", "a newer copy of this task exists")
		return ignoreMissing(dir.Remove(bodyName(id)))
	}
	err = dir.RenameExcl(bodyName(id), g.pending, bodyName(id))
	switch {
	case missing(err):
		return nil // completed meanwhile
	case exists(err):
		g.note("%s of %s stays claimed: pending/ has a newer file of that name", beeyard.Quote(id), beeyard.Quote(name))
		return nil
	case err != nil:
		return fmt.Errorf("put %s back: %w", beeyard.Quote(id), err)
	}
	g.add(&g.report.Reaped, id, name, age, "requeued", "")
	g.event("reaped", body, "", "by an older command")
	g.pickHint(id, beeyard.PlacePending)
	return nil
}
