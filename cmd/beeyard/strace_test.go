package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"beeyard"
	"beeyard/open"
)

// fileCalls are the system calls at which the binary is killed: those that
// touch files, and those that a file needs.
var fileCalls = []string{"openat", "mkdirat", "flock", "read", "pread64", "write", "pwrite64", "fstat", "newfstatat", "fstatfs",
	"faccessat2", "utimensat", "fchmodat", "fsync", "fdatasync", "syncfs", "close", "linkat", "renameat", "renameat2", "unlinkat", "getdents64", "mmap"}

var tracedCall = regexp.MustCompile(`^(?:\d+ +)?(\w+)\(`)

// killPoint is one command and what must hold whatever became of it.
type killPoint struct {
	name    string
	prepare func(t *testing.T, run string) (args []string)
	// truth is asked after recovery; answered says that the command ended well.
	truth func(t *testing.T, v *beeyard.View, answered bool) error
}

func killPoints() []killPoint {
	bee := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := exec.Command(binary(t), args...).Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	claimed := func(t *testing.T, run string) string {
		bee(t, "enqueue", "--run", run, "--id", "a", "--type", "t")
		r, err := open.Dir(testContext(t), run, open.Options{})
		must(t, err)
		defer r.Close()
		w, err := r.Attach(testContext(t), beeyard.WorkerSpec{ID: "w", Kind: beeyard.KindSingle})
		must(t, err)
		c, err := w.Claim(testContext(t), beeyard.Filter{})
		must(t, err)
		return c.Token.String()
	}
	is := func(v *beeyard.View, states ...beeyard.State) error {
		if v == nil || !slices.Contains(states, v.State) {
			return fmt.Errorf("it is %+v, want one of %v", v, states)
		}
		return nil
	}
	return []killPoint{
		{"enqueue", func(_ *testing.T, run string) []string {
			return []string{"enqueue", "--run", run, "--id", "a", "--type", "t", "--payload", `{"n":1}`}
		}, func(_ *testing.T, v *beeyard.View, answered bool) error {
			if v == nil && !answered {
				return nil
			}
			return is(v, beeyard.StateReady)
		}},
		{"claim", func(t *testing.T, run string) []string {
			bee(t, "enqueue", "--run", run, "--id", "a", "--type", "t")
			return []string{"claim", "--run", run, "--worker-id", "w"}
		}, func(_ *testing.T, v *beeyard.View, answered bool) error {
			return is(v, beeyard.StateReady)
		}},
		{"settle", func(t *testing.T, run string) []string {
			return []string{"complete", "--run", run, "--task", "a", "--token", claimed(t, run), "--success"}
		}, func(_ *testing.T, v *beeyard.View, answered bool) error {
			if answered {
				return is(v, beeyard.StateDone)
			}
			return is(v, beeyard.StateDone, beeyard.StateReady)
		}},
		{"reap", func(t *testing.T, run string) []string {
			claimed(t, run)
			return []string{"reap", "--run", run, "--stale-after", "1ns"}
		}, func(_ *testing.T, v *beeyard.View, answered bool) error {
			if err := is(v, beeyard.StateReady); err != nil {
				return err
			}
			if v.Task.Ext.Deaths != 1 {
				return fmt.Errorf("%d deaths for one", v.Task.Ext.Deaths)
			}
			return nil
		}},
		{"checkpoint write", func(t *testing.T, run string) []string {
			bee(t, "enqueue", "--run", run, "--id", "a", "--type", "t")
			return []string{"checkpoint", "write", "--run", run, "--summary", "new"}
		}, func(_ *testing.T, v *beeyard.View, answered bool) error { return is(v, beeyard.StateReady) }},
	}
}

