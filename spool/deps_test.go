package spool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

func TestDepsStates(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirPending, pickTask(1), pickTask(2, pickNeeds("task-000001")), pickTask(3, pickNotBefore(time.Now().Add(time.Hour))))
	pickPut(t, r, dirHeld, pickTask(4, func(t *beeyard.Task) { t.Ext.Hold = &beeyard.Hold{} }),
		pickTask(5, pickNotBefore(time.Now().Add(time.Hour))))
	pickEnd(t, r, dirDone, "done")
	pickEnd(t, r, dirFailed, "failed")
	pickPut(t, r, dirFailed, &beeyard.Task{ID: "canceled", Type: "x", Ext: beeyard.Ext{Outcome: beeyard.OutcomeCanceled}})
	pickClaimed(t, r, "w1~0123456789abcdef", "claimed.json")
	pickClaimed(t, r, "w2~0123456789abcdef", "taken~taken.01234567")
	pickRaw(t, r, dirQuarantine, "bad.json", []byte("{"))
	pickRaw(t, r, dirPending, "strange.json", []byte("{"))
	for out, ids := range map[beeyard.Outcome][]string{beeyard.OutcomeDone: {"pruned-done", "kept"}, beeyard.OutcomeFailed: {"pruned-failed"}} {
		for _, id := range ids {
			pickEnd(t, r, map[beeyard.Outcome]string{beeyard.OutcomeDone: dirDone, beeyard.OutcomeFailed: dirFailed}[out], id)
			_, err := r.Prune(pickContext(t), beeyard.PruneOptions{IDs: []string{id}, States: []beeyard.State{beeyard.StateDone, beeyard.StateFailed},
				Delete: id != "kept"})
			pickMust(t, err)
		}
	}
	d := r.newDeps(pickContext(t))
	for id, want := range map[string]beeyard.Dep{
		"task-000001":   {Known: true, State: beeyard.StateReady},
		"task-000002":   {Known: true, State: beeyard.StateBlocked},
		"task-000003":   {Known: true, State: beeyard.StateWaiting},
		"task-000004":   {Known: true, State: beeyard.StateHeld},
		"task-000005":   {Known: true, State: beeyard.StateWaiting},
		"done":          {Known: true, Met: true},
		"failed":        {Known: true, State: beeyard.StateFailed},
		"canceled":      {Known: true, State: beeyard.StateCanceled},
		"claimed":       {Known: true, State: beeyard.StateClaimed},
		"taken":         {Known: true, State: beeyard.StateClaimed},
		"bad":           {Known: true, State: beeyard.StateQuarantined},
		"strange":       {Known: true, State: beeyard.StateQuarantined},
		"pruned-done":   {Known: true, Met: true},
		"kept":          {Known: true, Met: true},
		"pruned-failed": {Known: true, State: beeyard.StateFailed},
		"ghost":         {},
	} {
		got := d.dep(id)
		if got.Met != want.Met || got.Known != want.Known || !got.Met && got.Known && got.State != want.State {
			t.Errorf("%s is %+v, want %+v", id, got, want)
		}
		if met, err := d.met(id); err != nil || met != want.Met {
			t.Errorf("met(%s) is %v, %v", id, met, err)
		}
	}
	pickMust(t, d.err())
}

// Each dependency is looked for once, and when they are very many done/ is
// listed instead.
func TestDepsLooks(t *testing.T) {
	base := pickRun(t)
	const n = listDoneFrom + 500
	pickFill(t, base, dirDone, n)
	var count *durable.Counter
	r, err := Open(base.path, Options{Wrap: func(d durable.Dir) durable.Dir {
		d, count = durable.Counting(d)
		return d
	}}, base.clk)
	pickMust(t, err)
	defer func() { pickMust(t, r.Close()) }()
	var ids []string
	for i := range n {
		ids = append(ids, pickTask(i).ID)
	}
	for name, ask := range map[string]func(d *deps){
		"one by one": func(d *deps) {},
		"primed":     func(d *deps) { pickMust(t, d.prime(slices.Values(ids))) },
	} {
		d := r.newDeps(pickContext(t))
		count.Reset()
		ask(d)
		for range 2 {
			for _, id := range ids {
				if met, err := d.met(id); err != nil || !met {
					t.Fatalf("%s: %s is met: %v, %v", name, id, met, err)
				}
			}
		}
		if looks, lists := count.Of(durable.OpExists, durable.OpStat), count.Of(durable.OpEach); looks > listDoneFrom || lists != 1 {
			t.Errorf("%s: %d looks and %d listings for %d ids", name, looks, lists, n)
		}
	}
}

