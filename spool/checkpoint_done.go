package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// doneBeyond lists the ids in done/ that are not in set, by name, and counts
// those that are. Names in the set cost no allocation.
func (r *Run) doneBeyond(set map[string]bool) (fresh []string, both int, err error) {
	err = durable.EachName(r.done, func(name []byte, _ uint64, typ fs.FileMode) bool {
		id, ok := bytes.CutSuffix(name, []byte(".json"))
		if !ok || typ != 0 && typ != fs.ModeIrregular {
			return true
		}
		if set[string(id)] {
			both++
		} else if s := string(id); beeyard.CheckStoredID(s) == nil {
			fresh = append(fresh, s)
		}
		return true
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list done: %w", err)
	}
	slices.Sort(fresh)
	// A name that moves while the folder is listed may be listed twice.
	return slices.Compact(fresh), both, nil
}

// joinDone is doneBeyond for ids that go into status.json: done/ is flushed,
// since a list that names what a power cut takes out of done/ again would be
// ahead of the record (invariant 9). Others' renames may not be flushed yet.
func (r *Run) joinDone(set map[string]bool) ([]string, error) {
	fresh, _, err := r.doneBeyond(set)
	if err == nil && len(fresh) > 0 {
		err = r.syncDone()
	}
	return fresh, err
}

func (r *Run) syncDone() error {
	if err := r.done.Sync(); err != nil {
		return fmt.Errorf("sync done: %w", err)
	}
	return nil
}

// reconciled is what done/ and status.json were at the last reconcile.
type reconciled struct {
	seen    bool
	settled bool // done/ had not changed between the last two either
	done    durable.Info
	status  durable.Info
}

// oldTemp is when what a writer of status.json left behind is surely nobody's.
const oldTemp = time.Hour

// reconcile adds what done/ has and status.json does not list: a process that
// died in between, an older program that wrote the file anew. Ids that are
// listed and in neither done/ nor the archive are reported, not removed. It
// lists done/ only if that or status.json changed since the last call. Workers
// do it at their start and every 30 s: see keepReconciled.
func (r *Run) reconcile(ctx context.Context) error {
	if r.ro {
		return nil
	}
	doneInfo, err := r.done.Info()
	if err != nil {
		return fmt.Errorf("look at done: %w", err)
	}
	statusInfo, err := r.root.Stat(fileStatus)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at status.json: %w", err)
	}
	if r.reconciledWith(doneInfo, statusInfo) {
		return nil
	}
	if now, err := durable.ServerNow(r.meta, "clock"); err == nil {
		// A crash cannot clean up after itself; no error here is worth a stop.
		if n, err := durable.CleanTemps(r.root, oldTemp, now); err != nil {
			r.note("old temporary files in the run's folder cannot be removed (%d were): %v", n, err)
		}
	}
	var ahead []string
	s, err := r.editStatus(ctx, func(old *status) (*beeyard.Checkpoint, error) {
		ahead = nil
		if old == nil {
			return nil, nil
		}
		set := old.completed()
		fresh, both, err := r.doneBeyond(set)
		if err != nil {
			return nil, err
		}
		if both < len(set) {
			if ahead, err = r.aheadOfDone(set); err != nil {
				return nil, err
			}
		}
		if len(fresh) == 0 {
			return nil, nil
		}
		if err := r.syncDone(); err != nil {
			return nil, err
		}
		return r.withCompleted(old.cp, set, fresh, nil), nil
	})
	if err != nil {
		return checkpointError("reconcile checkpoint", r.id, err)
	}
	if len(ahead) > 0 {
		r.note("completed_tasks lists %d ids that are neither in done/ nor archived, %s first; they are kept", len(ahead), beeyard.Quote(ahead[0]))
	}
	if s != nil {
		statusInfo = s.info
	}
	r.chk.mu.Lock()
	defer r.chk.mu.Unlock()
	rec := &r.chk.rec
	// A folder's times move in ticks of some milliseconds: what changed within
	// the tick of the last look shows only if one more look follows.
	*rec = reconciled{seen: true, settled: rec.seen && sameFile(rec.done, doneInfo), done: doneInfo, status: statusInfo}
	return nil
}

func (r *Run) reconciledWith(done, status durable.Info) bool {
	r.chk.mu.Lock()
	defer r.chk.mu.Unlock()
	rec := &r.chk.rec
	known := rec.status
	if sameFile(r.chk.wrote, status) {
		known = status // our own folds are no news
	}
	return rec.seen && rec.settled && sameFile(rec.done, done) && sameFile(known, status)
}

// aheadOfDone lists the ids of set that are neither in done/ nor archived nor
// on the list of those whose bodies were pruned.
func (r *Run) aheadOfDone(set map[string]bool) ([]string, error) {
	left := make(map[string]bool, len(set))
	for id := range set {
		left[id] = true
	}
	archive, err := r.archiveDir()
	if err != nil {
		return nil, err
	}
	for _, dir := range []durable.Dir{r.done, archive} {
		err := durable.EachName(dir, func(name []byte, _ uint64, _ fs.FileMode) bool {
			if id, ok := bytes.CutSuffix(name, []byte(".json")); ok {
				delete(left, string(id))
			}
			return true
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list %s: %w", dir.Path(), err)
		}
	}
	pruned, err := r.pruned()
	if err != nil {
		return nil, err
	}
	var ahead []string
	for id := range left {
		if _, ok := pruned[id]; !ok {
			ahead = append(ahead, id)
		}
	}
	slices.Sort(ahead)
	return ahead, nil
}

// withCompleted is the checkpoint with ids added and failures noted in risk;
// listed is the set of the ids that it lists.
func (r *Run) withCompleted(cp *beeyard.Checkpoint, listed map[string]bool, ids []string, failures []failure) *beeyard.Checkpoint {
	next := *cp
	if next.CompletedTasks = slices.Concat(cp.CompletedTasks, ids); len(listed) < len(cp.CompletedTasks) {
		next.CompletedTasks = appendIDs(nil, next.CompletedTasks) // another's duplicates
	}
	next.Risk = withFailures(cp.Risk, failures, ids)
	next.Timestamp = beeyard.FormatTime(r.clk.Now())
	return &next
}
