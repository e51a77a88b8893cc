package spool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// pickWait bounds what a test waits for. It is far above what anything takes.
const pickWait = 30 * time.Second

func pickContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 4*pickWait)
	t.Cleanup(cancel)
	return ctx
}

func pickMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pickRunAt(t testing.TB, path string, o Options, clk clock.Clock) *Run {
	t.Helper()
	r, err := Create(path, beeyard.Checkpoint{}, o, clk)
	pickMust(t, err)
	t.Cleanup(func() { pickMust(t, r.Close()) })
	return r
}

func pickRun(t testing.TB) *Run {
	t.Helper()
	return pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{}, clock.Real())
}

// pickAgain opens the run a second time, as another process would.
func pickAgain(t testing.TB, r *Run) *Run {
	t.Helper()
	other, err := Open(r.path, Options{}, clock.Real())
	pickMust(t, err)
	t.Cleanup(func() { pickMust(t, other.Close()) })
	return other
}

// pickTask is number n of a series: created one second after the one before.
func pickTask(n int, change ...func(*beeyard.Task)) *beeyard.Task {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(n) * time.Second)
	t := &beeyard.Task{ID: fmt.Sprintf("task-%06d", n), Type: "work", CreatedAt: beeyard.FormatTime(at), CreatedBy: "test",
		Payload: json.RawMessage(`{"prompt": "Read the report and write down what does not add up", "n": 12}`)}
	for _, f := range change {
		f(t)
	}
	return t
}

func pickPriority(p int) func(*beeyard.Task) { return func(t *beeyard.Task) { t.Ext.Priority = p } }
func pickNeeds(ids ...string) func(*beeyard.Task) {
	return func(t *beeyard.Task) { t.DependsOn = ids }
}

func pickNotBefore(at time.Time) func(*beeyard.Task) {
	return func(t *beeyard.Task) { t.Ext.NotBefore = beeyard.FormatTime(at) }
}

// pickPut writes a body as an older program does: a temporary file, then a
// rename over whatever has the name.
func pickPut(t testing.TB, r *Run, folder string, tasks ...*beeyard.Task) {
	t.Helper()
	for _, task := range tasks {
		data, err := task.Encode()
		pickMust(t, err)
		pickRaw(t, r, folder, bodyName(task.ID), data)
	}
}

func pickRaw(t testing.TB, r *Run, folder, name string, data []byte) {
	t.Helper()
	temp := filepath.Join(r.path, folder, ".older-temp")
	pickMust(t, os.WriteFile(temp, data, 0o600))
	pickMust(t, os.Rename(temp, filepath.Join(r.path, folder, name)))
}

// pickFill writes n bodies without the temporary names.
func pickFill(t testing.TB, r *Run, folder string, n int, change ...func(*beeyard.Task)) {
	t.Helper()
	for i := range n {
		task := pickTask(i, change...)
		data, err := task.Encode()
		pickMust(t, err)
		pickMust(t, os.WriteFile(filepath.Join(r.path, folder, bodyName(task.ID)), data, 0o600))
	}
}

func pickPicker(t testing.TB, r *Run) *picker {
	t.Helper()
	p := r.newPicker()
	t.Cleanup(func() { pickMust(t, p.close()) })
	return p
}

// pickNext claims as a worker does, by moving the body away; "" for none.
func pickNext(t testing.TB, p *picker, f beeyard.Filter) string {
	t.Helper()
	for {
		id, ok, err := p.next(pickContext(t), f)
		pickMust(t, err)
		if !ok {
			return ""
		}
		if pickTake(t, p.r, id) {
			return id
		}
	}
}

func pickTake(t testing.TB, r *Run, id string) bool {
	t.Helper()
	err := os.Rename(filepath.Join(r.path, dirPending, bodyName(id)), filepath.Join(r.path, dirArtifacts, bodyName(id)))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// pickEnd puts an end of a task where dependants see it.
func pickEnd(t testing.TB, r *Run, folder, id string) {
	t.Helper()
	pickPut(t, r, folder, &beeyard.Task{ID: id, Type: "work", CreatedAt: "2026-01-02T03:04:05Z",
		Ext: beeyard.Ext{Outcome: map[string]beeyard.Outcome{dirDone: beeyard.OutcomeDone, dirFailed: beeyard.OutcomeFailed}[folder]}})
}

func pickAll(t testing.TB, p *picker, f beeyard.Filter) (ids []string) {
	t.Helper()
	for id := pickNext(t, p, f); id != ""; id = pickNext(t, p, f) {
		ids = append(ids, id)
	}
	return ids
}

// pickRunQuiet is a run that the caller closes.
func pickRunQuiet(t interface{ Fatal(...any) }, path string) *Run {
	r, err := Create(path, beeyard.Checkpoint{}, Options{}, clock.Real())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pickIndex writes an index of what is in pending/ and held/ now.
func pickIndex(t testing.TB, r *Run) {
	t.Helper()
	var all []*candidate
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld} {
		var names []listed
		pickMust(t, r.place(p).Each(func(e durable.Entry) bool {
			if id, ok := taskIDOf(e.Name); ok {
				names = append(names, listed{id: id, ino: e.Ino})
			}
			return true
		}))
		got, err := r.readCandidates(pickContext(t), r.place(p), names)
		pickMust(t, err)
		all = append(all, got.good...)
	}
	pickMust(t, r.saveIndex(all))
}

// pickOnceID is a one-shot claim; "" for none.
func pickOnceID(t testing.TB, r *Run, f beeyard.Filter) (won string) {
	t.Helper()
	pickMust(t, r.pickOnce(pickContext(t), f, func(id string) (bool, error) {
		if pickTake(t, r, id) {
			won = id
		}
		return won != "", nil
	}))
	return won
}
