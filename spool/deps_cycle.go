package spool

// knot is one strongly connected component of more than a single task, or of
// one that waits for itself.
type knot struct {
	root *waitNode
	size int
	// Where to go from each member towards the root, and where each was reached
	// from the root: breadth first, so that paths are short.
	toRoot, fromRoot map[*waitNode]*waitNode
	// One cycle through each member that was asked for, and its place in it.
	paths map[*waitNode]onPath
}

type onPath struct {
	path []*waitNode
	at   int
}

const (
	// cycleMost bounds the ids of a cycle that are told: a cycle of 100,000,
	// told for each of its tasks, would be 10 billion. A longer one has "…" for
	// what is left out, before it comes back to its start.
	cycleMost = 100
	// pathBudget bounds the steps spent on finding paths in one look. A graph
	// made to exceed it gets cycles told as "x → … → x".
	pathBudget = 4 << 20
	elided     = "…"
)

// cycle is a path of ids from n back to n; nil when n is in no cycle.
func (g *waitGraph) cycle(n *waitNode) []string {
	c := n.knot
	if c == nil {
		return nil
	}
	p, ok := c.paths[n]
	if !ok {
		if g.budget > pathBudget {
			return []string{n.id, elided, n.id}
		}
		p = g.path(c, n)
	}
	size := len(p.path)
	told := min(size, cycleMost)
	ids := make([]string, 0, told+2)
	for i := range told {
		ids = append(ids, p.path[(p.at+i)%size].id)
	}
	if told < size {
		ids = append(ids, elided)
	}
	return append(ids, n.id)
}

// path finds a simple cycle through n: to the root and back from it, less the
// loops on the way.
func (g *waitGraph) path(c *knot, n *waitNode) onPath {
	if c.toRoot == nil {
		c.toRoot = g.reach(c, true)
		c.fromRoot = g.reach(c, false)
		c.paths = map[*waitNode]onPath{}
	}
	walk := []*waitNode{n}
	for at := n; at != c.root; {
		at = c.toRoot[at]
		walk = append(walk, at)
	}
	back := len(walk)
	for at := n; at != c.root; {
		at = c.fromRoot[at]
		if at != c.root {
			walk = append(walk, at)
		}
	}
	for i, j := back, len(walk)-1; i < j; i, j = i+1, j-1 {
		walk[i], walk[j] = walk[j], walk[i]
	}
	g.budget += len(walk)
	var path []*waitNode
	place := map[*waitNode]int{}
	for _, m := range walk {
		if at, been := place[m]; been {
			for _, cut := range path[at+1:] {
				delete(place, cut)
			}
			path = path[:at+1]
			continue
		}
		place[m] = len(path)
		path = append(path, m)
	}
	if n == c.root {
		path = g.shortest(c)
	}
	for i, m := range path {
		if _, has := c.paths[m]; !has {
			c.paths[m] = onPath{path, i}
		}
	}
	return c.paths[n]
}

// shortest is a cycle through the root: an edge back to it, from the member
// that is nearest after it.
func (g *waitGraph) shortest(c *knot) []*waitNode {
	if c.root.waitsFor(c.root.id) {
		return []*waitNode{c.root}
	}
	var last *waitNode
	best := 0
	for m, to := range c.toRoot {
		if to != c.root || m == c.root {
			continue
		}
		steps := 1
		for at := m; at != c.root; at = c.fromRoot[at] {
			if steps++; last != nil && steps >= best {
				break
			}
		}
		g.budget += steps
		if last == nil || steps < best || steps == best && m.id < last.id {
			last, best = m, steps
		}
	}
	var path []*waitNode
	for at := last; at != c.root; at = c.fromRoot[at] {
		path = append(path, at)
	}
	path = append(path, c.root)
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// reach walks the component from its root, along the edges or against them,
// and gives for each member the one before it.
func (g *waitGraph) reach(c *knot, against bool) map[*waitNode]*waitNode {
	edges := map[*waitNode][]*waitNode{}
	seen := map[*waitNode]bool{c.root: true}
	all := []*waitNode{c.root}
	for i := 0; i < len(all); i++ { // every member can be reached from the root
		for _, id := range all[i].next {
			m := g.nodes[id]
			if m == nil || m.knot != c {
				continue
			}
			if against {
				edges[m] = append(edges[m], all[i])
			} else {
				edges[all[i]] = append(edges[all[i]], m)
			}
			if !seen[m] {
				seen[m] = true
				all = append(all, m)
			}
		}
	}
	before := map[*waitNode]*waitNode{}
	queue := []*waitNode{c.root}
	for i := 0; i < len(queue); i++ {
		for _, m := range edges[queue[i]] {
			if _, been := before[m]; !been && m != c.root {
				before[m] = queue[i]
				queue = append(queue, m)
			}
		}
	}
	return before
}
