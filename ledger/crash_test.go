package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fileCalls are the system calls at which a writer is killed.
var fileCalls = []string{"openat", "mkdirat", "flock", "read", "pread64", "write", "pwrite64", "fstat", "newfstatat", "fchmodat",
	"fchmod", "fchown", "fchownat", "fsync", "fdatasync", "close", "linkat", "renameat", "renameat2", "unlinkat", "getdents64"}

var traced = regexp.MustCompile(`^(?:\d+ +)?(\w+)\(`)

// TestKilledAtEveryCall kills a real process at each file system call of each
// change, from the first that reaches the ledger's folder: the file holds the
// old document or the new one, nothing private is anywhere, and the next writer
// goes on.
func TestKilledAtEveryCall(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIP: no strace here")
	}
	if out, err := exec.Command(strace, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("SKIP: strace may not trace: %v %s", err, out)
	}
	total := 0
	for name := range mutations {
		t.Run(name, func(t *testing.T) {
			k := killer{t: t, strace: strace, op: name, dir: t.TempDir()}
			total += k.run()
		})
	}
	t.Run("merge", func(t *testing.T) {
		k := killer{t: t, strace: strace, op: "merge", dir: t.TempDir(), side: t.TempDir()}
		theirs := crashLedger()
		theirs.Items().Set("gh:7", MapValue(fields("source", "gh", "id", "7", "status", "ingested")))
		for name, d := range map[string]*Document{"base": crashLedger(), "theirs": theirs} {
			if err := os.WriteFile(filepath.Join(k.side, name), d.Bytes(Native), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		total += k.run()
	})
	t.Run("interrupted", func(t *testing.T) {
		k := killer{t: t, strace: strace, op: "acquire", dir: t.TempDir(), signal: "INT"}
		total += k.run()
	})
	t.Logf("MEASURED ledger: %d kills at file system calls", total)
}

type killer struct {
	t           *testing.T
	strace, op  string
	dir, side   string // side: where a merge's other files are
	old, wanted []byte
	signal      string // KILL when empty
}

func (k *killer) path() string { return filepath.Join(k.dir, "state.yml") }

func (k *killer) reset() {
	k.t.Helper()
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(k.dir, e.Name())); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := os.WriteFile(k.path(), k.old, 0o640); err != nil {
		k.t.Fatal(err)
	}
}

