package spool

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

var chkDamages = map[string]string{
	"empty":              "",
	"NUL":                strings.Repeat("\x00", 4096),
	"cut short":          `{"a":`,
	"bad UTF-8":          "{\"checkpoint\":{\"summary\":\"\xff\xfe\"}}",
	"duplicate keys":     `{"checkpoint":{"summary":"a","summary":"b"}}`,
	"a list":             `[]`,
	"text":               `"status"`,
	"null":               `null`,
	"wrong types":        `{"checkpoint":{"completed_tasks":"t1"}}`,
	"two documents":      `{}{}`,
	"a mark of encoding": "\ufeff{}",
	"merge markers":      "<<<<<<< ours\n{}\n",
}

// chkDoors are all that read or change status.json; each must mend it or, for
// the last two, do without.
var chkDoors = map[string]func(t *testing.T, r *Run){
	"read": func(t *testing.T, r *Run) {
		c, err := r.Checkpoint(chkContext(t))
		chkMust(t, err)
		if !slices.Equal(c.CompletedTasks, []string{"d1", "d2"}) {
			t.Errorf("completed tasks %q", c.CompletedTasks)
		}
	},
	"write": func(t *testing.T, r *Run) {
		_, err := r.WriteCheckpoint(chkContext(t), beeyard.CheckpointEdit{CurrentWorker: chkPtr("w1")})
		chkMust(t, err)
		if c := chkRaw(t, r); *c.CurrentWorker != "w1" {
			t.Errorf("the write is not there: %+v", c)
		}
	},
	"complete": func(t *testing.T, r *Run) { chkMust(t, r.completedNow(chkContext(t), "d2")) },
	"owe": func(t *testing.T, r *Run) {
		r.owe("d1")
		chkMust(t, r.flushOwed(chkContext(t)))
	},
	"failure": func(t *testing.T, r *Run) {
		chkMust(t, r.failureRisk(chkContext(t), "f1", "exit 1"))
		chkMust(t, r.flushOwed(chkContext(t)))
	},
	"reconcile": func(t *testing.T, r *Run) { chkMust(t, r.reconcile(chkContext(t))) },
	"init": func(t *testing.T, r *Run) {
		_, err := r.InitCheckpoint(chkContext(t), beeyard.Checkpoint{})
		chkIs(t, err, beeyard.ErrExists) // never a silent reset
		_, err = r.Checkpoint(chkContext(t))
		chkMust(t, err)
	},
	"set": func(t *testing.T, r *Run) {
		set, err := r.completedSet()
		chkMust(t, err)
		if len(set) > 0 {
			t.Errorf("a damaged file lists %v", set)
		}
		_, err = r.Checkpoint(chkContext(t))
		chkMust(t, err)
	},
}

// Fault "Empty / NUL-filled state after power loss or full disk".
func TestEmptyOrNULFilledStateAfterPowerLoss(t *testing.T) {
	for kind, text := range chkDamages {
		for door, use := range chkDoors {
			if door != "read" && !slices.Contains([]string{"empty", "NUL", "cut short"}, kind) {
				continue // every door for what power cuts leave, one for the rest
			}
			t.Run(kind+"/"+door, func(t *testing.T) {
				var warned chkWarnings
				r := chkRun(t, Options{Warn: warned.warn})
				chkPut(t, r.done, "d2", "d1")
				chkPut(t, r.pending, "p1")
				chkMust(t, os.WriteFile(chkStatusPath(r), []byte(text), 0o600))
				use(t, r)
				c := chkRaw(t, r)
				if !slices.Equal(c.CompletedTasks, []string{"d1", "d2"}) || c.NextTaskID == nil || *c.NextTaskID != "p1" || c.RunID != "named" {
					t.Errorf("rebuilt as %+v", c)
				}
				aside := chkAside(t, r)
				if len(aside) != 1 {
					t.Fatalf("kept aside: %q", aside)
				}
				kept, err := os.ReadFile(aside[0])
				chkMust(t, err)
				if string(kept) != text {
					t.Errorf("the damaged file is not kept as it was: %q", kept)
				}
				name := aside[0][strings.LastIndex(aside[0], "/")+1:]
				if !strings.Contains(c.Risk, "damaged") || !strings.Contains(c.Risk, name) {
					t.Errorf("risk does not say so: %q", c.Risk)
				}
				if warned.has("damaged") == 0 {
					t.Error("nothing was warned of")
				}
				// Once mended, nothing more is kept.
				chkDoors["read"](t, r)
				if n := len(chkAside(t, r)); n != 1 {
					t.Errorf("%d files are kept aside after one more look", n)
				}
				chkNoTemps(t, r.path)
			})
		}
	}
}

