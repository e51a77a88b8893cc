package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script/*.txtar: what a user types and sees, against
// the real binary. Each script has its own folder with HOME in it, and
// BEEYARD_ROOT names a root that does not exist yet. Beside testscript's own
// commands there are
//
//	exits CODE PROGRAM [ARG…]      it must end with this exit code
//	waitfor PROGRAM [ARG…]         repeat until it exits 0; at most 30 s
//	waitout PATTERN PROGRAM [ARG…] repeat until its stdout matches; at most 30 s
//	json [PATH [VALUE]]            stdout is one JSON value; at PATH is something / VALUE
//	jsonenv NAME PATH              put the value at PATH into the environment
//	jsonlines COUNT                stdout is COUNT lines, each one JSON value
//	signal SIGNAL [PIDFILE]        signal the last background command, or a process
//	lockfile FILE                  hold flock on FILE until the script ends
//
// A path is dotted: error.code, tasks.0.task_id; "len" at its end is a length.
func TestScripts(t *testing.T) {
	testscript.Run(t, scriptParams(t, "testdata/script"))
}

func scriptParams(t *testing.T, dir string) testscript.Params {
	bin := filepath.Dir(binary(t))
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				return err
			}
			env.Setenv("HOME", home)
			env.Setenv("BEEYARD_ROOT", filepath.Join(env.WorkDir, ".swarm"))
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": cmdExits, "waitfor": cmdWaitFor, "waitout": cmdWaitOut,
			"json": cmdJSON, "jsonenv": cmdJSONEnv, "jsonlines": cmdJSONLines,
			"signal": cmdSignal, "lockfile": cmdLockFile,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Deadline: deadline(t),
	}
}

// scriptsMost ends scripts that hang, long before the test binary would.
const scriptsMost = 4 * time.Minute

func deadline(t *testing.T) time.Time {
	end := time.Now().Add(scriptsMost)
	if d, ok := t.Deadline(); ok && d.Before(end) {
		return d
	}
	return end
}

var built struct {
	once sync.Once
	dir  string
	err  error
}

// binary builds the program once, as it is shipped: what the detector for
// races costs would be paid at each of the hundreds of starts.
func binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "beeyard-test-"); built.err != nil {
			return
		}
		if built.err = os.Chmod(built.dir, 0o755); built.err != nil { // scripts act as other users too
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "beeyard"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "beeyard")
}

func removeBinary() {
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
}

// inherited are the variables of this process that would change what beeyard does.
func inherited() []string {
	names := []string{"NO_COLOR", "XDG_CONFIG_HOME"}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SWARM_") || strings.HasPrefix(name, "BEEYARD_") && !slices.Contains([]string{"BEEYARD_NIGHTLY", "BEEYARD_PROC_LEVEL"}, name) {
			names = append(names, name)
		}
	}
	return names
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts, ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("%s ended with exit code %d, not %d", strings.Join(args[1:], " "), got, want)
	}
}

func exitCode(ts *testscript.TestScript, err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	}
	ts.Fatalf("it did not run: %v", err)
	return -1
}

// patience is how long a script waits for what must come; it is never waited
// for in full by a test that passes.
const patience = 30 * time.Second

func until(ts *testscript.TestScript, what string, ok func() bool) {
	for end := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("still not after %s: %s", patience, what)
		}
	}
}

func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waitfor PROGRAM [ARG…]")
	}
	until(ts, strings.Join(args, " "), func() bool { return ts.Exec(args[0], args[1:]...) == nil })
}
