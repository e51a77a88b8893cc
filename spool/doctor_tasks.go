package spool

import (
	"context"
	"fmt"
	"slices"

	"beeyard"
)

// sights is what doctor remembers of the tasks.
type sights struct {
	open  []openTask
	ended map[string]bool
	twice []string // ids seen in more than one place
}

// openTask is as much of an unfinished task as the graph needs.
type openTask struct {
	id   string
	deps []string
}

// tasks reads every body: those that cannot be read are found, and what the
// other checks need is remembered.
func (d *doctor) tasks(ctx context.Context) error {
	s, err := d.r.look(ctx)
	if err != nil {
		return err
	}
	for id := range s.more {
		d.sight.twice = append(d.sight.twice, id)
	}
	slices.Sort(d.sight.twice)
	seen, err := s.settle(ctx)
	if err != nil {
		return err
	}
	d.sight.ended = make(map[string]bool, len(seen))
	due, n := 0, 0
	j := d.r.newJudge(ctx)
	err = d.r.eachBody(ctx, seen, parseTask, func(s *sighting, b *sightedBody) error {
		if n++; n%bodyChunk == 0 {
			d.progress("tasks", n, len(seen))
		}
		if s.place == beeyard.PlaceDone || s.place == beeyard.PlaceFailed {
			d.sight.ended[s.id] = true
			if b.task == nil {
				d.add(Finding{Code: "unreadable-record", Severity: Bad, Subject: string(s.place) + "/" + s.name(),
					Detail: "the task has ended, but its record cannot be read: " + b.why.Error(),
					Fix:    "it still counts as " + string(s.place) + "; bring the file back from a copy if there is one"})
			}
			return nil
		}
		if b.task == nil {
			d.unreadable(s, b)
			return nil
		}
		d.sight.open = append(d.sight.open, openTask{id: s.id, deps: b.task.DependsOn})
		if s.place == beeyard.PlaceHeld && d.heldTimes(b.task, j) {
			due++
		}
		return nil
	})
	if err != nil || due == 0 {
		return err
	}
	d.fix(Finding{Code: "due", Severity: Info, Subject: "held/", Detail: fmt.Sprintf("due, and waiting for somebody to look: %d", due),
		Fix: "they are moved to pending/, as any worker or claim does"}, func() error {
		_, err := d.r.promoteDue(ctx)
		return err
	})
	return nil
}

func (d *doctor) unreadable(s *sighting, b *sightedBody) {
	f := Finding{Code: "unreadable-task", Severity: Warn, Subject: string(s.place) + "/" + s.name(), Detail: b.why.Error(),
		Fix: "a worker or claim that meets it moves it to quarantine/ once nobody has changed it for a minute"}
	if s.place == beeyard.PlaceClaimed {
		f.Subject = "claimed/" + s.claim + "/" + s.name()
	}
	d.add(f)
}

// heldTimes reports a task that would wait for ever, and whether it is due.
func (d *doctor) heldTimes(t *beeyard.Task, j *judge) bool {
	due, err := t.Due()
	if err != nil {
		d.add(Finding{Code: "unreadable-time", Severity: Bad, Subject: t.ID, Detail: "it never comes due: " + err.Error(),
			Fix: "beeyard unhold lets it run"})
		return false
	}
	return t.Ext.Hold == nil && !due.After(j.now)
}

// copies explains ids that are in two places, and keeps leftovers of one life
// aside. Two lives of an id are two tasks: both stay.
func (d *doctor) copies(ctx context.Context) error {
	for _, id := range d.sight.twice {
		all, err := d.r.lookup(ctx, id, true, false)
		if err != nil {
			return fmt.Errorf("look for task: %w", err)
		}
		lives := current(all)
		if len(all) < 2 {
			continue // it was only moving
		}
		for i := range all {
			if counts := counting(lives, &all[i]); counts != nil {
				d.leftover(ctx, id, &all[i], counts)
			}
		}
		if len(lives) > 1 {
			var places []string
			for _, l := range lives {
				places = append(places, string(l.place)+"/")
			}
			d.add(Finding{Code: "two-lives", Severity: Warn, Subject: id,
				Detail: fmt.Sprintf("an older program enqueued the id again: there are %d tasks of it, in %v; each runs, and the later record stays", len(lives), places),
				Fix:    "give new tasks new ids"})
		}
	}
	return nil
}

// counting is the body that counts of the life that f is one of; nil when f is
// that body, or has no life that can be read.
func counting(lives []found, f *found) *found {
	if f.task == nil {
		return nil
	}
	for i := range lives {
		l := &lives[i]
		if l.task != nil && l.task.Life() == f.task.Life() {
			if l.place == f.place && l.claim == f.claim && l.name == f.name {
				return nil
			}
			return l
		}
	}
	return nil
}

func (d *doctor) leftover(ctx context.Context, id string, f, counts *found) {
	where := func(f *found) string {
		if f.place == beeyard.PlaceClaimed {
			return "claimed/" + f.claim + "/" + f.name
		}
		return string(f.place) + "/" + f.name
	}
	out := Finding{Code: "copy", Severity: Warn, Subject: id,
		Detail: fmt.Sprintf("%s (rev %d) is a leftover of the task in %s (rev %d), which counts", where(f), f.task.Ext.Rev, where(counts), counts.task.Ext.Rev),
		Fix:    "the leftover is moved to quarantine/"}
	if f.place == beeyard.PlaceClaimed || f.place == beeyard.PlaceArchive {
		// Its claim directory has an owner, or a reaper, who alone takes things out of it.
		out.Fix = "beeyard reap drops it once its claimer is gone"
		d.add(out)
		return
	}
	d.fix(out, func() error { return d.r.dropLeftover(ctx, id, f) })
}

// dropLeftover moves a copy that does not count to quarantine/, under the lock
// and after looking once more (invariants 6 and 7).
func (r *Run) dropLeftover(ctx context.Context, id string, was *found) error {
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := r.lookup(ctx, id, true, false)
	if err != nil {
		return fmt.Errorf("look for task: %w", err)
	}
	lives := current(all)
	for i := range all {
		f := &all[i]
		if f.place == was.place && f.name == was.name && counting(lives, f) != nil {
			r.note("%s in %s/ was a leftover and was moved to quarantine/", beeyard.Quote(id), f.place)
			return r.setAside(r.place(f.place), f.name, id, nonce(recordNonce))
		}
	}
	return nil
}