// A newer program's file may be whole: it is refused, never rebuilt.
func TestCheckpointUnknownMajorIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"newer":             `{"schema_version":"1.0","checkpoint":{"summary":{"new":"shape"}}}`,
		"much newer":        `{"schema_version":"17"}`,
		"a number":          `{"schema_version":2}`,
		"newer and doubled": `{"schema_version":"1.0","a":1,"a":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := chkRun(t, Options{})
			ctx := chkContext(t)
			chkPut(t, r.done, "d1")
			chkMust(t, os.WriteFile(chkStatusPath(r), []byte(text), 0o600))
			check := func(door string, err error) {
				t.Helper()
				if !errors.Is(err, beeyard.ErrCorrupt) {
					t.Errorf("%s: %v, want ErrCorrupt", door, err)
				} else if beeyard.HintOf(err) == "" || !strings.Contains(err.Error(), "status.json") {
					t.Errorf("%s: %q (hint %q) names no file or no next step", door, err, beeyard.HintOf(err))
				}
			}
			_, err := r.Checkpoint(ctx)
			check("read", err)
			_, err = r.WriteCheckpoint(ctx, beeyard.CheckpointEdit{Summary: chkPtr("x")})
			check("write", err)
			_, err = r.InitCheckpoint(ctx, beeyard.Checkpoint{})
			check("init", err)
			check("complete", r.completedNow(ctx, "d1"))
			check("reconcile", r.reconcile(ctx))
			_, err = r.completedSet()
			check("set", err)
			data, err := os.ReadFile(chkStatusPath(r))
			chkMust(t, err)
			if string(data) != text || len(chkAside(t, r)) > 0 {
				t.Errorf("the file was touched: %q, aside %q", data, chkAside(t, r))
			}
			chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"run_id":"named"}`), 0o600)) // for Close, which still owes d1
		})
	}
}

func TestCheckpointRebuildPointsAtWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		build func(t *testing.T, r *Run)
		want  string // "": null
	}{
		"nothing": {func(t *testing.T, r *Run) { chkPut(t, r.done, "d1") }, ""},
		"held":    {func(t *testing.T, r *Run) { chkPut(t, r.held, "h2", "h1") }, "h1"},
		"blocked": {func(t *testing.T, r *Run) {
			chkPut(t, r.held, "a")
			chkMust(t, durable.WriteFile(r.pending, "b.json", chkBody(t, "b", "ghost"), fileMode))
		}, "b"},
		"ready": {func(t *testing.T, r *Run) {
			chkMust(t, durable.WriteFile(r.pending, "b.json", chkBody(t, "b", "ghost"), fileMode))
			chkPut(t, r.pending, "z", "r")
			chkMust(t, durable.WriteFile(r.pending, "a.json", []byte("{"), fileMode))
		}, "r"},
		"first in the queue's order": {func(t *testing.T, r *Run) {
			chkPut(t, r.pending, "r")
			task := beeyard.Task{ID: "urgent", Type: "t", CreatedAt: "2027-01-01T00:00:00Z", Ext: beeyard.Ext{Priority: 5}}
			body, err := task.Encode()
			chkMust(t, err)
			chkMust(t, durable.WriteFile(r.pending, "urgent.json", body, fileMode))
		}, "urgent"},
		"claimed": {func(t *testing.T, r *Run) {
			chkPut(t, r.pending, "a")
			for _, d := range []string{"w1~aaaaaaaaaaaaaaaa", "older"} {
				chkMust(t, os.MkdirAll(r.path+"/claimed/"+d, 0o700))
			}
			chkMust(t, os.WriteFile(r.path+"/claimed/w1~aaaaaaaaaaaaaaaa/x~taken.abcdefgh", chkBody(t, "x"), 0o600))
			chkMust(t, os.WriteFile(r.path+"/claimed/older/y.json", chkBody(t, "y"), 0o600))
		}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := chkRun(t, Options{})
			c.build(t, r)
			chkMust(t, os.WriteFile(chkStatusPath(r), nil, 0o600))
			got, err := r.Checkpoint(chkContext(t))
			chkMust(t, err)
			if c.want == "" && got.NextTaskID != nil || c.want != "" && (got.NextTaskID == nil || *got.NextTaskID != c.want) {
				t.Errorf("next_task_id is %v, want %q", got.NextTaskID, c.want)
			}
		})
	}
}

