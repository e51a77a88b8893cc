package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// dirPriority is the folder below .beeyard/ with one empty file for each task of
// a priority above 0. A one-shot claim that does not read all of pending/ finds
// such tasks by it. It is a hint: a marker too many costs a look, and one that
// a power cut took costs that claim its order.
const dirPriority = "priority"

// priorityDir opens the folder of markers, making it when create is set; nil when
// there is none.
func (r *Run) priorityDir(create bool) (durable.Dir, error) {
	r.pick.mu.Lock()
	defer r.pick.mu.Unlock()
	if r.pick.priority != nil {
		return r.pick.priority, nil
	}
	d, err := r.meta.OpenDir(dirPriority)
	if missing(err) && create && !r.ro {
		if err := r.meta.Mkdir(dirPriority, folderMode); err != nil && !exists(err) {
			return nil, fmt.Errorf("make folder of priority markers: %w", err)
		}
		d, err = r.meta.OpenDir(dirPriority)
	}
	if err != nil {
		if missing(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("open folder of priority markers: %w", err)
	}
	r.pick.priority = d
	return d, nil
}

// markPriority says that id has a priority above 0. It is called before such a
// body comes to pending/ or held/. Idempotent.
func (r *Run) markPriority(id string) error {
	d, err := r.priorityDir(true)
	if err != nil || d == nil {
		return err
	}
	f, err := d.Create(id, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark priority: %w", err)
	}
	return f.Close()
}

// markedIDs lists the markers.
func markedIDs(d durable.Dir) (ids []string, err error) {
	err = durable.EachName(d, func(name []byte, _ uint64, _ fs.FileMode) bool {
		if id := string(name); beeyard.CheckStoredID(id) == nil {
			ids = append(ids, id)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list priority markers: %w", err)
	}
	return ids, nil
}

// unmark removes the markers of tasks that have ended, a bounded number at a time.
func (r *Run) unmark(d durable.Dir, ids []string) error {
	const most = 256
	for _, id := range ids[:min(len(ids), most)] {
		for _, ended := range []durable.Dir{r.done, r.failed} {
			there, err := ended.Exists(bodyName(id))
			if err != nil {
				return fmt.Errorf("look for an end: %w", err)
			}
			if there {
				if err := d.Remove(id); err != nil && !missing(err) {
					return fmt.Errorf("remove priority marker: %w", err)
				}
				break
			}
		}
	}
	return nil
}

// lookMarked looks at the markers when their folder changed: another process's
// task of a higher priority is seen at once, also before the event of its own
// name comes.
func (p *picker) lookMarked(ctx context.Context, dry bool) error {
	d, err := p.r.priorityDir(false)
	if err != nil || d == nil {
		return err
	}
	began := clock.Elapsed(p.r.clk)
	if !p.marksGo.open(began, dry) {
		return nil
	}
	if same, err := p.marksAt.unchanged(p.r, d); err != nil || same {
		return err
	}
	if err := p.marksAt.listing(d, began); err != nil {
		return err
	}
	ids, err := markedIDs(d)
	if err != nil {
		return err
	}
	fresh := map[string]bool{}
	for _, id := range ids {
		if p.pending.known[id] == nil && p.held.known[id] == nil && p.given[id] == nil {
			fresh[id] = true
		}
	}
	if p.pending.gate.ran { // else the first listing reads them with all others
		if err := p.look(ctx, p.pending, fresh); err != nil {
			return err
		}
	}
	var stale []string
	for id := range fresh {
		if p.pending.known[id] == nil {
			stale = append(stale, id)
		}
	}
	if err := p.r.unmark(d, stale); err != nil {
		return err
	}
	p.marksGo.ended(began, clock.Elapsed(p.r.clk))
	return nil
}
