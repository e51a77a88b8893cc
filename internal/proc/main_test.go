package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// bound is how long a test waits for what must happen; machines are slow.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	SandboxMain()
	if helper := os.Getenv("PROC_TEST_HELPER"); helper != "" {
		os.Exit(helpers[helper](os.Args[1:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		Close()
		os.Exit(code)
	}))
}

// helpers are programs that tests run this binary as.
var helpers = map[string]func(args []string) int{}

// asHelper is the environment that makes this binary a helper.
func asHelper(name string, more ...string) []string {
	return append(append(os.Environ(), "PROC_TEST_HELPER="+name), more...)
}

// eachLevel runs a test under every level of control this machine has.
func eachLevel(t *testing.T, test func(t *testing.T, c *controller)) {
	for _, want := range []string{"cgroup", "group"} {
		t.Run(want, func(t *testing.T) {
			c := newController(want)
			if c.forced != nil {
				t.Skipf("NOT TESTED HERE: %v", c.forced)
			}
			t.Cleanup(c.close)
			test(t, c)
		})
	}
}

func sh(script string) Spec {
	return Spec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Grace: 10 * time.Second}
}

// run starts s and waits, with a bound.
func (c *controller) mustRun(t *testing.T, s Spec) Result {
	t.Helper()
	p := c.mustStart(t, s)
	return waitFor(t, p)
}

func (c *controller) mustStart(t *testing.T, s Spec) *Process {
	t.Helper()
	p, err := c.start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func waitFor(t *testing.T, p *Process) Result {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(bound):
		p.Kill()
		t.Fatalf("process %d has not ended within %v", p.PID(), bound)
	}
	return p.Wait()
}

var marks atomic.Int64

// mark is an argument by which a test finds its processes again.
func mark() string { return fmt.Sprintf("3%06d.%d", os.Getpid(), marks.Add(1)) }

// running lists the living processes that have arg as an argument.
func running(arg string) []int {
	var out []int
	all, _ := pids()
	for _, pid := range all {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil || !containsArg(b, arg) {
			continue
		}
		if st, err := readStat(pid); err == nil && st.live() {
			out = append(out, pid)
		}
	}
	return out
}

func containsArg(cmdline []byte, arg string) bool {
	for _, a := range bytes.Split(cmdline, []byte{0}) {
		if string(a) == arg {
			return true
		}
	}
	return false
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !poll(bound, ok) {
		t.Fatalf("not within %v: %s", bound, what)
	}
}

// noneLeft checks that nothing of a test's tree lives.
func noneLeft(t *testing.T, arg string) {
	t.Helper()
	if left := running(arg); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

// ourZombies lists zombie children of this process.
func ourZombies() []int {
	var out []int
	all, _ := snapshot()
	for _, st := range all {
		if st.ppid == os.Getpid() && st.state == 'Z' {
			out = append(out, st.pid)
		}
	}
	return out
}

func openFDs(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// script writes an executable file.
func script(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "handler")
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func outFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}