func TestCheckpointDamagedReadOnly(t *testing.T) {
	r := chkRun(t, Options{})
	chkPut(t, r.done, "d1")
	chkMust(t, os.WriteFile(chkStatusPath(r), nil, 0o600))
	ro := chkOpen(t, r.path, Options{ReadOnly: true}, clock.Real())
	c, err := ro.Checkpoint(chkContext(t))
	chkMust(t, err)
	if !slices.Equal(c.CompletedTasks, []string{"d1"}) || !strings.Contains(c.Risk, "damaged") || c.RunID != "named" {
		t.Errorf("shown as %+v", c)
	}
	if data, err := os.ReadFile(chkStatusPath(r)); len(data) > 0 || err != nil || len(chkAside(t, r)) > 0 {
		t.Errorf("a reader wrote: %q, %v, aside %q", data, err, chkAside(t, r))
	}
}

// Many who find the damage at once mend it once.
func TestCheckpointMendedOnce(t *testing.T) {
	r := chkRun(t, Options{})
	chkPut(t, r.done, "d1")
	chkMust(t, os.WriteFile(chkStatusPath(r), []byte("{"), 0o600))
	ctx := chkContext(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := r.Checkpoint(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if aside := chkAside(t, r); len(aside) != 1 {
		t.Errorf("kept aside: %q", aside)
	}
}

// Whatever step of the mending fails or is the last before a crash: there is a
// status.json at every moment, and it is the damaged one or a whole new one.
func TestCheckpointMendingCutAnywhere(t *testing.T) {
	for cut := 0; ; cut++ {
		var hook chkHook
		r := chkRun(t, hook.options())
		chkPut(t, r.done, "d1")
		chkMust(t, os.WriteFile(chkStatusPath(r), []byte(`{"a":`), 0o600))
		n, done := 0, false
		hook.set(func(op durable.Op) error {
			if data, err := os.ReadFile(chkStatusPath(r)); err != nil || string(data) != `{"a":` && !bytes.HasSuffix(data, []byte("}\n")) {
				t.Errorf("before step %d (%+v): status.json is %q, %v", n, op, data, err)
			}
			if n++; n > cut && !done && op.Op != durable.OpCloseDir && op.Op != durable.OpClose {
				return os.ErrDeadlineExceeded // dead from here on
			}
			return nil
		})
		_, err := r.Checkpoint(chkContext(t))
		hook.set(nil)
		if err == nil {
			if cut < 10 {
				t.Errorf("all was done after %d steps: the hook saw too little", cut)
			}
			return
		}
		c, err := r.Checkpoint(chkContext(t))
		chkMust(t, err)
		if !slices.Equal(c.CompletedTasks, []string{"d1"}) || len(chkAside(t, r)) == 0 {
			t.Errorf("cut after %d: %+v, aside %q", cut, c, chkAside(t, r))
		}
	}
}