func (k *killer) child(strace ...string) error {
	args := append(append([]string{"-o", k.dir + ".trace"}, strace...), childBinary(k.t))
	cmd := exec.CommandContext(k.t.Context(), k.strace, args...)
	job := "mutate " + k.path() + " " + k.op
	if k.op == "merge" {
		job = "merge " + filepath.Join(k.side, "base") + " " + k.path() + " " + filepath.Join(k.side, "theirs")
	}
	cmd.Env = append(os.Environ(), childVar+"="+job, "GOMAXPROCS=1", "GOGC=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// prepare runs the change unharmed and returns for each call how often it came
// before the ledger's folder was reached, and in all.
func (k *killer) prepare() (first, count map[string]int) {
	k.t.Helper()
	k.old = crashLedger().Bytes(Native)
	k.reset()
	if err := k.child("-e", "trace="+strings.Join(fileCalls, ",")); err != nil {
		k.t.Fatalf("unharmed: %v", err)
	}
	var err error
	if k.wanted, err = os.ReadFile(k.path()); err != nil || bytes.Equal(k.wanted, k.old) {
		k.t.Fatalf("unharmed, the file did not change: %v", err)
	}
	if info, err := os.Stat(k.path()); err != nil || info.Mode().Perm() != 0o640 {
		k.t.Errorf("the mode was not kept: %v %v", info.Mode(), err)
	}
	trace, err := os.ReadFile(k.dir + ".trace")
	if err != nil {
		k.t.Fatal(err)
	}
	first, count = map[string]int{}, map[string]int{}
	reached := false
	for line := range strings.Lines(string(trace)) {
		m := traced.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		count[m[1]]++
		if !reached && strings.Contains(line, `"`+filepath.Base(k.dir)+`"`) {
			reached = true
			for call, n := range count {
				first[call] = n
			}
		}
	}
	if !reached {
		k.t.Fatalf("the ledger's folder is not in the trace:\n%s", trace)
	}
	return first, count
}

func (k *killer) run() (kills int) {
	k.t.Helper()
	first, count := k.prepare()
	for _, call := range fileCalls {
		for n := first[call] + 1; n <= count[call]; n++ {
			k.reset()
			if err := k.child("-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=%s:when=%d", call, cmp.Or(k.signal, "KILL"), n)); err == nil {
				continue // the call came less often this time
			}
			kills++
			k.look(call, n)
			if k.t.Failed() {
				return kills
			}
		}
	}
	if kills < 8 {
		k.t.Errorf("only %d kills", kills)
	}
	return kills
}

// TestFailingCalls makes each call of an upsert fail: the answer is true, the
// file holds the old document or the new one, and nothing is left behind.
func TestFailingCalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIP: no strace here")
	}
	k := killer{t: t, strace: strace, op: "upsert", dir: t.TempDir()}
	if err := exec.Command(strace, "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("SKIP: strace may not trace: %v", err)
	}
	first, count := k.prepare()
	failed := 0
	for _, call := range []string{"openat", "read", "write", "fchmodat", "fsync", "fdatasync", "renameat", "renameat2", "flock"} {
		for _, errno := range []string{"ENOSPC", "EIO", "EDQUOT", "EACCES", "EMFILE"} {
			for n := first[call] + 1; n <= count[call]; n++ {
				k.reset()
				err := k.child("-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, errno, n))
				got, rerr := os.ReadFile(k.path())
				if rerr != nil {
					t.Fatal(rerr)
				}
				isNew := bytes.Equal(got, k.wanted)
				switch {
				case !isNew && !bytes.Equal(got, k.old):
					t.Fatalf("%s at %s %d: a third document:\n%s", errno, call, n, got)
				case err == nil && !isNew:
					t.Errorf("%s at %s %d: answered OK, and nothing was written", errno, call, n)
				case err != nil && isNew && call != "fsync":
					t.Errorf("%s at %s %d: answered %v, and it was written", errno, call, n, err)
				}
				if err != nil {
					failed++
				}
				entries, rerr := os.ReadDir(k.dir)
				if rerr != nil || len(entries) > 2 {
					t.Errorf("%s at %s %d: left behind: %v %v", errno, call, n, entries, rerr)
				}
			}
		}
	}
	if t.Logf("%d failures", failed); failed < 20 {
		t.Errorf("only %d of the calls made it fail", failed)
	}
}

func (k *killer) look(call string, n int) {
	k.t.Helper()
	got, err := os.ReadFile(k.path())
	if err != nil || !bytes.Equal(got, k.old) && !bytes.Equal(got, k.wanted) {
		k.t.Fatalf("killed at %s %d: a third document (%v):\n%s", call, n, err, got)
	}
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(k.dir, e.Name()))
		if err != nil || bytes.Contains(data, []byte(canary)) {
			k.t.Fatalf("killed at %s %d: private text in %s (%v)", call, n, e.Name(), err)
		}
	}
	f, err := OpenFile(k.path(), Native)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := f.Clean(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	if _, err := f.Update(k.t.Context(), func(d *Document) Outcome {
		return Record(d, Run{Writer: "next", Outcome: "completed", Timestamp: noon})
	}); err != nil {
		k.t.Fatalf("killed at %s %d: the next writer: %v", call, n, err)
	}
	entries, err = os.ReadDir(k.dir)
	if err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if slices.Sort(names); !slices.Equal(names, []string{"state.yml", "state.yml.lock"}) {
		k.t.Fatalf("killed at %s %d: left behind: %q", call, n, names)
	}
}
