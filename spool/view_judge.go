package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard"
)

// judge asks beeyard.Judge on behalf of one look: one time and one set of
// answers about dependencies for all tasks that it shows, so that they agree.
type judge struct {
	now  time.Time
	deps *deps
	met  error // what kept a dependency from being looked up
}

// err is what kept the look from answering.
func (j *judge) err() error {
	if err := errors.Join(j.met, j.deps.err()); err != nil {
		return fmt.Errorf("look for dependencies: %w", err)
	}
	return nil
}

func (r *Run) newJudge(ctx context.Context) *judge {
	return &judge{now: r.clk.Now(), deps: r.newDeps(ctx)}
}

// full gives the state and every reason, cycles walked.
func (j *judge) full(t *beeyard.Task, at beeyard.Place, readable bool) (beeyard.State, []beeyard.Reason) {
	v := beeyard.Judge(t, placeFor(at, readable), j.now, j.deps.dep)
	return v.State, v.Reasons
}

// state gives the state alone. Whether a dependency is met is all that it
// depends on, so the reasons' walks over the graph are spared.
func (j *judge) state(t *beeyard.Task, at beeyard.Place, readable bool) beeyard.State {
	return beeyard.Judge(t, placeFor(at, readable), j.now, func(id string) beeyard.Dep {
		met, err := j.deps.met(id)
		if err != nil && j.met == nil {
			j.met = err
		}
		return beeyard.Dep{ID: id, Met: met, Known: true}
	}).State
}

// placeFor: what lies where tasks wait to run and cannot be read is quarantined
// sooner or later, and is no other state's until then. What has ended has
// ended, whatever its body looks like by now.
func placeFor(at beeyard.Place, readable bool) beeyard.Place {
	if !readable && (at == beeyard.PlacePending || at == beeyard.PlaceHeld) {
		return beeyard.PlaceQuarantine
	}
	return at
}
