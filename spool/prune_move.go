package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// beforePrune makes what is to be pruned ready for it: decisions on it are
// carried out, and older programs, which know no pruned list, find what was
// done in completed_tasks.
func (r *Run) beforePrune(ctx context.Context, tasks []outgoing) error {
	want := make(map[string]bool, len(tasks))
	var done []string
	for _, t := range tasks {
		want[t.id] = true
		if t.from == beeyard.PlaceDone {
			done = append(done, t.id)
		}
	}
	decided, err := r.decidedIDs(ctx, want)
	if err != nil {
		return err
	}
	for id := range decided {
		if err := r.finishTaken(ctx, id); err != nil {
			return fmt.Errorf("finish %s: %w", beeyard.Quote(id), err)
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := r.completedNow(ctx, done...); err != nil {
		return fmt.Errorf("list as completed: %w", err)
	}
	return nil
}

// decidedIDs gives those of the ids that have an x~taken somewhere.
func (r *Run) decidedIDs(ctx context.Context, want map[string]bool) (map[string]bool, error) {
	got := map[string]bool{}
	err := r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		if err := dir.Each(func(e durable.Entry) bool {
			if id, tag, _ := parseEntry(e.Name); tag == tagTaken && want[id] {
				got[id] = true
			}
			return true
		}); err != nil {
			return false, fmt.Errorf("list claimed/%s: %w", name, err)
		}
		return true, nil
	})
	return got, err
}

// pruneSome moves one chunk. Under the lock: a decision that was not carried
// out when its body leaves done/ could, after a reboot, bring the task back.
func (r *Run) pruneSome(ctx context.Context, tasks []outgoing, remove bool) (moved []string, err error) {
	archive := durable.Dir(nil)
	if !remove {
		if archive, err = r.ensureArchive(); err != nil {
			return nil, err
		}
	}
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	want := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		want[t.id] = true
	}
	busy, err := r.decidedIDs(ctx, want)
	if err != nil {
		return nil, err
	}
	var lines []prunedLine
	var going []outgoing
	at := beeyard.FormatTime(r.clk.Now())
	for _, t := range tasks {
		if busy[t.id] {
			r.note("%s is being settled and was not pruned this time", beeyard.Quote(t.id))
			continue
		}
		going = append(going, t)
		lines = append(lines, prunedLine{ID: t.id, Outcome: beeyard.Outcome(t.state), At: at})
	}
	if len(going) == 0 {
		return nil, nil
	}
	if err := r.listPruned(lines); err != nil {
		return nil, err
	}
	from := []durable.Dir{}
	for _, t := range going {
		gone, err := r.pruneOne(archive, t)
		if err != nil {
			return moved, errors.Join(err, durable.SyncDirs(from...))
		}
		if gone {
			moved = append(moved, t.id)
			from = append(from, r.place(t.from))
		}
	}
	if archive != nil {
		// The new name before the old one's end.
		from = append([]durable.Dir{archive}, from...)
	}
	if err := durable.SyncDirs(from...); err != nil {
		return moved, fmt.Errorf("sync: %w", err)
	}
	for _, t := range going {
		r.event("pruned", &beeyard.Task{ID: t.id}, "", string(t.state))
	}
	return moved, nil
}

// pruneOne moves one body; archive is nil when it is to be removed. false when
// it went elsewhere meanwhile (a retry).
func (r *Run) pruneOne(archive durable.Dir, t outgoing) (bool, error) {
	dir, name := r.place(t.from), bodyName(t.id)
	if archive == nil {
		err := dir.Remove(name)
		if err != nil && !missing(err) {
			return false, fmt.Errorf("remove %s: %w", beeyard.Quote(t.id), err)
		}
		return err == nil, nil
	}
	for range 2 {
		err := dir.RenameExcl(name, archive, name)
		switch {
		case err == nil:
			return true, nil
		case missing(err):
			return false, nil
		case !exists(err):
			return false, fmt.Errorf("archive %s: %w", beeyard.Quote(t.id), err)
		}
		// An earlier life of the id, or a copy that a link cut in two left.
		away, err := r.moveAside(archive, name)
		if err != nil {
			return false, err
		}
		if away != "" {
			if err := r.explainAside(archive, name, away, "a later record of the same id was archived"); err != nil {
				return false, err
			}
		}
	}
	return false, fmt.Errorf("archive %s: %w: its name is taken", beeyard.Quote(t.id), beeyard.ErrConflict)
}
