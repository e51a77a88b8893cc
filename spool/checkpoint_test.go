package spool

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
)

func TestCheckpointJoinsDone(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	chkPut(t, r.done, "z", "b", "m")
	chkMust(t, r.completedNow(ctx, "z", "b"))
	before, err := os.ReadFile(chkStatusPath(r))
	chkMust(t, err)
	chkPut(t, r.done, "a")
	c, err := r.Checkpoint(ctx)
	chkMust(t, err)
	if want := []string{"z", "b", "a", "m"}; !slices.Equal(c.CompletedTasks, want) {
		t.Errorf("completed tasks %q, want those of the file first and the rest by name: %q", c.CompletedTasks, want)
	}
	after, err := os.ReadFile(chkStatusPath(r))
	chkMust(t, err)
	if string(before) != string(after) {
		t.Error("looking has changed the file")
	}
	// What a caller does with his copy is his own.
	c.CompletedTasks[0] = "changed"
	c.Metadata["k"] = []byte("1")
	again, err := r.Checkpoint(ctx)
	chkMust(t, err)
	if again.CompletedTasks[0] != "z" || again.Metadata["k"] != nil {
		t.Errorf("two readers share %+v", again)
	}
}

func TestCheckpointWriteKeeps(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"schema_version":"0.x","run_id":"named","theirs":{"a":1},
		"checkpoint":{"summary":"s","next_step":"n","next_task_id":"t9","risk":"","resume_command":"go on","extra":[1]},
		"metadata":{"keep":true,"change":1}}`), 0o640))
	chkMust(t, os.Chmod(chkStatusPath(r), 0o640))
	c, err := r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("now <this>"), Metadata: map[string]json.RawMessage{"change": []byte("2"), "new": []byte(`"x"`)}})
	chkMust(t, err)
	chkPut(t, r.done, "t1")
	chkMust(t, r.completedNow(ctx, "t1"))
	raw := chkRaw(t, r)
	if raw.Summary != "now <this>" || raw.NextStep != "n" || *raw.NextTaskID != "t9" || *raw.ResumeCommand != "go on" {
		t.Errorf("what was not named is not kept: %+v", raw)
	}
	if string(raw.Metadata["keep"]) != "true" || string(raw.Metadata["change"]) != "2" || string(raw.Metadata["new"]) != `"x"` {
		t.Errorf("metadata is not merged: %s", raw.Metadata)
	}
	if raw.Unknown["theirs"] == nil || raw.UnknownCheckpoint["extra"] == nil {
		t.Error("another program's keys are gone")
	}
	if raw.SchemaVersion != beeyard.SchemaVersion || c.SchemaVersion != beeyard.SchemaVersion {
		t.Errorf("schema %q was written, %q answered", raw.SchemaVersion, c.SchemaVersion)
	}
	info, err := os.Stat(chkStatusPath(r))
	chkMust(t, err)
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode became %v: who read the file can no longer", info.Mode())
	}
	c, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Complete: true})
	chkMust(t, err)
	if c.NextTaskID != nil || chkRaw(t, r).NextTaskID != nil {
		t.Error("complete did not set next_task_id to null")
	}
	chkNoTemps(t, r.path)
}

// A write that is based on an old revision is refused, whoever was faster: a
// write, a completion, or an older program.
func TestCheckpointCompareAndSwap(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	first, err := r.Checkpoint(ctx)
	chkMust(t, err)
	second, err := r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("two"), IfRevision: first.Revision})
	chkMust(t, err)
	read, err := r.Checkpoint(ctx)
	chkMust(t, err)
	if read.Revision != second.Revision || read.Revision == first.Revision {
		t.Errorf("revisions: first %s, written %s, read %s", first.Revision, second.Revision, read.Revision)
	}
	refused := func(why, revision string) {
		t.Helper()
		before, err := os.ReadFile(chkStatusPath(r))
		chkMust(t, err)
		_, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("lost"), IfRevision: revision})
		chkIs(t, err, beeyard.ErrConflict)
		after, err := os.ReadFile(chkStatusPath(r))
		chkMust(t, err)
		if string(before) != string(after) {
			t.Errorf("%s: a refused write changed the file", why)
		}
	}
	refused("another write came first", first.Revision)
	chkPut(t, r.done, "t1")
	chkMust(t, r.completedNow(ctx, "t1"))
	refused("a completion came first", second.Revision)
	now, err := r.Checkpoint(ctx)
	chkMust(t, err)
	data, err := os.ReadFile(chkStatusPath(r))
	chkMust(t, err)
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte(strings.Replace(string(data), "two", "2wo", 1)), 0o600))
	refused("an edit in place, of equal size", now.Revision)
}

func TestCheckpointInit(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	_, err := r.InitCheckpoint(ctx, beeyard.Checkpoint{})
	chkIs(t, err, beeyard.ErrExists)
	chkMust(t, os.Remove(chkStatusPath(r)))
	_, err = r.Checkpoint(ctx)
	chkIs(t, err, beeyard.ErrNotFound)
	if _, err := r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{IfRevision: "ab"}); err == nil {
		t.Error("a revision of a file that is gone was current")
	}
	chkPut(t, r.done, "a", "b", "c")
	c, err := r.InitCheckpoint(ctx, beeyard.Checkpoint{CompletedTasks: []string{"c", "ghost", "a", "c"}})
	chkMust(t, err)
	if c.RunID != "named" || c.Timestamp == "" || c.Revision == "" {
		t.Errorf("made %+v", c)
	}
	chkListed(t, r, "c", "a", "b") // the given order, none that is not done (invariant 9)
	chkMust(t, os.Remove(chkStatusPath(r)))
	_, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("made by a write")})
	chkMust(t, err)
	chkListed(t, r, "a", "b", "c")
}

func TestCheckpointRefusesBadEdits(t *testing.T) {
	r := chkRun(t, Options{})
	for name, e := range map[string]beeyard.CheckpointEdit{
		"not UTF-8":         {Summary: chkPtr("\xff")},
		"NUL":               {Risk: chkPtr("a\x00b")},
		"too large":         {NextStep: chkPtr(strings.Repeat("x", maxCheckpointText+1))},
		"path as next task": {NextTaskID: chkPtr("../x")},
		"next and complete": {NextTaskID: chkPtr("t1"), Complete: true},
		"metadata":          {Metadata: map[string]json.RawMessage{"k": []byte(`{"a":1,"a":2}`)}},
	} {
		if _, err := r.WriteCheckpoint(chkContext(t), e); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			chkIs(t, err, beeyard.ErrUsage)
		}
	}
	if chkRaw(t, r).Summary != "began" {
		t.Error("a refused write changed the file")
	}
}

func TestCheckpointReadOnly(t *testing.T) {
	r := chkRun(t, Options{})
	chkPut(t, r.done, "a")
	ro := chkOpen(t, r.path, Options{ReadOnly: true}, clock.Real())
	c, err := ro.Checkpoint(chkContext(t))
	chkMust(t, err)
	if !slices.Equal(c.CompletedTasks, []string{"a"}) {
		t.Errorf("completed tasks %q", c.CompletedTasks)
	}
	_, err = ro.WriteCheckpoint(chkContext(t), beeyard.CheckpointEdit{})
	chkIs(t, err, beeyard.ErrNotAllowed)
	ro.owe("a")
	chkMust(t, ro.flushOwed(chkContext(t)))
	chkMust(t, ro.reconcile(chkContext(t)))
	chkListed(t, r)
}

func TestCheckpointIsNoLink(t *testing.T) {
	r := chkRun(t, Options{})
	chkMust(t, os.Rename(chkStatusPath(r), r.path+"/elsewhere.json"))
	chkMust(t, os.Symlink("elsewhere.json", chkStatusPath(r)))
	_, err := r.Checkpoint(chkContext(t))
	chkIs(t, err, beeyard.ErrNotAllowed)
	_, err = r.WriteCheckpoint(chkContext(t), beeyard.CheckpointEdit{Summary: chkPtr("x")})
	chkIs(t, err, beeyard.ErrNotAllowed)
	if info, err := os.Lstat(chkStatusPath(r)); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
}

func TestCheckpointNotes(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	if s, err := r.Note(ctx, "BACKLOG.md"); s != "" || err != nil {
		t.Errorf("absent: %q, %v", s, err)
	}
	chkMust(t, os.WriteFile(r.path+"/BACKLOG.md", []byte("first\xff <b>"), 0o600))
	if s, err := r.Note(ctx, "BACKLOG.md"); s != "first\uFFFD <b>" || err != nil {
		t.Errorf("read %q, %v", s, err)
	}
	for _, name := range []string{"status.json", "../BACKLOG.md", ""} {
		_, err := r.Note(ctx, name)
		chkIs(t, err, beeyard.ErrUsage)
	}
	chkMust(t, os.Symlink("/etc/hostname", r.path+"/portrait.md"))
	_, err := r.Note(ctx, "portrait.md")
	chkIs(t, err, beeyard.ErrNotAllowed)
}

// The run's id is read at every start of every command.
func TestCheckpointRunID(t *testing.T) {
	r := chkRun(t, Options{})
	chkPut(t, r.pending, "p1")
	for text, want := range map[string]string{
		`{"run_id":"x"}`: "x",
		`{"checkpoint":{"run_id":"no"},"run_id":"y"}`:    "y",
		`{"schema_version":"0.1","run_id":"z","checkp`:   "z",
		`{"schema_version":"0.1"}`:                       "folder",
		`{"run_id":null}`:                                "folder",
		`{"run_id":7}`:                                   "folder",
		`{"run_id":"` + strings.Repeat("x", 2000) + `"}`: "folder",
		``:               "named", // what a task of the run says
		"\x00\x00\x00":   "named",
		`{"schema_versi`: "named",
	} {
		chkMust(t, os.WriteFile(chkStatusPath(r), []byte(text), 0o600))
		if got := r.readRunID(); got != want {
			t.Errorf("%.60q: run id %q, want %q", text, got, want)
		}
	}
}