// A long chain and a long cycle are walked once, without a deep stack, and a
// long cycle is told in short.
func TestDepsLongPaths(t *testing.T) {
	base := pickRun(t)
	const n = 4000
	for i := range n {
		pickPut(t, base, dirPending, pickTask(i, pickNeeds(pickTask(i+1).ID)), pickTask(n+1+i, pickNeeds(pickTask(n+1+(i+1)%n).ID)))
	}
	pickIndex(t, base)
	var count *durable.Counter
	r, err := Open(base.path, Options{Wrap: func(d durable.Dir) durable.Dir {
		d, count = durable.Counting(d)
		return d
	}}, base.clk)
	pickMust(t, err)
	defer func() { pickMust(t, r.Close()) }()
	d := r.newDeps(pickContext(t))
	count.Reset()
	for i := range n {
		if got := d.dep(pickTask(i).ID); got.State != beeyard.StateBlocked || got.Cycle != nil {
			t.Fatalf("in a chain: %+v", got)
		}
		got := d.dep(pickTask(n + 1 + i).ID)
		if len(got.Cycle) != cycleMost+2 || got.Cycle[0] != got.ID || got.Cycle[cycleMost] != elided || got.Cycle[cycleMost+1] != got.ID {
			t.Fatalf("in a cycle: %v", got.Cycle)
		}
	}
	if reads := count.Of(durable.OpReadFile); reads > bodiesFrom*4 {
		t.Errorf("%d bodies were read of %d that the index has", reads, 2*n)
	}
	pickMust(t, d.err())
}

// Every member of a knot of cycles gets a cycle through itself, along edges
// that are there.
func TestDepsKnots(t *testing.T) {
	r := pickRun(t)
	edges := map[string][]string{
		"a": {"b"}, "b": {"c", "f"}, "c": {"a", "d"}, "d": {"e"}, "e": {"c", "a"}, "f": {"b", "g"}, "g": {"h"}, "h": {"f"},
		"self": {"self"}, "out": {"a"}, "end": {"ghost"},
	}
	for id, deps := range edges {
		pickPut(t, r, dirPending, &beeyard.Task{ID: id, Type: "x", DependsOn: deps})
	}
	d := r.newDeps(pickContext(t))
	for id := range edges {
		c := d.dep(id).Cycle
		if id == "out" || id == "end" {
			if c != nil {
				t.Errorf("%s is in no cycle but told %v", id, c)
			}
			continue
		}
		if len(c) < 2 || c[0] != id || c[len(c)-1] != id {
			t.Errorf("cycle through %s is %v", id, c)
			continue
		}
		seen := map[string]bool{}
		for i := range len(c) - 1 {
			if !slices.Contains(edges[c[i]], c[i+1]) || seen[c[i]] {
				t.Errorf("cycle through %s: %v is no simple path", id, c)
			}
			seen[c[i]] = true
		}
	}
}

// Judge through deps says what people read.
func TestDepsReasons(t *testing.T) {
	r := pickRun(t)
	pickEnd(t, r, dirFailed, "t1")
	task := pickTask(1, pickNeeds("t1", "ghost"))
	pickPut(t, r, dirPending, task)
	d := r.newDeps(pickContext(t))
	v := beeyard.Judge(task, beeyard.PlacePending, r.clk.Now(), d.dep)
	if got := fmt.Sprint(v.State, " ", v.Reasons[0].Text, "; ", v.Reasons[1].Text); got !=
		"blocked it waits for t1, which failed; it waits for ghost, which does not exist" {
		t.Error(got)
	}
}
