package spool

import (
	"context"
	"fmt"
	"slices"

	"beeyard"
)

const (
	defaultLimit = 200
	mostRows     = 1 << 20 // of one page
)

// List gives a page of the tasks that match, open ones in the order of the
// queue, then finished ones, newest first, then quarantined ones. It takes no
// lock; a task that moves meanwhile is shown once, where it was found last.
// Archived tasks are out of the way and not listed. Pages are looks of their
// own: a finished task that is run again between two of them goes from a later
// page to one that was read already.
//
// It costs the names of the run, the bodies of what is shown and, of open
// tasks, those that the index does not know. Only a filter on bodies reads the
// bodies of finished tasks.
func (r *Run) List(ctx context.Context, q beeyard.Query) (*beeyard.Page, error) {
	m, err := newMatcher(q)
	if err != nil {
		return nil, err
	}
	var cursor *rowKey
	if q.Cursor != "" {
		if cursor, err = parseCursor(q.Cursor); err != nil {
			return nil, err
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	limit = min(limit, mostRows)
	seen, err := r.scan(ctx)
	if err != nil {
		return nil, err
	}
	b := &rowBuilder{r: r, m: m, j: r.newJudge(ctx), cursor: cursor, most: limit + 1}
	if err := b.open(ctx, seen); err != nil {
		return nil, fmt.Errorf("list open tasks: %w", err)
	}
	if err := b.ended(ctx, seen, !b.full()); err != nil {
		return nil, fmt.Errorf("list finished tasks: %w", err)
	}
	if err := b.quarantined(ctx); err != nil {
		return nil, fmt.Errorf("list quarantined files: %w", err)
	}
	page := &beeyard.Page{Total: b.total}
	rows := b.rows()
	var end *rowKey
	if len(rows) > limit {
		rows = rows[:limit]
		end = &rows[limit-1].key
		if page.Next, err = end.cursor(); err != nil {
			return nil, fmt.Errorf("write cursor: %w", err)
		}
	}
	if page.Tasks, err = b.views(ctx, rows, end); err != nil {
		return nil, err
	}
	if err := b.j.err(); err != nil {
		return nil, err
	}
	return page, nil
}

// placed is a view and where it stands.
type placed struct {
	v   *beeyard.View
	key rowKey
}

// views reads the bodies of a page. A task that has moved since is shown as it
// is now if it still matches, here unless it now stands behind the page's end,
// where a later page will show it.
func (b *rowBuilder) views(ctx context.Context, rows []row, end *rowKey) ([]*beeyard.View, error) {
	var out []placed
	for i := range rows {
		row := &rows[i]
		if row.q != nil {
			out = append(out, placed{b.r.viewQuarantined(*row.q), row.key})
			continue
		}
		x, err := b.r.readSighted(row.s, parseTask)
		if err != nil {
			return nil, fmt.Errorf("read task: %w", err)
		}
		if x.skip {
			continue
		}
		if !x.gone {
			v, err := b.view(ctx, row.s, &x)
			if err != nil {
				return nil, err
			}
			if v != nil {
				// What the names or the index said may be older than the body.
				if b.m.wants(v.State) && (x.task == nil || b.m.body(x.task)) {
					out = append(out, placed{v, row.key})
				}
				continue
			}
		}
		if out, err = b.moved(ctx, out, row.s.id, end); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(x, y placed) int { return compareKeys(&x.key, &y.key) })
	views := make([]*beeyard.View, len(out))
	for i := range out {
		views[i] = out[i].v
	}
	return views, nil
}

func (b *rowBuilder) view(ctx context.Context, s *sighting, x *sightedBody) (*beeyard.View, error) {
	f := found{place: s.place, claim: s.claim, name: s.name(), taken: s.taken != "", task: x.task}
	return b.r.viewOf(ctx, s.id, &f, b.j)
}

func (b *rowBuilder) moved(ctx context.Context, out []placed, id string, end *rowKey) ([]placed, error) {
	now := &rowBuilder{r: b.r, m: b.m, j: b.j, most: 1}
	err := b.r.eachMoved(ctx, id, func(s *sighting, x *sightedBody) error {
		now.kept = nil
		if err := now.body(s, x); err != nil || len(now.kept) == 0 {
			return err
		}
		key := now.kept[0].key
		if end != nil && compareKeys(&key, end) > 0 {
			return nil
		}
		v, err := b.view(ctx, s, x)
		if v != nil {
			out = append(out, placed{v, key})
		}
		return err
	})
	if err != nil {
		return out, fmt.Errorf("look for a task that moved: %w", err)
	}
	return out, nil
}
