package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// The order is the queue's: the keys must say what beeyard.Before says.
func TestViewOrderIsTheQueues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	times := []string{"2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05.5Z", "2026-01-02t03:04:05.000001z",
		"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "yesterday", "", "2026-13-01T00:00:00Z"}
	var tasks []*beeyard.Task
	for i := range 200 {
		task := viewTask(viewName(i))
		task.CreatedAt = times[rng.IntN(len(times))]
		task.Ext.Priority = rng.IntN(3) - 1
		tasks = append(tasks, task)
	}
	for _, a := range tasks {
		for _, b := range tasks {
			ka, kb := openKey(&sightedBody{task: a}), openKey(&sightedBody{task: b})
			if got, want := compareKeys(&ka, &kb) < 0, beeyard.Before(a, b); got != want && a != b {
				t.Fatalf("%s %q %d before %s %q %d: %v, want %v", a.ID, a.CreatedAt, a.Ext.Priority, b.ID, b.CreatedAt, b.Ext.Priority, got, want)
			}
		}
	}
}

// viewMixed has open tasks of several types and tiers, and finished ones.
func viewMixed(t *testing.T) *Run {
	r := viewRun(t, Options{})
	for i := range 30 {
		task := viewTask(viewName(i))
		task.Type = []string{"audit", "review", "sum"}[i%3]
		task.TierHint = []string{"", "opus"}[i%2]
		task.Payload = json.RawMessage(fmt.Sprintf(`{"repo": "r%d", "who": "Andr\u00e9"}`, i))
		if i%5 == 0 {
			task.Ext.Labels = []string{"hot", "new"}
		}
		task.Ext.Priority = i % 4
		switch {
		case i < 15:
			viewPut(t, r, dirPending, task)
		case i < 25:
			task.Ext.Outcome = beeyard.OutcomeDone
			viewPut(t, r, dirDone, task)
			viewAge(t, r, dirDone, bodyName(task.ID), time.Duration(i)*time.Minute)
		default:
			task.Ext.Outcome = []beeyard.Outcome{beeyard.OutcomeFailed, beeyard.OutcomeCanceled}[i%2]
			viewPut(t, r, dirFailed, task)
			viewAge(t, r, dirFailed, bodyName(task.ID), time.Duration(i)*time.Minute)
		}
	}
	return r
}

