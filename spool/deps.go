package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"beeyard"
	"beeyard/internal/durable"
)

// deps answers about dependencies, each asked for once. It is one look: what
// changes later is not in it, so it is made for one command or one round.
type deps struct {
	r   *Run
	ctx context.Context //nolint:containedctx // lives as long as the call that made it: Judge's callback takes no context

	known     map[string]bool // met or not, by id
	looks     int
	done      map[string]bool // all of done/, once so many were asked for that listing is cheaper
	completed map[string]bool
	pruned    map[string]beeyard.Outcome
	lists     bool // the two above were read
	archive   durable.Dir

	graph waitGraph
	fail  error
}

// listDoneFrom is the number of distinct dependencies from which done/ is
// listed: a look costs about 2 µs, a listed name a fifth of that.
const listDoneFrom = 5000

func (r *Run) newDeps(ctx context.Context) *deps {
	return &deps{r: r, ctx: ctx, known: map[string]bool{}}
}

// met reports whether a dependency is met: its task is in done/, in
// completed_tasks, was pruned after it was done, or is archived as done.
func (d *deps) met(id string) (bool, error) {
	if met, ok := d.known[id]; ok {
		return met, nil
	}
	if d.done == nil && d.looks >= listDoneFrom {
		if err := d.listDone(); err != nil {
			return false, err
		}
	}
	met, err := d.look(id)
	if err != nil {
		return false, err
	}
	d.known[id] = met
	return met, nil
}

func (d *deps) look(id string) (bool, error) {
	if d.done != nil {
		if d.done[id] {
			return true, nil
		}
	} else {
		d.looks++
		there, err := d.r.done.Exists(bodyName(id))
		if err != nil {
			return false, fmt.Errorf("look for dependency: %w", err)
		}
		if there {
			return true, nil
		}
	}
	if err := d.readLists(); err != nil {
		return false, err
	}
	if d.completed[id] {
		return true, nil
	}
	if out, ok := d.pruned[id]; ok {
		return out == beeyard.OutcomeDone, nil
	}
	t, err := d.archived(id)
	return t != nil && beeyard.ArchivedState(t) == beeyard.StateDone, err
}

func (d *deps) readLists() (err error) {
	if d.lists {
		return nil
	}
	if d.completed, err = d.r.completedSet(); err != nil {
		return err
	}
	if d.pruned, err = d.r.pruned(); err != nil {
		return err
	}
	d.lists = true
	return nil
}

// archived reads the body of an archived task; nil when there is none.
func (d *deps) archived(id string) (*beeyard.Task, error) {
	if d.archive == nil { // one look: opened, or found missing, once
		dir, err := d.r.archiveDir()
		if err != nil {
			return nil, err
		}
		d.archive = dir
	}
	if _, none := d.archive.(absent); none {
		return nil, nil
	}
	t, _, err := readTask(d.archive, bodyName(id), id)
	if missing(err) || errors.Is(err, beeyard.ErrNotTask) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return t, err
}

func (d *deps) listDone() error {
	d.done = map[string]bool{}
	err := durable.EachName(d.r.done, func(name []byte, _ uint64, _ fs.FileMode) bool {
		if id, ok := idOfName(name); ok {
			d.done[string(id)] = true
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list done: %w", err)
	}
	return nil
}

// prime asks for many at once, by one listing of done/ when they are very many.
// Of what is listed only those that were asked for are kept.
func (d *deps) prime(ids iter.Seq[string]) error {
	want := map[string]bool{}
	for id := range ids {
		if _, ok := d.known[id]; !ok {
			want[id] = true
		}
	}
	if len(want) <= listDoneFrom {
		return nil // met asks for each when it is its turn
	}
	err := durable.EachName(d.r.done, func(name []byte, _ uint64, _ fs.FileMode) bool {
		if id, ok := idOfName(name); ok && want[string(id)] {
			d.known[string(id)] = true
			delete(want, string(id))
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list done: %w", err)
	}
	looks := d.done
	d.done = map[string]bool{} // none of the rest is in done/
	for id := range want {
		met, err := d.look(id)
		if err != nil {
			return err
		}
		d.known[id] = met
	}
	d.done = looks
	return nil
}

// dep is the full answer, for beeyard.Judge. What cannot be read is not met;
// err tells.
func (d *deps) dep(id string) beeyard.Dep {
	met, err := d.met(id)
	if err == nil && met {
		return beeyard.Dep{ID: id, Met: true, Known: true, State: beeyard.StateDone}
	}
	if err == nil {
		err = d.graph.explore(d, id)
	}
	if err != nil {
		d.fail = errors.Join(d.fail, err)
		return beeyard.Dep{ID: id, Known: true, State: beeyard.StateBlocked}
	}
	n := d.graph.nodes[id]
	return beeyard.Dep{ID: id, Met: n.met, Known: n.known, State: n.state, Cycle: d.graph.cycle(n)}
}

// err is what kept dep from answering.
func (d *deps) err() error { return d.fail }

// anyStuck reports whether one of a candidate's dependencies will never be met
// by anything that runs by itself.
func (d *deps) anyStuck(c *candidate) (bool, error) {
	for _, id := range c.deps {
		if id == c.id {
			return true, nil
		}
		met, err := d.met(id)
		if err != nil {
			return false, err
		}
		if met {
			continue
		}
		if err := d.graph.explore(d, id); err != nil {
			return false, err
		}
		if n := d.graph.nodes[id]; !n.met && n.stuck {
			return true, nil
		}
	}
	return false, nil
}
