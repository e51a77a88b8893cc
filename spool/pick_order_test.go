package spool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"beeyard"
	"beeyard/internal/durable"
)

var (
	pickPriorities = []int{-1 << 62, -1, 0, 0, 0, 1, 7}
	pickTimes      = []string{"", "soon", "later", "2026-01-02T03:04:05Z", "2026-01-02t03:04:05.000z", "2026-01-02T03:04:05.000000001Z",
		"2026-01-02T04:04:05+01:00", "2026-01-02T03:04:04Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"}
)

// pickAnyTask draws tasks whose order is decided by each of the three keys, and
// by times in all the forms in which they may be written.
func pickAnyTask(t *rapid.T, id string) *beeyard.Task {
	return &beeyard.Task{
		ID: id, Type: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type"),
		TierHint:  rapid.SampledFrom([]string{"", "haiku"}).Draw(t, "tier"),
		CreatedAt: rapid.SampledFrom(pickTimes).Draw(t, "created"),
		Ext: beeyard.Ext{
			Priority: rapid.SampledFrom(pickPriorities).Draw(t, "priority"),
			Labels:   rapid.SampledFrom([][]string{nil, {"x"}, {"x", "y"}}).Draw(t, "labels"),
		},
	}
}

func pickSort(tasks []*beeyard.Task) []string {
	tasks = slices.Clone(tasks)
	slices.SortFunc(tasks, func(a, b *beeyard.Task) int {
		switch {
		case beeyard.Before(a, b):
			return -1
		case beeyard.Before(b, a):
			return 1
		}
		return 0
	})
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

func TestPickCompareIsBefore(t *testing.T) {
	var all []*beeyard.Task
	for _, priority := range pickPriorities {
		for _, created := range pickTimes {
			for _, id := range []string{"p", "q"} {
				all = append(all, &beeyard.Task{ID: id, CreatedAt: created, Ext: beeyard.Ext{Priority: priority}})
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			ca, cb := newCandidate(a, 1, durable.Info{}), newCandidate(b, 2, durable.Info{})
			if got, want := ca.compare(cb) < 0, beeyard.Before(a, b); got != want {
				t.Errorf("%+v before %+v: %v, want %v", a, b, got, want)
			}
			if ca.compare(cb) != -cb.compare(ca) {
				t.Errorf("the order of %+v and %+v depends on who is asked", a, b)
			}
		}
	}
}

// Whatever comes, goes and comes back, in whatever order it is heard of, each
// next is the first of what is there.
func TestPickOrderExact(t *testing.T) {
	filters := []beeyard.Filter{{}, {Types: []string{"a"}}, {Tiers: []string{"haiku"}, Labels: []string{"x"}}, {IDs: []string{"t1", "t3", "t5"}}}
	round := 0
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		round++
		r := pickRunQuiet(rt, fmt.Sprintf("%s/%d", base, round))
		defer func() { pickMust(t, r.Close()) }()
		p := r.newPicker()
		there := map[string]*beeyard.Task{}
		put := func(rt *rapid.T) {
			id := fmt.Sprintf("t%d", rapid.IntRange(0, 9).Draw(rt, "id"))
			task := pickAnyTask(rt, id)
			pickPut(t, r, dirPending, task) // also over one that is there
			r.pickHint(id, beeyard.PlacePending)
			there[id] = task
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": put,
			"remove": func(rt *rapid.T) {
				id := fmt.Sprintf("t%d", rapid.IntRange(0, 9).Draw(rt, "id"))
				if pickTake(t, r, id) {
					delete(there, id)
				}
			},
			"next": func(rt *rapid.T) {
				f := rapid.SampledFrom(filters).Draw(rt, "filter")
				var fit []*beeyard.Task
				for _, task := range there {
					if f.Match(task) {
						fit = append(fit, task)
					}
				}
				want := ""
				if len(fit) > 0 {
					want = pickSort(fit)[0]
				}
				if got := pickNext(t, p, f); got != want {
					rt.Fatalf("next for %+v is %q, want %q of %d", f, got, want, len(fit))
				}
				delete(there, want)
			},
		})
	})
}

// A one-shot claim takes the same, by the index or without.
func TestPickOnceOrderExact(t *testing.T) {
	base := t.TempDir()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		r := pickRunQuiet(rt, fmt.Sprintf("%s/%d", base, round))
		defer func() { pickMust(t, r.Close()) }()
		var tasks []*beeyard.Task
		for i := range rapid.IntRange(0, 30).Draw(rt, "tasks") {
			tasks = append(tasks, pickAnyTask(rt, fmt.Sprintf("t%d", i)))
		}
		indexed := rapid.IntRange(0, len(tasks)).Draw(rt, "indexed")
		pickPut(t, r, dirPending, tasks[:indexed]...)
		pickIndex(t, r)
		pickPut(t, r, dirPending, tasks[indexed:]...)
		strict := rapid.Bool().Draw(rt, "strict")
		want := pickSort(tasks)
		for range want {
			if got := pickOnceID(t, r, beeyard.Filter{Strict: strict}); got != want[0] {
				rt.Fatalf("claimed %q, want %v", got, want)
			}
			want = want[1:]
		}
		if got := pickOnceID(t, r, beeyard.Filter{}); got != "" {
			rt.Fatalf("claimed %q of nothing", got)
		}
	})
}

// The quick reading of a listed name is the one that the rest of the package has.
func TestPickNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`(\.|[a-z./é\x00-\x1f\x7f-\x9f\xff]|long){0,6}`).Draw(t, "id")
		name = strings.ReplaceAll(name, "long", strings.Repeat("x", 100)) + rapid.SampledFrom([]string{"", ".json", ".jso", "json"}).Draw(t, "end")
		if strings.ContainsAny(name, "/\x00") {
			return // no name of a file
		}
		want, ok := taskIDOf(name)
		if got, also := idOfName([]byte(name)); ok != also || ok && string(got) != want {
			t.Fatalf("%q is %q, %v; want %q, %v", name, got, also, want, ok)
		}
	})
}

// What comes while a list is being taken from goes where it belongs, one at a
// time or very many at once.
func TestPickLateComesInOrder(t *testing.T) {
	r := pickRun(t)
	pickFill(t, r, dirPending, 2*mergeFrom)
	p := pickPicker(t, r)
	if got := pickNext(t, p, beeyard.Filter{}); got != "task-000000" {
		t.Fatalf("took %q", got)
	}
	for _, late := range [][]*beeyard.Task{{pickTask(700, pickPriority(9))}, nil} {
		if late == nil {
			for i := range 2 * mergeFrom {
				late = append(late, pickTask(800+i, pickPriority(i%3)))
			}
		}
		pickPut(t, r, dirPending, late...)
		for _, task := range late {
			r.pickHint(task.ID, beeyard.PlacePending)
		}
		first := pickSort(late)[0]
		if got := pickNext(t, p, beeyard.Filter{}); got != first {
			t.Errorf("took %q, want %q", got, first)
		}
	}
	if got := pickAll(t, p, beeyard.Filter{}); len(got) != 4*mergeFrom-2 {
		t.Errorf("%d were left", len(got))
	}
}
