package spool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"beeyard"
)

// For random graphs of 200 tasks, what next gives, what Judge says through
// deps, what a one-shot claim takes and what a model by brute force finds are
// one and the same, at each step until nothing moves.
func TestPickGraphAgrees(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { pickGraph(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func pickGraph(t *testing.T, rnd *rand.Rand) {
	r := pickRun(t)
	const n = 200
	model := map[string]*beeyard.Task{}
	ended := map[string]string{}
	for i := range n {
		task := pickTask(i, pickPriority(rnd.IntN(3)))
		for range rnd.IntN(4) {
			// Mostly backwards, so that much can run; now and then forwards or to
			// itself, which makes cycles, and to what does not exist.
			at := rnd.IntN(max(i, 1))
			switch rnd.IntN(30) {
			case 0:
				at = rnd.IntN(n)
			case 1:
				at = n + rnd.IntN(9)
			}
			task.DependsOn = append(task.DependsOn, pickTask(at).ID)
		}
		model[task.ID] = task
		pickPut(t, r, dirPending, task)
	}
	p := pickPicker(t, r)
	ready := func() (ids []*beeyard.Task) {
		for _, task := range model {
			met := true
			for _, d := range task.DependsOn {
				met = met && d != task.ID && ended[d] == dirDone
			}
			if met {
				ids = append(ids, task)
			}
		}
		return ids
	}
	for step := 0; ; step++ {
		want := pickSort(ready())
		deps := r.newDeps(pickContext(t))
		var judged []*beeyard.Task
		for _, task := range model {
			v := beeyard.Judge(task, beeyard.PlacePending, r.clk.Now(), deps.dep)
			if v.State == beeyard.StateReady {
				judged = append(judged, task)
			}
			pickGraphReasons(t, task, v, model, ended)
		}
		pickMust(t, deps.err())
		if got := pickSort(judged); !slices.Equal(got, want) {
			t.Fatalf("step %d: Judge has ready %v, the model %v", step, got, want)
		}
		got := ""
		if step%3 == 0 {
			got = pickOnceID(t, r, beeyard.Filter{Strict: true})
		} else {
			got = pickNext(t, p, beeyard.Filter{})
		}
		if len(want) == 0 {
			if got != "" {
				t.Fatalf("step %d: took %q, and nothing is ready", step, got)
			}
			return
		}
		if got != want[0] {
			t.Fatalf("step %d: took %q, want %q", step, got, want[0])
		}
		delete(model, got)
		ended[got] = dirDone
		if rnd.IntN(15) == 0 {
			ended[got] = dirFailed
		}
		pickEnd(t, r, ended[got], got)
		r.pickHint(got, beeyard.Place(ended[got])) // as a settle of this process does
	}
}

// pickGraphReasons compares each reason with the model: a cycle is told if and
// only if the blocker can reach itself through what is open.
func pickGraphReasons(t *testing.T, task *beeyard.Task, v beeyard.Verdict, open map[string]*beeyard.Task, ended map[string]string) {
	t.Helper()
	for _, why := range v.Reasons {
		if why.Blocker == task.ID {
			continue
		}
		b := open[why.Blocker]
		inCycle := b != nil && beeyard.FindCycle(b.ID, b.DependsOn, func(id string) ([]string, bool) {
			if u := open[id]; u != nil {
				return u.DependsOn, true
			}
			return nil, false
		}) != nil
		if got := why.Kind == "cycle"; got != inCycle {
			t.Fatalf("%s waits for %s: told as a cycle: %v, is one: %v", task.ID, why.Blocker, got, inCycle)
		}
		if inCycle {
			if !slices.Contains(why.Cycle, b.ID) || why.Cycle[0] != why.Cycle[len(why.Cycle)-1] {
				t.Fatalf("cycle %v is none through %s", why.Cycle, b.ID)
			}
			for i, id := range why.Cycle[:len(why.Cycle)-1] {
				if !slices.Contains(open[id].DependsOn, why.Cycle[i+1]) {
					t.Fatalf("cycle %v: %s does not wait for %s", why.Cycle, id, why.Cycle[i+1])
				}
			}
			continue
		}
		switch {
		case ended[why.Blocker] == dirFailed && why.State != beeyard.StateFailed,
			b == nil && ended[why.Blocker] == "" && !why.Stuck,
			b != nil && why.State != beeyard.StateReady && why.State != beeyard.StateBlocked:
			t.Fatalf("%s waits for %s: told %+v", task.ID, why.Blocker, why)
		}
	}
}
