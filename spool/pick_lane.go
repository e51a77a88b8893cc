package spool

import (
	"container/heap"
	"slices"

	"beeyard"
)

// lane is the ready candidates of one filter in exact order: a sorted list that
// is consumed from its head, and a heap for the few that came later. A heap
// alone would make a claim among 100,000 dearer than one among 1,000.
//
// What is in a lane may have been taken by another lane, another process or an
// overwrite since: pop drops it, so nothing has to be looked for and removed.
type lane struct {
	filter beeyard.Filter
	sorted []*candidate
	head   int
	later  candidateHeap
	used   uint64 // when a slot last asked
}

// lanesMost bounds how many filters are kept apart. A worker has one; beyond
// this many the one unused for longest is built anew when it is asked for.
const lanesMost = 8

// mergeFrom is how many at once are merged into the list rather than pushed.
const mergeFrom = 64

func sameFilter(a, b *beeyard.Filter) bool {
	return slices.Equal(a.Types, b.Types) && slices.Equal(a.Tiers, b.Tiers) &&
		slices.Equal(a.Labels, b.Labels) && slices.Equal(a.IDs, b.IDs)
}

func newLane(f beeyard.Filter) *lane {
	// The caller's lists are his: they may change after the call.
	f.Types, f.Tiers, f.Labels, f.IDs = slices.Clone(f.Types), slices.Clone(f.Tiers), slices.Clone(f.Labels), slices.Clone(f.IDs)
	return &lane{filter: f, later: candidateHeap{less: inClaimOrder}}
}

func (l *lane) push(c *candidate) { heap.Push(&l.later, c) }

// merge adds a sorted batch.
func (l *lane) merge(batch []*candidate) {
	if len(batch) < mergeFrom {
		for _, c := range batch {
			l.push(c)
		}
		return
	}
	l.sorted, l.head = mergeCandidates(l.sorted[l.head:], batch), 0
}

// pop takes the best one that is still ready; nil when there is none.
func (l *lane) pop() *candidate {
	for {
		c := l.peek()
		if c == nil {
			return nil
		}
		if l.later.first() == c {
			heap.Pop(&l.later)
		} else {
			l.sorted[l.head] = nil // the list must not keep alive what was taken
			l.head++
		}
		if c.state == pickReady {
			return c
		}
	}
}

func (l *lane) peek() *candidate {
	if l.head == len(l.sorted) {
		l.sorted, l.head = nil, 0
		return l.later.first()
	}
	c := l.sorted[l.head]
	if late := l.later.first(); late != nil && late.compare(c) < 0 {
		return late
	}
	return c
}

// candidateHeap is a container/heap in whatever order less says.
type candidateHeap struct {
	list []*candidate
	less func(a, b *candidate) bool
}

func inClaimOrder(a, b *candidate) bool { return a.compare(b) < 0 }
func byWake(a, b *candidate) bool       { return a.wake.Before(b.wake) }

func (h *candidateHeap) first() *candidate {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

func (h *candidateHeap) Len() int           { return len(h.list) }
func (h *candidateHeap) Less(i, j int) bool { return h.less(h.list[i], h.list[j]) }
func (h *candidateHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *candidateHeap) Push(x any)         { h.list = append(h.list, x.(*candidate)) }
func (h *candidateHeap) Pop() any {
	last := len(h.list) - 1
	c := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	return c
}
