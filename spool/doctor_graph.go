package spool

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"beeyard"
)

// graph looks for dependencies that nothing will ever meet: on tasks that do
// not exist, and in circles. It goes over each task and each dependency once.
func (d *doctor) graph(context.Context) error {
	known, err := d.knownIDs()
	if err != nil {
		return err
	}
	open := d.sight.open
	slices.SortFunc(open, func(a, b openTask) int { return strings.Compare(a.id, b.id) })
	at := make(map[string]int32, len(open))
	for i := range open {
		at[open[i].id] = int32(i)
	}
	next := make([][]int32, len(open))
	missed := map[string][]string{}
	for i := range open {
		for _, dep := range open[i].deps {
			if j, ok := at[dep]; ok {
				next[i] = append(next[i], j)
			} else if !known(dep) {
				missed[dep] = append(missed[dep], open[i].id)
			}
		}
	}
	names := make([]string, 0, len(missed))
	for dep := range missed {
		names = append(names, dep)
	}
	slices.Sort(names)
	for _, dep := range names {
		d.add(Finding{Code: "dangling-dependency", Severity: Bad, Subject: dep,
			Detail: "it does not exist, and these wait for it: " + some(missed[dep]),
			Fix:    "enqueue " + beeyard.Quote(dep) + ", or replace the tasks that wait for it"})
	}
	for _, c := range cycles(next) {
		path := make([]string, 0, len(c)+1)
		for _, i := range c {
			path = append(path, open[i].id)
		}
		path = append(path, path[0])
		shown := path
		if len(shown) > 20 {
			shown = append(slices.Clone(path[:10]), "…")
			shown = append(shown, path[len(path)-9:]...)
		}
		d.add(Finding{Code: "dependency-cycle", Severity: Bad, Subject: path[0],
			Detail: "these wait for each other: " + strings.Join(shown, " → "),
			Fix:    "replace one of them with a body that does not depend on the next"})
	}
	return nil
}

// knownIDs tells of ids outside the open ones: finished, archived, pruned, completed.
func (d *doctor) knownIDs() (func(id string) bool, error) {
	pruned, err := d.r.pruned()
	if err != nil {
		return nil, fmt.Errorf("read pruned ids: %w", err)
	}
	completed, err := d.r.completedSet()
	if err != nil {
		completed = nil // a damaged checkpoint is a finding of its own
	}
	archive, err := d.r.archiveDir()
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	return func(id string) bool {
		if d.sight.ended[id] || completed[id] {
			return true
		}
		if _, ok := pruned[id]; ok {
			return true
		}
		there, err := archive.Exists(bodyName(id))
		return err == nil && there
	}, nil
}

// cycles gives one circle of each strongly connected part of a graph, smallest
// index first. Tarjan's algorithm with a stack of its own: a chain of 100,000
// tasks must not be 100,000 calls deep.
func cycles(next [][]int32) [][]int32 {
	const unseen = -1
	n := len(next)
	index, low, comp := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range index {
		index[i], comp[i] = unseen, unseen
	}
	type frame struct{ v, edge int32 }
	var (
		calls   []frame
		stack   []int32
		onStack = make([]bool, n)
		count   int32
		parts   [][]int32
	)
	for root := range n {
		if index[root] != unseen {
			continue
		}
		calls = append(calls, frame{int32(root), 0})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.edge == 0 && index[v] == unseen {
				index[v], low[v] = count, count
				count++
				stack, onStack[v] = append(stack, v), true
			}
			if int(f.edge) < len(next[v]) {
				w := next[v][f.edge]
				f.edge++
				if index[w] == unseen {
					calls = append(calls, frame{w, 0})
				} else if onStack[w] {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].v
				low[up] = min(low[up], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			at := len(stack) - 1
			for stack[at] != v {
				at--
			}
			part := slices.Clone(stack[at:])
			stack = stack[:at]
			for _, w := range part {
				onStack[w], comp[w] = false, int32(len(parts))
			}
			parts = append(parts, part)
		}
	}
	var out [][]int32
	for i, part := range parts {
		if len(part) > 1 || slices.Contains(next[part[0]], part[0]) {
			out = append(out, wayAround(next, comp, int32(i), slices.Min(part)))
		}
	}
	slices.SortFunc(out, func(a, b []int32) int { return int(a[0] - b[0]) })
	return out
}

// wayAround is a shortest way from start back to it within its part.
func wayAround(next [][]int32, comp []int32, part, start int32) []int32 {
	from := map[int32]int32{}
	queue := []int32{start}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, w := range next[v] {
			if w == start {
				path := []int32{v}
				for v != start {
					v = from[v]
					path = append(path, v)
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := from[w]; !seen && comp[w] == part {
				from[w] = v
				queue = append(queue, w)
			}
		}
	}
	return []int32{start}
}
