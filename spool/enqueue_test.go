package spool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"

	"github.com/google/uuid"
)

func TestEnqueueFillsIn(t *testing.T) {
	r := enqRun(t, Options{})
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	r.clk = clock.NewFake(now)
	in := enqTask("t1")
	in.Payload = json.RawMessage(`{"a": 1.0,  "b":"<é>"}`)
	in.Ext.Rev, in.Ext.Attempt, in.Ext.Outcome, in.Ext.Priority = 7, 3, beeyard.OutcomeDone, 2
	enqueueOne(t, r, in)
	if in.Ext.UID != "" || in.CreatedAt != "" {
		t.Errorf("the caller's task was changed: %+v", in)
	}
	got, info, err := readTask(r.pending, "t1.json", "t1")
	enqMust(t, err)
	if uid, err := uuid.Parse(got.Ext.UID); err != nil || uid.Version() != 7 {
		t.Errorf("uid %q is no uuid v7: %v", got.Ext.UID, err)
	}
	if got.CreatedAt != beeyard.FormatTime(now) || got.RunID != r.ID() {
		t.Errorf("created_at %q, run_id %q", got.CreatedAt, got.RunID)
	}
	if string(got.Payload) != string(in.Payload) {
		t.Errorf("payload became %s", got.Payload)
	}
	if e := got.Ext; e.Rev != 0 || e.Attempt != 0 || e.Outcome != "" || e.Priority != 2 {
		t.Errorf("only wishes are taken over, got %+v", e)
	}
	if info.Mode.Perm() != fileMode {
		t.Errorf("mode %v", info.Mode)
	}
	if names := enqNames(t, r, dirPending); len(names) != 1 {
		t.Errorf("pending/ holds %v", names)
	}
}

func TestEnqueueKeepsWhatIsGiven(t *testing.T) {
	r := enqRun(t, Options{})
	in := enqTask("t1")
	in.CreatedAt, in.RunID, in.Ext.UID = "2026-01-02T03:04:05+01:00", "elsewhere", "life-1"
	in.Unknown = map[string]json.RawMessage{"x_other": json.RawMessage(`[1]`)}
	enqueueOne(t, r, in)
	got, _, err := readTask(r.pending, "t1.json", "t1")
	enqMust(t, err)
	if got.CreatedAt != in.CreatedAt || got.RunID != "elsewhere" || got.Ext.UID != "life-1" || string(got.Unknown["x_other"]) != "[1]" {
		t.Errorf("got %+v", got)
	}
}

func TestEnqueueBatchKeepsItsOrder(t *testing.T) {
	r := enqRun(t, Options{})
	tasks := []*beeyard.Task{enqTask("z"), enqTask("m"), enqTask("a")}
	_, err := r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{})
	enqMust(t, err)
	var last *beeyard.Task
	for _, in := range tasks {
		got, _, err := readTask(r.pending, bodyName(in.ID), in.ID)
		enqMust(t, err)
		if last != nil && !beeyard.Before(last, got) {
			t.Errorf("%s does not come before %s", last.ID, got.ID)
		}
		last = got
	}
}

