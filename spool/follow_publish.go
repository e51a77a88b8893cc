package spool

import (
	"context"
	"encoding/json"
	"fmt"
)

// decidedFollowUps gives the bodies that a decided record promises: those it
// carries, and those that were left beside the claim after its writer looked
// and before it was decided. Both were acknowledged. The names of the latter
// join what the end of the claim removes.
func (r *Run) decidedFollowUps(p *pass) ([]json.RawMessage, error) {
	bodies := p.next.Ext.Next
	left, names, err := r.readFollowUps(p.dir, p.id)
	if err != nil || len(left) == 0 {
		return bodies, err
	}
	carried := make(map[string]bool, len(bodies))
	for _, b := range bodies {
		if t, err := parseAny(b); err == nil {
			carried[t.Life()] = true
		}
	}
	all := bodies[:len(bodies):len(bodies)]
	for _, t := range left {
		if carried[t.Life()] {
			continue
		}
		b, err := t.Encode()
		if err != nil {
			return nil, fmt.Errorf("encode follow-up: %w", err)
		}
		all = append(all, b)
	}
	p.extras = append(p.extras, names...)
	return all, nil
}

// publishFollowUps is step 1 of Finish: the bodies that a decided record
// carries are enqueued, under the lock; one whose id another task has is
// skipped. It may be run any number of times: a body that is here with the
// same life was published by an earlier finisher.
func (r *Run) publishFollowUps(ctx context.Context, bodies []json.RawMessage) (published, skipped []string, err error) {
	now := r.clk.Now()
	adds := make([]*addition, 0, len(bodies))
	for _, b := range bodies {
		t, err := parseAny(b)
		if err != nil {
			r.note("a follow-up is no task and is left out: %v", err)
			continue
		}
		adds = append(adds, &addition{task: t, body: b, place: startPlace(t, now)})
	}
	if err := r.admit(ctx, adds, followUps, nil); err != nil {
		return nil, nil, err
	}
	for _, a := range adds {
		if a.status == statusEnqueued {
			published = append(published, a.task.ID)
		} else {
			skipped = append(skipped, a.task.ID)
		}
	}
	return published, skipped, nil
}
