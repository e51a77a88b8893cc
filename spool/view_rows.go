package spool

import (
	"container/heap"
	"context"
	"slices"

	"beeyard"
)

// row is one task that matches a query.
type row struct {
	s   *sighting
	key rowKey
	q   *quarantined // set for what lies in quarantine/
}

// rowBuilder counts what matches, and keeps the rows that come first behind a
// cursor: sorting, or only keeping, 100,000 rows would be most of the cost of a
// page of 50.
type rowBuilder struct {
	r      *Run
	m      *matcher
	j      *judge
	cursor *rowKey // nil: from the beginning
	most   int     // rows to keep
	kept   rowHeap
	total  int
}

func (b *rowBuilder) add(x row) {
	b.total++
	switch {
	case b.cursor != nil && compareKeys(&x.key, b.cursor) <= 0:
	case len(b.kept) < b.most:
		heap.Push(&b.kept, x)
	case compareKeys(&x.key, &b.kept[0].key) < 0:
		b.kept[0] = x
		heap.Fix(&b.kept, 0)
	}
}

// full reports whether the page is full of open tasks: nothing stands before those.
func (b *rowBuilder) full() bool {
	return len(b.kept) == b.most && b.kept[0].key.Group == groupOpen
}

// rows are those that were kept, in order.
func (b *rowBuilder) rows() []row {
	slices.SortFunc(b.kept, func(a, b row) int { return compareKeys(&a.key, &b.key) })
	return b.kept
}

// body adds the task if it matches by state and body.
func (b *rowBuilder) body(s *sighting, x *sightedBody) error {
	if x.task == nil {
		return b.unreadable(s, x)
	}
	if !b.m.wants(b.j.state(x.task, s.place, true)) || !b.m.body(x.task) {
		return nil
	}
	key := openKey(x)
	if s.place == beeyard.PlaceDone || s.place == beeyard.PlaceFailed {
		key = timeKey(groupEnded, x.info.ModTime, s.id, string(s.place))
	}
	b.add(row{s: s, key: key})
	return nil
}

// unreadable adds what is known by its name only.
func (b *rowBuilder) unreadable(s *sighting, x *sightedBody) error {
	t := &beeyard.Task{ID: s.id}
	state := b.j.state(t, s.place, false)
	if !b.m.wants(state) || !b.m.body(t) {
		return nil
	}
	var key rowKey
	switch {
	case state == beeyard.StateQuarantined:
		key = timeKey(groupQuarantined, x.info.ModTime, s.id, string(s.place))
	case state.Finished():
		key = timeKey(groupEnded, x.info.ModTime, s.id, string(s.place))
	default:
		key = openKey(&sightedBody{task: t})
	}
	b.add(row{s: s, key: key})
	return nil
}

// open adds the tasks in pending, held and claimed.
func (b *rowBuilder) open(ctx context.Context, seen []sighting) error {
	var waiting, claimed []sighting
	for _, s := range seen {
		switch s.place {
		case beeyard.PlacePending, beeyard.PlaceHeld:
			waiting = append(waiting, s)
		case beeyard.PlaceClaimed:
			if b.m.wants(beeyard.StateClaimed) {
				claimed = append(claimed, s)
			}
		}
	}
	if err := b.r.eachBody(ctx, claimed, parseTask, b.body); err != nil {
		return err
	}
	switch {
	case !b.m.wantsOpen() && !b.m.wants(beeyard.StateQuarantined):
		return nil
	case b.m.q.Text != "": // the index keeps no payload
		return b.r.eachBody(ctx, waiting, parseTask, b.body)
	}
	return b.r.eachWaiting(ctx, waiting, b.body)
}

// ended adds finished tasks. Without a filter on bodies none is read, but for
// telling failed from canceled where only one of them is asked for; keys says
// whether anybody needs to know where they stand.
func (b *rowBuilder) ended(ctx context.Context, seen []sighting, keys bool) error {
	var want []sighting
	failed, canceled := b.m.wants(beeyard.StateFailed), b.m.wants(beeyard.StateCanceled)
	for _, s := range seen {
		if s.place == beeyard.PlaceDone && b.m.wants(beeyard.StateDone) || s.place == beeyard.PlaceFailed && (failed || canceled) {
			want = append(want, s)
		}
	}
	if b.m.byBody() {
		return b.r.eachBody(ctx, want, parseTask, b.body)
	}
	if failed != canceled {
		at := func(s sighting) bool { return s.place == beeyard.PlaceFailed }
		ends, err := b.r.endsOf(ctx, want, at)
		if err != nil {
			return err
		}
		kept := want[:0]
		for i, s := range want {
			if !at(s) || ends[i] == beeyard.StateFailed == failed {
				kept = append(kept, s)
			}
		}
		want = kept
	}
	if !keys {
		b.total += len(want)
		return nil
	}
	return b.timed(ctx, want)
}

// timed adds rows that only their modification time places.
func (b *rowBuilder) timed(ctx context.Context, want []sighting) error {
	rows := make([]row, len(want))
	gone := make([]bool, len(want))
	err := parallel(ctx, len(want), func(i int) error {
		s := &want[i]
		info, err := b.r.place(s.place).Stat(s.name())
		if missing(err) {
			gone[i] = true
			return nil
		}
		rows[i] = row{s: s, key: timeKey(groupEnded, info.ModTime, s.id, string(s.place))}
		return err
	})
	if err != nil {
		return err
	}
	for i := range rows {
		if gone[i] {
			if err := b.r.eachMoved(ctx, want[i].id, b.body); err != nil {
				return err
			}
			continue
		}
		b.add(rows[i])
	}
	return nil
}

func (b *rowBuilder) quarantined(ctx context.Context) error {
	if !b.m.wants(beeyard.StateQuarantined) {
		return nil
	}
	return b.r.eachQuarantined(ctx, func(q quarantined) bool {
		if b.m.body(&beeyard.Task{ID: q.id}) {
			b.add(row{q: &q, key: timeKey(groupQuarantined, q.at, q.id, q.name)})
		}
		return true
	})
}

// rowHeap has the row on top that stands last.
type rowHeap []row

func (h rowHeap) Len() int           { return len(h) }
func (h rowHeap) Less(i, j int) bool { return compareKeys(&h[i].key, &h[j].key) > 0 }
func (h rowHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *rowHeap) Push(x any)        { *h = append(*h, x.(row)) }
func (h *rowHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