func TestViewListFilters(t *testing.T) {
	r := viewMixed(t)
	for _, c := range []struct {
		name string
		q    beeyard.Query
		n    int
	}{
		{"all", beeyard.Query{}, 30},
		{"ready", beeyard.Query{States: []beeyard.State{beeyard.StateReady}}, 15},
		{"done", beeyard.Query{States: []beeyard.State{beeyard.StateDone}}, 10},
		{"failed", beeyard.Query{States: []beeyard.State{beeyard.StateFailed}}, 2},
		{"canceled", beeyard.Query{States: []beeyard.State{beeyard.StateCanceled}}, 3},
		{"failed and canceled", beeyard.Query{States: []beeyard.State{beeyard.StateCanceled, beeyard.StateFailed}}, 5},
		{"blocked", beeyard.Query{States: []beeyard.State{beeyard.StateBlocked}}, 0},
		{"one type", beeyard.Query{Types: []string{"audit"}}, 10},
		{"two types", beeyard.Query{Types: []string{"audit", "sum"}}, 20},
		{"tier", beeyard.Query{Tiers: []string{"opus"}}, 15},
		{"label", beeyard.Query{Labels: []string{"hot"}}, 6},
		{"labels", beeyard.Query{Labels: []string{"hot", "old"}}, 0},
		{"text in the id", beeyard.Query{Text: "t00001"}, 10},
		{"text in the payload", beeyard.Query{Text: `"r7"`}, 1},
		{"text that the writer escaped", beeyard.Query{Text: "André"}, 30},
		{"text in the type", beeyard.Query{Text: "evie"}, 10},
		{"everything at once", beeyard.Query{States: []beeyard.State{beeyard.StateDone}, Types: []string{"sum"}, Tiers: []string{"opus"}, Text: "r"}, 2},
	} {
		p, err := r.List(viewContext(t), c.q)
		viewMust(t, err)
		if len(p.Tasks) != c.n || p.Total != c.n || p.Next != "" {
			t.Errorf("%s: %d tasks of %d, next %q; want %d", c.name, len(p.Tasks), p.Total, p.Next, c.n)
		}
	}
	for _, q := range []beeyard.Query{{States: []beeyard.State{"gone"}}, {Cursor: "?"}, {Cursor: "e30"}} {
		if _, err := r.List(viewContext(t), q); !errors.Is(err, beeyard.ErrUsage) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// Pages joined are the list: nothing twice, nothing left out, whatever the size.
func TestViewListPages(t *testing.T) {
	r := viewMixed(t)
	viewPutRaw(t, r, dirQuarantine, "odd.json", []byte("{"))
	for _, q := range []beeyard.Query{{}, {States: []beeyard.State{beeyard.StateDone, beeyard.StateFailed, beeyard.StateReady}}, {Types: []string{"audit"}}} {
		q.Limit = 1000
		whole, err := r.List(viewContext(t), q)
		viewMust(t, err)
		for _, limit := range []int{1, 2, 7, 15, 16, 29} {
			var got []string
			q.Limit, q.Cursor = limit, ""
			for {
				p, err := r.List(viewContext(t), q)
				viewMust(t, err)
				got = append(got, viewIDs(p)...)
				if p.Total != whole.Total {
					t.Errorf("limit %d: total %d, want %d", limit, p.Total, whole.Total)
				}
				if q.Cursor = p.Next; p.Next == "" {
					break
				}
			}
			if want := viewIDs(whole); !slices.Equal(got, want) {
				t.Errorf("limit %d: got  %v\nwant %v", limit, got, want)
			}
		}
	}
}

func TestViewListOrder(t *testing.T) {
	r := viewMixed(t)
	p, err := r.List(viewContext(t), beeyard.Query{})
	viewMust(t, err)
	open := slices.IndexFunc(p.Tasks, func(v *beeyard.View) bool { return v.State.Finished() })
	if open != 15 || !sort.SliceIsSorted(p.Tasks[:open], func(i, j int) bool { return beeyard.Before(p.Tasks[i].Task, p.Tasks[j].Task) }) {
		t.Errorf("open tasks: %v", viewIDs(p)[:open])
	}
	if !slices.IsSortedFunc(p.Tasks[open:], func(a, b *beeyard.View) int { return int(b.Since - a.Since) }) {
		t.Errorf("finished tasks, newest first: %v", viewIDs(p)[open:])
	}
}

// A page of finished tasks reads the bodies that it shows and no others.
func TestViewListReadsNoMoreThanItShows(t *testing.T) {
	var counted *durable.Counter
	o := Options{Wrap: func(d durable.Dir) durable.Dir {
		var c durable.Dir
		c, counted = durable.Counting(d)
		return c
	}}
	r := viewRun(t, o)
	for i := range 500 {
		task := viewTask(viewName(i))
		task.Ext.Outcome = beeyard.OutcomeDone
		viewPut(t, r, dirDone, task)
	}
	counted.Reset()
	p, err := r.List(viewContext(t), beeyard.Query{Limit: 20})
	viewMust(t, err)
	if len(p.Tasks) != 20 || p.Total != 500 {
		t.Fatalf("%d of %d", len(p.Tasks), p.Total)
	}
	if n := counted.Of(durable.OpReadFile, durable.OpOpen); n > 30 {
		t.Errorf("%d files were read for 20 rows", n)
	}
	if n := counted.Of(durable.OpLock, durable.OpTryLock, durable.OpRename, durable.OpRenameExcl, durable.OpRemove, durable.OpCreate, durable.OpTouch); n > 0 {
		t.Errorf("looking locked or changed: %v", counted.All())
	}
	counted.Reset()
	if _, err := r.Counts(viewContext(t)); err != nil {
		t.Fatal(err)
	}
	if n := counted.Of(durable.OpReadFile); n > 5 {
		t.Errorf("counting 500 done tasks read %d files", n)
	}
}

func TestViewIndexSparesReading(t *testing.T) {
	var counted *durable.Counter
	o := Options{Wrap: func(d durable.Dir) durable.Dir {
		var c durable.Dir
		c, counted = durable.Counting(d)
		return c
	}}
	r := viewRun(t, o)
	const n = 2000
	for i := range n {
		task := viewTask(viewName(i))
		task.Ext.Priority = i % 7
		if i%2 == 1 {
			task.DependsOn = []string{viewName(i - 1)}
		}
		viewPut(t, r, dirPending, task)
	}
	first, err := r.Counts(viewContext(t))
	viewMust(t, err)
	cold, err := r.List(viewContext(t), beeyard.Query{Limit: 50, States: []beeyard.State{beeyard.StateBlocked}})
	viewMust(t, err)
	counted.Reset()
	second, err := r.Counts(viewContext(t))
	viewMust(t, err)
	warm, err := r.List(viewContext(t), beeyard.Query{Limit: 50, States: []beeyard.State{beeyard.StateBlocked}})
	viewMust(t, err)
	if reads := counted.Of(durable.OpReadFile); reads > 200 {
		t.Errorf("%d bodies read although the index has them", reads)
	}
	for _, c := range []beeyard.Counts{first, second} {
		if c.ByState[beeyard.StateReady] != n/2 || c.ByState[beeyard.StateBlocked] != n/2 {
			t.Errorf("counts %v", c.ByState)
		}
	}
	if !slices.Equal(viewIDs(cold), viewIDs(warm)) || warm.Total != n/2 {
		t.Errorf("the index changes the list: %v and %v", viewIDs(cold), viewIDs(warm))
	}
	// A replaced body is another file: it is read, not remembered.
	task := viewTask(viewName(0), "ghost")
	data, err := task.Encode()
	viewMust(t, err)
	viewPutRaw(t, r, dirPending, ".new", data)
	viewMust(t, r.pending.Rename(".new", r.pending, bodyName(task.ID)))
	third, err := r.Counts(viewContext(t))
	viewMust(t, err)
	if third.ByState[beeyard.StateReady] != n/2-1 {
		t.Errorf("a replaced body: %v", third.ByState)
	}
}

// Only the body tells a canceled task from a failed one, and what was read is
// believed only of the very same file.
func TestViewTellsCanceledFromFailed(t *testing.T) {
	r := viewRun(t, Options{})
	for i, c := range []struct {
		body string
		want beeyard.State
	}{
		{`{"task_id":"x","task_type":"w"}`, beeyard.StateFailed},
		{`{"task_id":"x","task_type":"w","beeyard":{"outcome":"canceled"}}`, beeyard.StateCanceled},
		{`{"task_id":"x","task_type":"w","payload":"canceled","beeyard":{"outcome":"failed"}}`, beeyard.StateFailed},
		{`{"task_id":"x","task_type":"w","beeyard":{"outcome":"c\u0061nceled"}}`, beeyard.StateCanceled},
		{`{"task_id":"x","task_type":"w","payload":"canceled"`, beeyard.StateFailed},
	} {
		viewPutRaw(t, r, dirFailed, "new", []byte(c.body))
		viewMust(t, r.failed.Rename("new", r.failed, "x.json"))
		for range 2 { // read, then remembered
			n, err := r.Counts(viewContext(t))
			viewMust(t, err)
			if n.ByState[c.want] != 1 || n.ByState[beeyard.StateFailed]+n.ByState[beeyard.StateCanceled] != 1 {
				t.Errorf("body %d: %v, want one %s", i, n.ByState, c.want)
			}
		}
		p, err := r.List(viewContext(t), beeyard.Query{States: []beeyard.State{c.want}})
		viewMust(t, err)
		viewWantIDs(t, p, "x")
	}
}
