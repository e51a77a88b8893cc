package spool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"beeyard"
)

// checkCycles refuses, with the path, additions that would close a cycle of
// dependencies, among themselves or through tasks that are here. The caller
// holds .queue.lock until they are published: of three enqueues that close a
// cycle together, the last sees the other two. It also learns which additions
// start as blocked.
func (r *Run) checkCycles(ctx context.Context, adds []*addition) error {
	g := newDepGraph(ctx, r)
	any := false
	for _, a := range adds {
		if a.status == statusNone || a.status == statusReplace {
			g.fresh[a.task.ID] = a
			any = any || len(a.task.DependsOn) > 0
		}
	}
	if !any {
		return nil
	}
	path, err := g.cycle(adds)
	if err != nil {
		return fmt.Errorf("walk dependencies: %w", err)
	}
	if path != nil {
		return cycleError("enqueue", path[0], path)
	}
	for _, a := range g.fresh {
		if a.state != beeyard.StateReady {
			continue
		}
		for _, d := range a.task.DependsOn {
			if n, err := g.node(d); err != nil || !n.met {
				a.state = beeyard.StateBlocked
				break
			}
		}
	}
	return nil
}

func cycleError(op, id string, path []string) error {
	return &beeyard.Error{Op: op, ID: id,
		Err:  beeyard.Because(beeyard.ErrCycle, "dependencies form a cycle: "+strings.Join(path, " → ")),
		Hint: "leave out one dependency of the path"}
}

// replacedIntoCycle looks once more after a replace: its claim and its settle
// are two steps, and an enqueue may have come between them.
func (r *Run) replacedIntoCycle(ctx context.Context, t *beeyard.Task) error {
	if len(t.DependsOn) == 0 {
		return nil
	}
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	err = r.checkCycles(ctx, []*addition{{task: t, status: statusReplace}})
	if errors.Is(err, beeyard.ErrCycle) {
		return fmt.Errorf("%w (it was replaced, and stays blocked until it is replaced again)", err)
	}
	return err
}

// depGraph is the graph of dependencies as it is under the lock.
type depGraph struct {
	r     *Run
	ctx   context.Context
	fresh map[string]*addition
	known map[string]depNode

	named     bool // the two below are read
	completed map[string]bool
	pruned    map[string]beeyard.Outcome

	// oldCycle: a cycle that is none of ours was met, written by hand or by an
	// older program.
	oldCycle bool
}

func newDepGraph(ctx context.Context, r *Run) *depGraph {
	return &depGraph{r: r, ctx: ctx, fresh: map[string]*addition{}, known: map[string]depNode{}}
}

type depNode struct {
	deps []string
	met  bool // done: it ends a branch
}

// frame is one task on the path being walked.
type frame struct {
	id   string
	deps []string
}

// cycle walks depth first from every addition, each task once, and gives the
// first path that comes back into itself through an addition.
func (g *depGraph) cycle(adds []*addition) ([]string, error) {
	const walking, walked = 1, 2
	state := map[string]int{}
	for _, a := range adds {
		if g.fresh[a.task.ID] != a || state[a.task.ID] != 0 {
			continue
		}
		stack := []frame{{a.task.ID, a.task.DependsOn}}
		state[a.task.ID] = walking
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.deps) == 0 {
				state[top.id] = walked
				stack = stack[:len(stack)-1]
				continue
			}
			id := top.deps[0]
			top.deps = top.deps[1:]
			switch state[id] {
			case walking:
				if path := g.ours(stack, id); path != nil {
					return path, nil
				}
				g.oldCycle = true
			case 0:
				n, err := g.node(id)
				if err != nil {
					return nil, err
				}
				state[id] = walked
				if len(n.deps) > 0 && !n.met {
					state[id] = walking
					stack = append(stack, frame{id, n.deps})
				}
			}
		}
	}
	if g.oldCycle {
		return g.slowCycle(adds)
	}
	return nil, nil
}

// ours is the path from id back to id along the stack, if an addition is on it.
func (g *depGraph) ours(stack []frame, id string) []string {
	at := len(stack) - 1
	for stack[at].id != id {
		at--
	}
	var path []string
	first := -1
	for i, f := range stack[at:] {
		path = append(path, f.id)
		if g.fresh[f.id] != nil && first < 0 {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	path = append(path[first:], path[:first]...)
	return append(path, path[0])
}

// slowCycle asks for each addition by itself. A walk that meets each task once
// may miss a longer cycle that shares tasks with one it passed over.
func (g *depGraph) slowCycle(adds []*addition) ([]string, error) {
	var failed error
	for _, a := range adds {
		if g.fresh[a.task.ID] != a {
			continue
		}
		path := beeyard.FindCycle(a.task.ID, a.task.DependsOn, func(id string) ([]string, bool) {
			n, err := g.node(id)
			if err != nil {
				failed = err
			}
			return n.deps, err == nil && !n.met
		})
		if path != nil || failed != nil {
			return path, failed
		}
	}
	return nil, nil
}
