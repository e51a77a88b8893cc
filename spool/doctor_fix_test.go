package spool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"beeyard"
)

// Neither looking nor a dry run changes a file, whatever is wrong.
func TestDoctorDryRunChangesNothing(t *testing.T) {
	r := doctorSick(t)
	old := ".tmp~x~aaaabbbbccccdddd"
	viewPutRaw(t, r, dirPending, old, []byte("{"))
	viewMust(t, os.Remove(filepath.Join(r.path, dirDone, "pipe.json"))) // it would block the comparison
	viewMust(t, os.Remove(filepath.Join(r.path, dirClaimed, "evil")))
	doctorRun(t, r, DoctorOptions{}) // makes .beeyard/clock and the index
	before := viewTree(t, r.path)
	doctorRun(t, r, DoctorOptions{Fix: true, DryRun: true})
	after := viewTree(t, r.path)
	for name := range before {
		if before[name] != after[name] {
			t.Errorf("%s changed", name)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d files became %d", len(before), len(after))
	}
}

func TestDoctorFixes(t *testing.T) {
	r := doctorSick(t)
	before := viewTreeBodies(t, r)
	rep := doctorRun(t, r, DoctorOptions{Fix: true})
	for _, code := range []string{"copy", "due", "checkpoint-behind"} {
		for _, f := range doctorFind(rep, code) {
			if !f.Fixed {
				t.Errorf("%+v", f)
			}
		}
	}
	again := doctorRun(t, r, DoctorOptions{})
	for _, code := range []string{"copy", "due", "checkpoint-behind", "stray-temp", "unfinished-settle"} {
		if f := doctorFind(again, code); len(f) > 0 {
			t.Errorf("after fixing: %+v", f)
		}
	}
	// What counts is untouched, and what does not is kept.
	for id, place := range map[string]beeyard.Place{"left": beeyard.PlaceDone, "redone": beeyard.PlaceHeld, "lives": beeyard.PlacePending, "due": beeyard.PlacePending} {
		if v, err := r.Get(viewContext(t), id); err != nil || v.Place != place {
			t.Errorf("%s: %+v, %v", id, v, err)
		}
	}
	after := viewTreeBodies(t, r)
	for body, n := range before {
		if after[body] < n {
			t.Errorf("a body is gone: %s", body)
		}
	}
}

// viewTreeBodies counts the contents of task files, wherever they lie.
func viewTreeBodies(t *testing.T, r *Run) map[string]int {
	t.Helper()
	bodies := map[string]int{}
	for _, dir := range []string{dirPending, dirHeld, dirDone, dirFailed, dirQuarantine, dirClaimed} {
		viewMust(t, filepath.WalkDir(filepath.Join(r.path, dir), func(p string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(p, ".json") {
				return err
			}
			data, err := os.ReadFile(p)
			bodies[string(data)]++
			return err
		}))
	}
	return bodies
}

func TestDoctorRemovesOldTempsOnly(t *testing.T) {
	r := viewRun(t, Options{})
	ours, young, theirs := ".tmp~a~aaaabbbbccccdddd", ".tmp~b~aaaabbbbccccdddd", ".x.json.swp"
	for _, n := range []string{ours, young, theirs} {
		viewPutRaw(t, r, dirPending, n, []byte("{"))
		viewAge(t, r, dirPending, n, 2*time.Hour)
	}
	// The change time cannot be set back; so the clock goes forward instead.
	d := &doctor{r: r, o: DoctorOptions{Fix: true}, count: map[string]int{}, now: time.Now().Add(2 * time.Hour)}
	viewPutRaw(t, r, dirPending, young, []byte("{}"))
	at := time.Now().Add(90 * time.Minute)
	viewMust(t, os.Chtimes(filepath.Join(r.path, dirPending, young), at, at))
	viewMust(t, d.temps(viewContext(t)))
	if len(d.out) != 1 || !d.out[0].Fixed || !strings.Contains(d.out[0].Subject, ours) {
		t.Errorf("findings %+v", d.out)
	}
	tree := viewTree(t, filepath.Join(r.path, dirPending))
	if _, there := tree[ours]; there || len(tree) != 2 {
		t.Errorf("left: %v", tree)
	}
}

// A decision that nobody carried out is finished: the task is done, once.
func TestDoctorFinishesDecidedClaims(t *testing.T) {
	r := viewRun(t, Options{})
	viewPut(t, r, dirPending, viewTask("t1"))
	dir := viewClaim(t, r, "w1", false)
	cd, err := r.claimed.OpenDir(dir)
	viewMust(t, err)
	defer cd.Close()
	viewMust(t, r.pending.Rename("t1.json", cd, "t1.json"))
	old, _, err := readTask(cd, "t1.json", "t1")
	viewMust(t, err)
	worker, n, _ := beeyard.ParseClaimDir(dir)
	next, err := old.Settle(beeyard.Settlement{Outcome: beeyard.OutcomeDone}, beeyard.Token{Worker: worker, Nonce: n}.String(), time.Now(), 0)
	viewMust(t, err)
	data, err := next.Encode()
	viewMust(t, err)
	viewPutRaw(t, r, "claimed/"+dir, tagged("t1", tagRecord, "abcd1234"), data)
	viewMust(t, cd.Rename("t1.json", cd, tagged("t1", tagTaken, "abcd1234")))
	d := &doctor{r: r, o: DoctorOptions{Fix: true, StaleAfter: time.Minute}, count: map[string]int{}, now: time.Now().Add(time.Minute)}
	viewMust(t, d.claims(viewContext(t)))
	if len(d.out) == 0 || d.out[0].Code != "unfinished-settle" || !d.out[0].Fixed {
		t.Fatalf("findings %+v", d.out)
	}
	if v, err := r.Get(viewContext(t), "t1"); err != nil || v.State != beeyard.StateDone || v.Task.Ext.Rev != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestDoctorRepairsTheCheckpoint(t *testing.T) {
	for name, damage := range map[string]string{"empty": "", "NUL": strings.Repeat("\x00", 4096), "torn": `{"a":`} {
		r := viewRun(t, Options{})
		viewPut(t, r, dirDone, viewTask("t1"))
		viewPutRaw(t, r, ".", fileStatus, []byte(damage))
		doctorWant(t, doctorRun(t, r, DoctorOptions{}), "checkpoint-damaged", Bad, fileStatus)
		if data, err := os.ReadFile(filepath.Join(r.path, fileStatus)); err != nil || string(data) != damage {
			t.Errorf("%s: looking changed it: %q, %v", name, data, err)
		}
		if f := doctorWant(t, doctorRun(t, r, DoctorOptions{Fix: true}), "checkpoint-damaged", Bad, fileStatus); !f.Fixed {
			t.Errorf("%s: %+v", name, f)
		}
		rep := doctorRun(t, r, DoctorOptions{})
		if len(doctorFind(rep, "checkpoint-damaged")) != 0 || len(doctorFind(rep, "checkpoint-kept")) != 1 {
			t.Errorf("%s: after the repair %+v", name, rep.Findings)
		}
		c, err := r.Checkpoint(viewContext(t))
		if err != nil || !slices.Equal(c.CompletedTasks, []string{"t1"}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