// Path traversal through ids, and all else that the native door refuses.
func TestEnqueueRefusesBadTasks(t *testing.T) {
	r := enqRun(t, Options{})
	bad := map[string]*beeyard.Task{
		"no type":        {ID: "ok"},
		"type list":      {ID: "ok", Type: "a,b"},
		"created_at":     {ID: "ok", Type: "a", CreatedAt: "yesterday"},
		"not_before":     {ID: "ok", Type: "a", Ext: beeyard.Ext{NotBefore: "soon"}},
		"deadline":       {ID: "ok", Type: "a", Deadline: "soon", Ext: beeyard.Ext{OnDeadline: "fail"}},
		"on_deadline":    {ID: "ok", Type: "a", Ext: beeyard.Ext{OnDeadline: "explode"}},
		"negative":       {ID: "ok", Type: "a", Ext: beeyard.Ext{MaxAttempts: -1}},
		"NUL":            {ID: "ok", Type: "a", CreatedBy: "a\x00b"},
		"not UTF-8":      {ID: "ok", Type: "a", TierHint: "\xff"},
		"label":          {ID: "ok", Type: "a", Ext: beeyard.Ext{Labels: []string{"\xff"}}},
		"run id":         {ID: "ok", Type: "a", RunID: "a/b"},
		"duplicate keys": {ID: "ok", Type: "a", Payload: json.RawMessage(`{"a":1,"a":2}`)},
		"no JSON":        {ID: "ok", Type: "a", Payload: json.RawMessage(`{"a":`)},
		"deep":           {ID: "ok", Type: "a", Payload: json.RawMessage(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))},
		"large":          {ID: "ok", Type: "a", Payload: json.RawMessage(`"` + strings.Repeat("x", beeyard.MaxTaskBytes) + `"`)},
		"nil":            nil,
	}
	for _, id := range []string{"../x", "a/b", "..", ".", "", "a\x00b", "/etc/x", `..\x`, "-rf", "x.json",
		strings.Repeat("x", 300), "CON", "a\nb", "é", ".hidden", "a..b", "com1.txt"} {
		bad["id "+id] = &beeyard.Task{ID: id, Type: "a"}
		bad["dependency "+id] = &beeyard.Task{ID: "ok", Type: "a", DependsOn: []string{id}}
	}
	for name, task := range bad {
		got, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("fine"), task}, beeyard.EnqueueOptions{})
		enqIs(t, err, beeyard.ErrUsage)
		if len(got) != 0 {
			t.Errorf("%s: answered %+v", name, got)
		}
	}
	for _, folder := range []string{dirPending, dirHeld} {
		if names := enqNames(t, r, folder); len(names) != 0 {
			t.Errorf("%s/ holds %v", folder, names)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(r.path), "x.json")); err == nil {
		t.Error("a file was written beside the run")
	}
}

func TestEnqueueIsRefusedWhenReadOnly(t *testing.T) {
	r := enqRun(t, Options{})
	ro := enqOpen(t, r.path, Options{ReadOnly: true})
	_, err := ro.Enqueue(enqContext(t), []*beeyard.Task{enqTask("t1")}, beeyard.EnqueueOptions{})
	enqIs(t, err, beeyard.ErrNotAllowed)
	_, err = ro.Prune(enqContext(t), beeyard.PruneOptions{})
	enqIs(t, err, beeyard.ErrNotAllowed)
}

// What may not run yet is where older workers do not look.
func TestEnqueuePlaces(t *testing.T) {
	r := enqRun(t, Options{})
	later := enqTask("later")
	later.Ext.NotBefore = beeyard.FormatTime(time.Now().Add(time.Hour))
	past := enqTask("past")
	past.Ext.NotBefore = beeyard.FormatTime(time.Now().Add(-time.Hour))
	held := enqTask("held")
	held.Ext.Hold = &beeyard.Hold{By: "someone"}
	got, err := r.Enqueue(enqContext(t), []*beeyard.Task{later, past, held, enqTask("plain"), enqTask("blocked", "ghost"), enqTask("after", "plain")},
		beeyard.EnqueueOptions{})
	enqMust(t, err)
	want := map[string]beeyard.State{"later": beeyard.StateWaiting, "past": beeyard.StateReady, "held": beeyard.StateHeld,
		"plain": beeyard.StateReady, "blocked": beeyard.StateBlocked, "after": beeyard.StateBlocked}
	for _, e := range got {
		if e.State != want[e.TaskID] {
			t.Errorf("%s is %s, want %s", e.TaskID, e.State, want[e.TaskID])
		}
	}
	if names := enqNames(t, r, dirHeld); len(names) != 2 {
		t.Errorf("held/ holds %v", names)
	}
	if names := enqNames(t, r, dirPending); len(names) != 4 {
		t.Errorf("pending/ holds %v", names)
	}
	enqFinish(t, r, "plain", beeyard.PlaceDone, beeyard.OutcomeDone)
	got, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("then", "plain")}, beeyard.EnqueueOptions{})
	enqMust(t, err)
	if got[0].State != beeyard.StateReady {
		t.Errorf("a task whose dependency is done is %s", got[0].State)
	}
}