// TestKilledAtEveryFileCall: strace kills the real binary at each file system
// call of each command that concerns the run; after recovery there is one truth.
func TestKilledAtEveryFileCall(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED: no strace here")
	}
	if out, err := exec.Command(strace, "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: strace may not trace: %v %s", err, out)
	}
	for _, k := range killPoints() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			points := callsInRun(t, strace, k)
			kills := 0
			for _, call := range fileCalls {
				for _, n := range points[call] {
					if killAt(t, strace, k, call, n) {
						kills++
					}
				}
			}
			if kills < 20 {
				t.Errorf("only %d kills", kills)
			}
			t.Logf("MEASURED %s: killed at %d file system calls, one truth after each", k.name, kills)
		})
	}
}

func straceRun(t *testing.T, strace, trace string, args []string, opts ...string) error {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), strace, append(append([]string{"-f", "-o", trace}, opts...), append([]string{binary(t)}, args...)...)...)
	// One thread as far as Go lets us, so that a call's number is the same each time.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "HOME="+t.TempDir())
	return cmd.Run()
}

// callsInRun runs the command unharmed and gives for each call its numbers
// that concern the run's folder: a look through /proc is nobody's risk.
func callsInRun(t *testing.T, strace string, k killPoint) map[string][]int {
	t.Helper()
	run := makeRun(t).Location()
	args := k.prepare(t, run)
	trace := filepath.Join(t.TempDir(), "trace")
	must(t, straceRun(t, strace, trace, args, "-y", "-e", "trace="+strings.Join(fileCalls, ",")))
	data, err := os.ReadFile(trace)
	must(t, err)
	count, points := map[string]int{}, map[string][]int{}
	for line := range strings.Lines(string(data)) {
		m := tracedCall.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		count[m[1]]++
		// -y shows descriptors with their paths.
		if strings.Contains(line, run) {
			points[m[1]] = append(points[m[1]], count[m[1]])
		}
	}
	if len(points) < 5 {
		t.Fatalf("the run is not in the trace:\n%.2000s", data)
	}
	return points
}

// killAt kills the command at its n-th call of that name, recovers, and asks
// for the truth. It reports whether the kill came.
func killAt(t *testing.T, strace string, k killPoint, call string, n int) (killed bool) {
	t.Helper()
	made := makeRun(t)
	run := made.Location()
	args := k.prepare(t, run)
	err := straceRun(t, strace, os.DevNull, args, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n))
	killed = err != nil
	fail := func(err error) { t.Fatalf("killed at %s number %d (%v): %v", call, n, killed, err) }

	r, err := open.Dir(testContext(t), run, open.Options{})
	must(t, err)
	defer r.Close()
	for range 2 {
		// The dead command's claims are of kind single: only time proves that, so the limit is past.
		if _, err := r.Reap(testContext(t), beeyard.ReapOptions{StaleAfter: 1}); err != nil {
			fail(err)
		}
	}
	v, err := r.Get(testContext(t), "a")
	if errors.Is(err, beeyard.ErrNotFound) {
		v, err = nil, nil
	}
	if err != nil {
		fail(err)
	}
	if err := k.truth(t, v, !killed); err != nil {
		fail(err)
	}
	places := 0
	for _, d := range []string{"pending", "held", "done", "failed"} {
		if _, err := os.Stat(filepath.Join(run, d, "a.json")); err == nil {
			places++
		}
	}
	claims, err := filepath.Glob(filepath.Join(run, "claimed", "*", "a*"))
	must(t, err)
	claims = slices.DeleteFunc(claims, func(p string) bool { return strings.Contains(p, "~out.") }) // kept aside after ten seconds
	if v != nil && places+len(claims) != 1 {
		fail(fmt.Errorf("it is in %d places, and in the claims: %v", places, claims))
	}
	cp, err := r.Checkpoint(testContext(t))
	if err != nil {
		fail(err)
	}
	if len(cp.CompletedTasks) > 0 && v.State != beeyard.StateDone {
		fail(fmt.Errorf("completed_tasks %v is ahead", cp.CompletedTasks))
	}
	must(t, made.Close())
	return killed
}
