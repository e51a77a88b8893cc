package spool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"beeyard"
)

// viewGraph fills a run with 200 tasks in every state and place, with random
// dependencies: on each other, on themselves, in circles, on ids that are not
// there, archived, pruned, or only listed as completed.
func viewGraph(t *testing.T, r *Run, rng *rand.Rand) []string {
	const n = 200
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	ids := make([]string, n)
	for i := range ids {
		ids[i] = viewName(i)
	}
	var done []string
	for i, id := range ids {
		task := viewTask(id)
		task.Ext.Priority = rng.IntN(3)
		task.CreatedAt = fmt.Sprintf("2026-01-02T03:04:%02dZ", rng.IntN(60))
		task.Type = pick("a", "b")
		for range rng.IntN(4) {
			dep := ids[rng.IntN(n)]
			if rng.IntN(3) > 0 && i > 0 {
				dep = ids[rng.IntN(i)] // mostly backward: else all is one circle
			}
			if rng.IntN(12) == 0 {
				dep = pick("ghost", "archived", "pruned", "pruned-failed", "completed", id)
			}
			task.DependsOn = append(task.DependsOn, dep)
		}
		switch k := rng.IntN(20); {
		case k < 6:
			task.Ext.Outcome = beeyard.OutcomeDone
			viewPut(t, r, dirDone, task)
			done = append(done, id)
		case k < 7:
			task.Ext.Outcome = []beeyard.Outcome{beeyard.OutcomeFailed, beeyard.OutcomeCanceled, ""}[rng.IntN(3)]
			viewPut(t, r, dirFailed, task)
		case k < 8:
			viewPut(t, r, "claimed/older", task)
		case k < 10:
			task.Ext.NotBefore = beeyard.FormatTime(time.Now().Add(time.Duration(rng.IntN(2)*2-1) * time.Hour))
			viewPut(t, r, dirHeld, task)
		case k < 11:
			task.Ext.Hold = &beeyard.Hold{}
			viewPut(t, r, dirHeld, task)
		case k < 12 && rng.IntN(4) == 0:
			viewPutRaw(t, r, dirPending, bodyName(id), []byte("{"))
		default:
			viewPut(t, r, dirPending, task)
		}
	}
	archived := viewTask("archived")
	archived.Ext.Outcome = beeyard.OutcomeDone
	viewPut(t, r, ".beeyard/archive", archived)
	viewPutRaw(t, r, dirMeta, filePruned, []byte(`{"id":"pruned","outcome":"done"}`+"\n"+`{"id":"pruned-failed","outcome":"failed"}`+"\n"))
	viewMust(t, r.completedNow(viewContext(t), done...))
	return ids
}

// One function decides: what claim takes, what Get, List and Counts say of 200
// tasks agree, whatever the graph.
func TestViewsAndClaimAgree(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := viewRun(t, Options{})
			ids := viewGraph(t, r, rand.New(rand.NewPCG(seed, 9)))
			ctx := viewContext(t)

			byGet := map[beeyard.State][]string{}
			for _, id := range ids {
				v, err := r.Get(ctx, id)
				viewMust(t, err)
				byGet[v.State] = append(byGet[v.State], id)
				if blocked := v.State == beeyard.StateBlocked; blocked && len(v.Reasons) == 0 {
					t.Errorf("%s is blocked without a reason", id)
				}
			}
			counts, err := r.Counts(ctx)
			viewMust(t, err)
			everything, err := r.List(ctx, beeyard.Query{Limit: 1000})
			viewMust(t, err)
			byList := map[beeyard.State][]string{}
			for _, v := range everything.Tasks {
				byList[v.State] = append(byList[v.State], v.Task.ID)
			}
			for _, s := range beeyard.States() {
				want := byGet[s]
				p, err := r.List(ctx, beeyard.Query{States: []beeyard.State{s}, Limit: 1000})
				viewMust(t, err)
				for name, got := range map[string][]string{"the whole list": byList[s], "the list of the state": viewIDs(p)} {
					slices.Sort(got)
					if !slices.Equal(got, want) && len(got)+len(want) > 0 {
						t.Errorf("%s: %s says %v, Get says %v", s, name, got, want)
					}
				}
				if counts.ByState[s] != len(want) {
					t.Errorf("%s: counted %d, Get says %d", s, counts.ByState[s], len(want))
				}
			}

			w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "w1", Kind: beeyard.KindProcess})
			viewMust(t, err)
			ready, err := r.List(ctx, beeyard.Query{States: []beeyard.State{beeyard.StateReady}, Limit: 1000})
			viewMust(t, err)
			var taken []string
			for {
				c, err := w.Claim(ctx, beeyard.Filter{})
				viewMust(t, err)
				if c == nil {
					break
				}
				taken = append(taken, c.Task.ID)
			}
			if want := viewIDs(ready); !slices.Equal(taken, want) {
				t.Errorf("claim took      %v\nthe list showed %v", taken, want)
			}
			viewMust(t, w.Close(ctx))
		})
	}
}
