package spool

import (
	"context"
	"fmt"
	"time"

	"beeyard"
)

// Counts gives the number of tasks in each state, all states named. It takes no
// lock and costs the names of the run, what the index says of open tasks, and,
// once each, the bodies in failed/, since only they tell canceled from failed.
func (r *Run) Counts(ctx context.Context) (beeyard.Counts, error) {
	c := counter{j: r.newJudge(ctx), c: beeyard.Counts{ByState: map[beeyard.State]int{}, ByWorker: map[string]int{}}}
	for _, s := range beeyard.States() {
		c.c.ByState[s] = 0
	}
	seen, err := r.scan(ctx)
	if err != nil {
		return c.c, err
	}
	var waiting []sighting
	for i := range seen {
		s := &seen[i]
		switch s.place {
		case beeyard.PlacePending, beeyard.PlaceHeld:
			waiting = append(waiting, *s)
		case beeyard.PlaceClaimed:
			c.claimed(s)
		case beeyard.PlaceDone:
			c.c.ByState[beeyard.StateDone]++
		}
	}
	if err := r.countFailed(ctx, seen, &c); err != nil {
		return c.c, err
	}
	if err := r.eachWaiting(ctx, waiting, c.body); err != nil {
		return c.c, err
	}
	err = r.eachQuarantined(ctx, func(quarantined) bool {
		c.c.ByState[beeyard.StateQuarantined]++
		return true
	})
	if err != nil {
		return c.c, fmt.Errorf("list quarantined files: %w", err)
	}
	if err := c.j.err(); err != nil {
		return c.c, err
	}
	if !c.oldest.IsZero() {
		c.c.OldestReadyAge = max(0, c.j.now.Sub(c.oldest).Seconds())
	}
	return c.c, nil
}

type counter struct {
	j      *judge
	c      beeyard.Counts
	oldest time.Time // created_at of the oldest ready task
}

func (c *counter) claimed(s *sighting) {
	c.c.ByState[beeyard.StateClaimed]++
	if w := workerOf(s.claim); w != "" { // an operation's claim is nobody's work
		c.c.ByWorker[w]++
	}
}

// body counts one that is waiting to run, or was when it was seen.
func (c *counter) body(s *sighting, b *sightedBody) error {
	if s.place == beeyard.PlaceClaimed {
		c.claimed(s)
		return nil
	}
	t := b.task
	if t == nil {
		t = &beeyard.Task{ID: s.id}
	}
	state := c.j.state(t, s.place, b.task != nil)
	c.c.ByState[state]++
	if state != beeyard.StateReady {
		return nil
	}
	if at, ok := b.created(); ok && (c.oldest.IsZero() || at.Before(c.oldest)) {
		c.oldest = at
	}
	return nil
}

func (r *Run) countFailed(ctx context.Context, seen []sighting, c *counter) error {
	var failed []sighting
	for _, s := range seen {
		if s.place == beeyard.PlaceFailed {
			failed = append(failed, s)
		}
	}
	ends, err := r.endsOf(ctx, failed, func(sighting) bool { return true })
	if err != nil {
		return err
	}
	for i, s := range ends {
		if s != "" {
			c.c.ByState[s]++
			continue
		}
		if err := r.eachMoved(ctx, failed[i].id, c.body); err != nil {
			return err
		}
	}
	return nil
}
