package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

func doctorRun(t *testing.T, r *Run, o DoctorOptions) DoctorReport {
	t.Helper()
	rep, err := r.Doctor(viewContext(t), o)
	viewMust(t, err)
	return rep
}

func doctorFind(rep DoctorReport, code string) []Finding {
	var out []Finding
	for _, f := range rep.Findings {
		if f.Code == code {
			out = append(out, f)
		}
	}
	return out
}

// doctorWant checks that exactly one finding of the code has all the words.
func doctorWant(t *testing.T, rep DoctorReport, code string, severity Severity, words ...string) Finding {
	t.Helper()
	n := 0
	var hit Finding
	for _, f := range doctorFind(rep, code) {
		all := f.Subject + " " + f.Detail
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(all, w) }) {
			n++
			hit = f
		}
	}
	if n != 1 || hit.Severity != severity {
		t.Errorf("%s with %v: found %d times, severity %q; all: %+v", code, words, n, hit.Severity, doctorFind(rep, code))
	}
	return hit
}

// What a sound run shows besides: where it lies.
var doctorUsual = map[string]bool{"fs": true, "fs-no-journal": true, "fs-memory": true, "fs-unmeasured": true, "fs-network": true, "folder-permissions": true, "folder-link": true}

func TestDoctorOfASoundRun(t *testing.T) {
	r := viewRun(t, Options{})
	w, err := r.Attach(viewContext(t), beeyard.WorkerSpec{ID: "w1"})
	viewMust(t, err)
	tasks := []*beeyard.Task{{ID: "a", Type: "work"}, {ID: "b", Type: "work", DependsOn: []string{"a"}}, {ID: "c", Type: "work", Ext: beeyard.Ext{Hold: &beeyard.Hold{}}}}
	_, err = r.Enqueue(viewContext(t), tasks, beeyard.EnqueueOptions{})
	viewMust(t, err)
	c, err := w.Claim(viewContext(t), beeyard.Filter{})
	viewMust(t, err)
	_, err = w.Settle(viewContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	viewMust(t, err)
	viewMust(t, w.Flush(viewContext(t)))
	if c, err = w.Claim(viewContext(t), beeyard.Filter{}); err != nil || c == nil {
		t.Fatal(c, err)
	}
	before := viewTree(t, r.path)
	var checks []string
	rep := doctorRun(t, r, DoctorOptions{Fix: true, Progress: func(check string, _, _ int) { checks = append(checks, check) },
		Extra: []Finding{{Code: "sandbox", Severity: Info, Detail: "landlock"}}})
	for _, f := range rep.Findings {
		if !doctorUsual[f.Code] && f.Code != "sandbox" {
			t.Errorf("a sound run: %+v", f)
		}
	}
	if len(doctorFind(rep, "fs")) != 1 || len(doctorFind(rep, "sandbox")) != 1 || len(checks) < 10 {
		t.Errorf("report %+v, progress %v", rep, checks)
	}
	after := viewTree(t, r.path)
	for name, data := range before {
		if after[name] != data {
			t.Errorf("%s changed", name)
		}
	}
	viewMust(t, w.Close(viewContext(t)))
}

// doctorSick has one of everything.
func doctorSick(t *testing.T) *Run {
	r := viewRun(t, Options{})
	copyOf := func(folder, id string, rev int64, uid string) {
		task := viewTask(id)
		task.Ext.Rev, task.Ext.UID = rev, uid
		viewPut(t, r, folder, task)
	}
	copyOf(dirPending, "left", 1, "a") // the same life ended
	copyOf(dirDone, "left", 2, "a")
	copyOf(dirDone, "redone", 1, "a") // ended, and run again since
	hold := func(task *beeyard.Task) *beeyard.Task {
		task.Ext.Hold = &beeyard.Hold{}
		return task
	}
	redone := hold(viewTask("redone"))
	redone.Ext.Rev, redone.Ext.UID = 3, "a"
	viewPut(t, r, dirHeld, redone)
	copyOf(dirPending, "lives", 0, "b")
	copyOf(dirDone, "lives", 1, "a")
	viewPut(t, r, dirPending, viewTask("c1", "c2"))
	viewPut(t, r, dirPending, viewTask("c2", "c3"))
	viewPut(t, r, dirHeld, hold(viewTask("c3", "c1")))
	viewPut(t, r, dirPending, viewTask("self", "self"))
	viewPut(t, r, dirPending, viewTask("wants", "ghost", "left", "pruned", "listed", "archived"))
	viewPut(t, r, ".beeyard/archive", viewTask("archived"))
	viewPutRaw(t, r, dirMeta, filePruned, []byte(`{"id":"pruned","outcome":"done"}`+"\n"))
	viewMust(t, r.completedNow(viewContext(t), "left", "lives"))
	cp, err := r.Checkpoint(viewContext(t))
	viewMust(t, err)
	cp.CompletedTasks = append(cp.CompletedTasks, "listed")
	data, err := cp.Encode()
	viewMust(t, err)
	viewPutRaw(t, r, ".", fileStatus, data)
	copyOf(dirDone, "unlisted", 1, "a")
	viewPut(t, r, dirPending, viewTask("Twin"))
	viewPut(t, r, dirPending, viewTask("twin"))
	viewPut(t, r, dirPending, viewTask("caf\u00e9"))
	viewPut(t, r, dirPending, viewTask("cafe\u0301"))
	never := viewTask("never")
	never.Ext.NotBefore = "tomorrow"
	viewPut(t, r, dirHeld, never)
	due := viewTask("due")
	due.Ext.NotBefore = "2026-01-01T00:00:00Z"
	viewPut(t, r, dirHeld, due)
	viewPutRaw(t, r, dirPending, "broken.json", []byte("{"))
	viewPutRaw(t, r, dirFailed, "torn.json", []byte("\x00\x00"))
	viewPutRaw(t, r, dirQuarantine, "odd.json", []byte("["))
	viewPutRaw(t, r, dirQuarantine, reasonName("odd.json"), []byte("it is a list"))
	viewPutRaw(t, r, dirQuarantine, lateName("x", "abcd1234", "json"), []byte("{}"))
	viewPutRaw(t, r, dirArtifacts, lateName("x", "abcd1234", "md"), []byte("late"))
	viewPutRaw(t, r, dirPending, "readme.txt", []byte("hello"))
	viewMust(t, os.Symlink("/etc/hostname", filepath.Join(r.path, dirPending, "link.json")))
	viewMust(t, os.Symlink("/etc", filepath.Join(r.path, dirClaimed, "evil")))
	viewMust(t, syscall.Mkfifo(filepath.Join(r.path, dirDone, "pipe.json"), 0o600))
	viewMust(t, os.Chmod(filepath.Join(r.path, dirDone), 0o770))
	dead := viewClaim(t, r, "gone", false, viewTask("orphan"))
	body, err := viewTask("half").Encode()
	viewMust(t, err)
	viewPutRaw(t, r, "claimed/"+dead, tagged("lost", tagRecord, "abcd1234"), body)
	viewPutRaw(t, r, ".", fileStatus+".corrupt-20260101T000000.000000Z", []byte("{"))
	return r
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	r := doctorSick(t)
	rep := doctorRun(t, r, DoctorOptions{})
	doctorWant(t, rep, "copy", Warn, "left", "pending/left.json (rev 1)", "done/left.json (rev 2), which counts")
	doctorWant(t, rep, "copy", Warn, "redone", "done/redone.json (rev 1)", "held/redone.json (rev 3), which counts")
	doctorWant(t, rep, "two-lives", Warn, "lives", "pending/", "done/")
	if f := doctorFind(rep, "dependency-cycle"); len(f) != 2 {
		t.Errorf("cycles: %+v", f)
	}
	doctorWant(t, rep, "dependency-cycle", Bad, "c1 → c2 → c3 → c1", "c1")
	doctorWant(t, rep, "dependency-cycle", Bad, "self → self")
	doctorWant(t, rep, "dangling-dependency", Bad, "ghost", `"wants"`)
	if f := doctorFind(rep, "dangling-dependency"); len(f) != 1 {
		t.Errorf("dangling: %+v", f)
	}
	doctorWant(t, rep, "completed-without-record", Warn, "listed")
	doctorWant(t, rep, "checkpoint-behind", Info, `"unlisted"`)
	doctorWant(t, rep, "checkpoint-kept", Info, "corrupt-2026")
	if f := doctorFind(rep, "ids-alike"); len(f) != 2 {
		t.Errorf("alike: %+v", f)
	}
	doctorWant(t, rep, "ids-alike", Warn, `"Twin", "twin"`)
	doctorWant(t, rep, "unreadable-time", Bad, "never", "tomorrow")
	doctorWant(t, rep, "due", Info, "to look: 1")
	doctorWant(t, rep, "unreadable-task", Warn, "pending/broken.json")
	doctorWant(t, rep, "unreadable-record", Bad, "failed/torn.json")
	doctorWant(t, rep, "quarantined", Warn, "odd.json", "it is a list")
	doctorWant(t, rep, "kept-aside", Info, "quarantine")
	doctorWant(t, rep, "kept-aside", Info, "artifacts")
	doctorWant(t, rep, "foreign-file", Info, "pending/readme.txt")
	doctorWant(t, rep, "link", Warn, "pending/link.json")
	doctorWant(t, rep, "link", Warn, "evil")
	doctorWant(t, rep, "not-a-file", Warn, "done/pipe.json", "FIFO")
	doctorWant(t, rep, "folder-permissions", Warn, "/done", "0770")
	doctorWant(t, rep, "expired-claim", Warn, "orphan", "gone")
	doctorWant(t, rep, "claim-leftover", Info, "lost~out.abcd1234")
	if rep.Worst() != Bad {
		t.Errorf("worst %q", rep.Worst())
	}
	if !slices.IsSortedFunc(rep.Findings, func(a, b Finding) int { return b.Severity.weight() - a.Severity.weight() }) {
		t.Error("the worst does not come first")
	}
	for _, f := range rep.Findings {
		if f.Fixed || f.Detail == "" {
			t.Errorf("looking fixed something, or says nothing: %+v", f)
		}
		for _, word := range []string{"rm ", "--force", "delete", "unlink", "git "} {
			if strings.Contains(strings.ToLower(f.Fix), word) {
				t.Errorf("%s tells to destroy: %q", f.Code, f.Fix)
			}
		}
	}
}

func TestDoctorClockSkew(t *testing.T) {
	r := viewRun(t, Options{})
	if f := doctorFind(doctorRun(t, r, DoctorOptions{}), "clock-skew"); len(f) != 0 {
		t.Errorf("one clock: %+v", f)
	}
	r.clk = clock.NewFake(time.Now().Add(-time.Hour))
	doctorWant(t, doctorRun(t, r, DoctorOptions{}), "clock-skew", Warn, "differ by")
}

func TestDoctorLooksAtARunThatMayNotBeWritten(t *testing.T) {
	r := doctorSick(t)
	viewMust(t, os.Remove(filepath.Join(r.path, dirDone, "pipe.json")))
	viewMust(t, os.Remove(filepath.Join(r.path, dirClaimed, "evil")))
	ro, err := Open(r.path, Options{Host: viewHost(), ReadOnly: true}, clock.Real())
	viewMust(t, err)
	defer ro.Close()
	before := viewTree(t, r.path)
	rep := doctorRun(t, ro, DoctorOptions{})
	doctorWant(t, rep, "dangling-dependency", Bad, "ghost")
	doctorWant(t, rep, "expired-claim", Warn, "orphan", "gone")
	if after := viewTree(t, r.path); len(after) != len(before) {
		t.Error("a file came or went")
	}
	if _, err := ro.Doctor(viewContext(t), DoctorOptions{Fix: true}); err == nil {
		t.Error("fixing what may not be written")
	}
}

// Whose death cannot be proven is judged by time alone; a stopped one lives.
func TestDoctorJudgesClaimers(t *testing.T) {
	r := viewRun(t, Options{})
	viewClaim(t, r, "alive", true, viewTask("running"))
	viewClaim(t, r, "halted", true, viewTask("paused"))
	viewPut(t, r, "claimed/older", viewTask("silent"))
	viewPutRaw(t, r, "claimed/older", fileBeat, nil)
	r.host.Stopped = func(int, uint64) bool { return true }
	rep := doctorRun(t, r, DoctorOptions{})
	if f := doctorFind(rep, "expired-claim"); len(f) != 0 {
		t.Errorf("fresh beats: %+v", f)
	}
	doctorWant(t, rep, "stopped-worker", Warn, "paused", "halted")
	r.host.Stopped = nil
	viewMust(t, os.Chtimes(filepath.Join(r.path, "claimed/older", fileBeat), time.Now().Add(time.Hour), time.Now().Add(time.Hour)))
	doctorWant(t, doctorRun(t, r, DoctorOptions{}), "beat-ahead", Warn, "silent")
	viewAge(t, r, "claimed/older", fileBeat, time.Hour)
	// The claim itself counts as a beat, so the clock must pass both.
	d := &doctor{r: r, o: DoctorOptions{StaleAfter: time.Minute}, count: map[string]int{}, now: time.Now().Add(2 * time.Minute)}
	viewMust(t, d.claims(viewContext(t)))
	if len(d.out) != 1 || d.out[0].Code != "expired-claim" || d.out[0].Subject != "silent" {
		t.Errorf("after the limit: %+v", d.out)
	}
}

func TestDoctorBoundsItsFindings(t *testing.T) {
	r := viewRun(t, Options{})
	for i := range perCode + 50 {
		viewPut(t, r, dirPending, viewTask(viewName(i), fmt.Sprintf("ghost-%d", i)))
	}
	f := doctorFind(doctorRun(t, r, DoctorOptions{}), "dangling-dependency")
	if len(f) != perCode+1 || !strings.Contains(f[perCode].Detail, "50 more") {
		t.Errorf("%d findings, the last %+v", len(f), f[len(f)-1])
	}
}

// doctorFS is a folder on whatever file system a test says.
type doctorFS struct {
	durable.Dir
	kind durable.FS
}

func (d doctorFS) FSKind() (durable.FS, error) { return d.kind, nil }

func TestDoctorSaysWhatTheFileSystemPromises(t *testing.T) {
	for _, c := range []struct {
		kind durable.FS
		want []string
	}{
		{durable.FS{Name: "ext4", MountPoint: "/x", Journal: durable.JournalYes, CrashAtomicRename: true}, []string{"fs"}},
		{durable.FS{Name: "ext4", Journal: durable.JournalNone}, []string{"fs", "fs-no-journal"}},
		{durable.FS{Name: "tmpfs", Memory: true, Journal: durable.JournalNone}, []string{"fs", "fs-memory"}},
		{durable.FS{Name: "nfs4", Network: true}, []string{"fs", "fs-network"}},
		{durable.FS{Name: "zfs"}, []string{"fs", "fs-unmeasured"}},
	} {
		r := viewRun(t, Options{})
		real := r.root
		r.root = doctorFS{real, c.kind}
		d := &doctor{r: r, count: map[string]int{}}
		viewMust(t, d.fileSystem(viewContext(t)))
		r.root = real
		var got []string
		for _, f := range d.out {
			if f.Code != "fs-split" { // of two kinds of Dir no mount can be compared
				got = append(got, f.Code)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.kind, got, c.want)
		}
	}
}
