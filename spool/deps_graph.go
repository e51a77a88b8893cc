package spool

import (
	"beeyard"
)

// waitGraph is what deps has seen of the graph of unmet dependencies: who waits
// for whom, in strongly connected components (Tarjan's algorithm with a stack
// of its own: a chain of 100,000 costs no goroutine stack). Each task is read
// and each edge followed once in the life of a deps.
type waitGraph struct {
	nodes map[string]*waitNode
	count int32
	open  []*waitNode // Tarjan's stack: not yet in a component

	bodies depBodies
	budget int // steps spent on paths, see cycle
}

// waitNode is one id that is waited for.
type waitNode struct {
	id    string
	met   bool
	known bool
	state beeyard.State
	next  []string // what it waits for itself, unless it has ended or runs
	// stuck: nothing that runs by itself will ever finish it.
	stuck bool

	index, low int32
	onStack    bool
	knot       *knot // nil when it is in no cycle
}

type depFrame struct {
	n    *waitNode
	next int
}

// explore adds id and all that it waits for.
func (g *waitGraph) explore(d *deps, id string) error {
	if g.nodes == nil {
		g.nodes = map[string]*waitNode{}
	}
	if g.nodes[id] != nil {
		return nil
	}
	var frames []depFrame
	enter := func(id string) error {
		n, err := g.bodies.node(d, id)
		if err != nil {
			for _, n := range g.open { // half explored: the next call starts anew
				delete(g.nodes, n.id)
			}
			g.open = nil
			return err
		}
		g.count++
		n.index, n.low, n.onStack = g.count, g.count, true
		g.nodes[id] = n
		g.open = append(g.open, n)
		frames = append(frames, depFrame{n: n})
		return nil
	}
	if err := enter(id); err != nil {
		return err
	}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		n := f.n
		if f.next < len(n.next) {
			m := g.nodes[n.next[f.next]]
			f.next++
			if m == nil {
				if err := enter(n.next[f.next-1]); err != nil {
					return err
				}
			} else if m.onStack {
				n.low = min(n.low, m.index)
			}
			continue
		}
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			up := frames[len(frames)-1].n
			up.low = min(up.low, n.low)
		}
		if n.low == n.index {
			g.component(n)
		}
	}
	return nil
}

// component takes one strongly connected component off the stack. All that it
// waits for outside itself was taken off before.
func (g *waitGraph) component(root *waitNode) {
	from := len(g.open) - 1
	for g.open[from] != root {
		from--
	}
	members := append([]*waitNode(nil), g.open[from:]...)
	g.open = g.open[:from]
	for _, n := range members {
		n.onStack = false
	}
	if len(members) > 1 || root.waitsFor(root.id) {
		c := &knot{root: root, size: len(members)}
		for _, n := range members {
			n.knot, n.stuck = c, true
		}
		return
	}
	for _, id := range root.next {
		root.stuck = root.stuck || g.nodes[id].stuck
	}
}

func (n *waitNode) waitsFor(id string) bool {
	for _, x := range n.next {
		if x == id {
			return true
		}
	}
	return false
}
