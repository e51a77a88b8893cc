package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// node is what the graph must know of one id, read once.
func (g *depGraph) node(id string) (depNode, error) {
	if a := g.fresh[id]; a != nil {
		return depNode{deps: a.task.DependsOn}, nil
	}
	if n, ok := g.known[id]; ok {
		return n, nil
	}
	if err := context.Cause(g.ctx); err != nil {
		return depNode{}, err
	}
	n, err := g.read(id)
	if err == nil {
		g.known[id] = n
	}
	return n, err
}

func (g *depGraph) read(id string) (depNode, error) {
	met, err := g.met(id)
	if err != nil || met {
		return depNode{met: met}, err
	}
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld} {
		if deps, ok, err := depsOf(g.r.place(p), bodyName(id), id); err != nil || ok {
			return depNode{deps: deps}, err
		}
	}
	deps, ok, err := g.r.claimedDeps(g.ctx, id)
	if err != nil || ok {
		return depNode{deps: deps}, err
	}
	// A failed task may be retried: it waits as much as a pending one.
	if deps, ok, err := depsOf(g.r.failed, bodyName(id), id); err != nil || ok {
		return depNode{deps: deps}, err
	}
	// Done since the first look, or nowhere.
	met, err = g.met(id)
	return depNode{met: met}, err
}

// met reports whether a dependency on id is met. The names that have no body
// are read once a walk; a task that is done meanwhile has one in done/.
func (g *depGraph) met(id string) (bool, error) {
	if ok, err := g.r.done.Exists(bodyName(id)); err != nil || ok {
		if err != nil {
			err = fmt.Errorf("look for a dependency: %w", err)
		}
		return ok, err
	}
	if !g.named {
		var err error
		if g.completed, err = g.r.completedSet(); err != nil {
			return false, fmt.Errorf("read completed tasks: %w", err)
		}
		if g.pruned, err = g.r.pruned(); err != nil {
			return false, err
		}
		g.named = true
	}
	return g.completed[id] || g.pruned[id] == beeyard.OutcomeDone, nil
}

// depsOf reads the dependencies of one body. What is no task ends a branch: it
// will never run, and is quarantined by who comes to claim it.
func depsOf(dir durable.Dir, name, id string) (deps []string, ok bool, err error) {
	t, _, err := readTask(dir, name, id)
	switch {
	case missing(err):
		return nil, false, nil
	case errors.Is(err, beeyard.ErrNotTask):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	return t.DependsOn, true, nil
}

// claimedDeps joins the dependencies of every version of a claimed task: a
// record that is prepared (a replace under way) counts as much as the claim.
func (r *Run) claimedDeps(ctx context.Context, id string) (deps []string, ok bool, err error) {
	err = r.eachClaimDir(ctx, func(_ string, dir durable.Dir) (bool, error) {
		var names []string
		if err := dir.Each(func(e durable.Entry) bool {
			i, tag, _ := parseEntry(e.Name)
			if i == id && (tag == tagClaim || tag == tagTaken || tag == tagRecord) {
				names = append(names, e.Name)
			}
			return true
		}); err != nil {
			return false, fmt.Errorf("list claim directory: %w", err)
		}
		for _, n := range names {
			more, found, err := depsOf(dir, n, id)
			if err != nil {
				return false, err
			}
			ok = ok || found
			deps = append(deps, more...)
		}
		return true, nil
	})
	return deps, ok, err
}
