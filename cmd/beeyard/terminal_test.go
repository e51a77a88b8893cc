package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"beeyard/internal/clock"

	"golang.org/x/sys/unix"
)

// onTerminal runs the program with stdout and stderr on a terminal and returns
// what came there, and the exit code.
func onTerminal(t *testing.T, env map[string]string, args ...string) (string, int) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("NOT TESTED: there are no terminals here: %v", err)
	}
	defer master.Close()
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	var out strings.Builder
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			out.Write(buf[:n])
			if err != nil { // EIO once the last writer has gone
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p := &program{stdin: strings.NewReader(""), stdout: slave, stderr: slave, clock: clock.Real(),
		getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	code := p.main(ctx, append([]string{"beeyard"}, args...))
	must(t, slave.Close())
	wg.Wait()
	return out.String(), code
}

func TestColourAndProgressOnATerminal(t *testing.T) {
	y := newYard(t)
	env := y.env()
	env["TERM"] = "xterm"
	const green, escape = "\x1b[32mdone", "\x1b"
	if out, _ := onTerminal(t, env, "ls", "r"); !strings.Contains(out, green) {
		t.Errorf("no colour on a terminal: %q", out)
	}
	for _, c := range []struct {
		what string
		set  map[string]string
		args []string
	}{
		{"NO_COLOR", map[string]string{"NO_COLOR": "1"}, nil},
		{"a dumb terminal", map[string]string{"TERM": "dumb"}, nil},
		{"--no-color", nil, []string{"--no-color"}},
		{"--json", nil, []string{"--json"}},
	} {
		e := y.env()
		e["TERM"] = "xterm"
		for k, v := range c.set {
			e[k] = v
		}
		if out, _ := onTerminal(t, e, append(c.args, "ls", "r")...); strings.Contains(out, escape) {
			t.Errorf("%s: colour: %q", c.what, out)
		}
	}

	out, code := onTerminal(t, env, "wait", "done", "failed")
	if code != exitFailed || !strings.Contains(out, "2/2, 1 failed") {
		t.Errorf("exit %d, no progress: %q", code, out)
	}
	for _, quiet := range []string{"--quiet", "--json"} {
		if out, _ := onTerminal(t, env, quiet, "wait", "done"); strings.Contains(out, escape) || strings.Contains(out, "[#") {
			t.Errorf("%s: progress: %q", quiet, out)
		}
	}
	if out, code := onTerminal(t, env, "run", "export", "r", "--live"); code != exitUsage || !strings.Contains(out, "stdout is a terminal") {
		t.Errorf("an archive on a terminal: exit %d: %q", code, out)
	}
}

// TestLogsDoNotReachTheTerminalAsTheyAre: what a handler wrote must not move the
// cursor, rename the window or hide text; in a pipe it is untouched.
func TestLogsDoNotReachTheTerminalAsTheyAre(t *testing.T) {
	y := newYard(t)
	const hostile = "a\x1b]0;title\x07b\x1b[2Jc\u202ed\re\n\tf\u00e9\n"
	must(t, os.WriteFile(y.path("artifacts", "done.log"), []byte(hostile), 0o600))
	env := y.env()
	env["TERM"] = "xterm"
	out, _ := onTerminal(t, env, "logs", "done")
	if strings.ContainsAny(out, "\x1b\x07\u202e") || !strings.Contains(out, "fé") {
		t.Errorf("on a terminal: %q", out)
	}
	if a := (call{env: y.env()}).run(t, "logs", "done"); a.stdout != hostile {
		t.Errorf("in a pipe: %q", a.stdout)
	}
}
