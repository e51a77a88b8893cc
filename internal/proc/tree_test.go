package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A timeout ends the whole tree, whatever it tries; output before it is kept.
func TestTimeoutEndsTree(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		sleepers     int
	}{
		{"child", "sleep @ & echo hi; wait", 1},
		{"setsid", "setsid sleep @ & echo hi; wait", 1},
		{"setsid orphan", "(setsid sleep @ &) ; echo hi; sleep @", 2},
		{"nested setsid", `setsid sh -c "setsid sh -c 'sleep @ & wait' & wait" & echo hi; wait`, 1},
		{"TERM ignored", "trap '' TERM; echo hi; sleep @ & while :; do sleep @; done", 2},
		{"child ignores TERM", `sh -c "trap '' TERM; while :; do sleep @; done" & echo hi; wait`, 1},
		{"stopped child", "sleep @ & kill -STOP $!; echo hi; wait", 0},
		{"stopped leader", "echo hi; sleep @ & kill -STOP $$", 1},
		{"busy", "echo hi; sleep @ & while :; do :; done", 1},
		{"job control", "set -m; sleep @ & echo hi; wait", 1},
		{"many", "i=0; while [ $i -lt 20 ]; do sleep @ & i=$((i+1)); done; echo hi; wait", 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			eachLevel(t, func(t *testing.T, c *controller) {
				m := mark()
				out := outFile(t)
				s := sh(strings.ReplaceAll(tc.script, "@", m))
				s.Stdout, s.Timeout, s.Grace = out, time.Hour, 300*time.Millisecond
				p := c.mustStart(t, s)
				// The time runs out once the tree is complete.
				eventually(t, "it runs", func() bool { return content(t, out) == "hi" && len(running(m)) >= tc.sleepers })
				begin := time.Now()
				p.expire()
				r := waitFor(t, p)
				if !r.TimedOut || r.Abandoned || r.Stopped != "" || r.OK() {
					t.Errorf("result %+v, want a timeout", r)
				}
				if took, limit := time.Since(begin), s.Grace+killDelay; took > limit {
					t.Errorf("took %v, more than %v", took, limit)
				}
				noneLeft(t, m)
				if got := content(t, out); got != "hi" {
					t.Errorf("output %q, want hi", got)
				}
			})
		})
	}
}

func TestTimeout(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		s := sh("sleep " + mark())
		s.Timeout = 200 * time.Millisecond
		if r := c.mustRun(t, s); !r.TimedOut || r.Signal != "SIGTERM" || r.Duration < s.Timeout {
			t.Errorf("got %+v", r)
		}
		s = sh("exit 3")
		s.Timeout = time.Hour
		if r := c.mustRun(t, s); r.TimedOut || r.ExitCode != 3 {
			t.Errorf("in time: %+v", r)
		}
	})
}

// What outlives a leader that exits is ended at once, and counted.
func TestWrapperExitsFirst(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		left         int
	}{
		{"holds output", "(sleep @ >&1 &) ; exit 0", 1},
		{"setsid", "(setsid sleep @ &) ; exit 0", 1},
		{"three", "(sleep @ & sleep @ & setsid sleep @ & exec true) ; exit 0", 3},
		{"ignores TERM", `(sh -c "trap '' TERM; exec sleep @" &) ; exit 0`, 1},
		{"nohup", "(nohup setsid sleep @ >/dev/null 2>&1 &) ; exit 0", 1},
		{"nothing", "sleep 0; exit 0", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, c *controller) {
				t.Parallel()
				m := mark()
				s := sh(strings.ReplaceAll(tc.script, "@", m))
				s.Stdout, s.Grace = outFile(t), 200*time.Millisecond
				r := c.mustRun(t, s)
				// A background job may not have reached its exec, or even its
				// fork, when the leader's exit is seen: then it is ended sooner.
				if r.ExitCode != 0 || !r.OK() || r.Leftovers > tc.left+1 || (tc.left == 0 && r.Leftovers != 0) {
					t.Errorf("result %+v, want exit 0 and %d left over", r, tc.left)
				}
				if r.Duration > bound/2 {
					t.Errorf("took %v", r.Duration)
				}
				noneLeft(t, m)
			})
		})
	}
}

func TestLeftoversAreCounted(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		m := mark()
		f := t.TempDir() + "/ready"
		s := sh(fmt.Sprintf("(setsid sh -c 'sleep %s & sleep %s & : >%s; wait' &) ; while [ ! -e %s ]; do sleep 0.01; done", m, m, f, f))
		r := c.mustRun(t, s)
		if !r.OK() || r.Leftovers != 3 {
			t.Errorf("result %+v, want 3 left over", r)
		}
		noneLeft(t, m)
	})
}

func TestExitIsKept(t *testing.T) {
	for _, tc := range []struct {
		script string
		code   int
		signal string
	}{
		{"exit 0", 0, ""},
		{"exit 1", 1, ""},
		{"exit 75", 75, ""},
		{"exit 77", 77, ""},
		{"exit 126", 126, ""},
		{"exit 127", 127, ""},
		{"no-such-program-at-all", 127, ""},
		{"exit 255", 255, ""},
		{"kill -9 $$", -1, "SIGKILL"},
		{"kill -SEGV $$", -1, "SIGSEGV"},
		{"kill -TERM $$", -1, "SIGTERM"},
		{"kill -ABRT $$", -1, "SIGABRT"},
	} {
		t.Run(tc.script, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, c *controller) {
				t.Parallel()
				r := c.mustRun(t, sh(tc.script))
				want := Result{ExitCode: tc.code, Signal: tc.signal}
				r.Duration, r.PeakMemory, r.CPU = 0, 0, 0
				if r != want {
					t.Errorf("got %+v, want %+v", r, want)
				}
			})
		})
	}
}

func init() {
	// measure is a small process: what Linux tells of a child's memory begins
	// with that of the process which forked it.
	helpers["measure"] = func([]string) int {
		// A shell that holds 100 MB and burns some processor time.
		p, err := Start(context.Background(), sh(`x=$(head -c 100000000 /dev/zero | tr '\0' x); i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo ${#x} >/dev/null`))
		if err != nil {
			return 1
		}
		big := p.Wait()
		if p, err = Start(context.Background(), sh("exit 0")); err != nil {
			return 1
		}
		small := p.Wait()
		Close()
		fmt.Printf("%+v\n%+v\n", big, small)
		if !big.OK() || big.Duration <= 0 || big.CPU <= 10*time.Millisecond {
			return 4
		}
		// Known only if larger than ourselves.
		if !raceDetector && (big.PeakMemory < 95<<20 || big.PeakMemory > 1<<30) {
			return 2
		}
		if small.PeakMemory > 50<<20 || small.CPU > big.CPU {
			return 3
		}
		return 0
	}
}

func TestMeasures(t *testing.T) {
	for _, level := range []string{"auto", "group"} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = asHelper("measure", LevelVar+"="+level)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", level, err, out)
		}
	}
}

func TestStop(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		t.Run("TERM is enough", func(t *testing.T) {
			m := mark()
			out := outFile(t)
			s := sh("trap 'echo bye; exit 3' TERM; echo ready; sleep " + m + " & wait")
			s.Stdout, s.Grace = out, bound
			p := c.mustStart(t, s)
			eventually(t, "ready", func() bool { return content(t, out) == "ready" })
			p.Stop("drain")
			p.Stop("later cause")
			r := waitFor(t, p)
			if r.ExitCode != 3 || r.Stopped != "drain" || r.TimedOut {
				t.Errorf("got %+v, want exit 3, stopped by drain", r)
			}
			if r.Duration > bound {
				t.Errorf("took %v: waited for the grace", r.Duration)
			}
			noneLeft(t, m)
		})
		t.Run("a second stop is at once", func(t *testing.T) {
			m := mark()
			out := outFile(t)
			s := sh("trap '' TERM; echo ready; while :; do sleep " + m + "; done")
			s.Stdout, s.Grace = out, time.Hour
			p := c.mustStart(t, s)
			eventually(t, "ready", func() bool { return content(t, out) == "ready" })
			p.Stop("drain")
			p.Kill()
			if r := waitFor(t, p); r.Stopped != "drain" || r.Signal != "SIGKILL" || r.OOM {
				t.Errorf("got %+v, want stopped by drain and SIGKILL", r)
			}
			noneLeft(t, m)
		})
		t.Run("context", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			p, err := c.start(ctx, sh("sleep "+mark()))
			if err != nil {
				t.Fatal(err)
			}
			cancel(errors.New("claim lost"))
			if r := waitFor(t, p); r.Stopped != "claim lost" || r.Signal != "SIGTERM" {
				t.Errorf("got %+v", r)
			}
			if _, err := c.start(ctx, sh("true")); err == nil || !strings.Contains(err.Error(), "claim lost") {
				t.Errorf("start under an ended context: %v", err)
			}
		})
		t.Run("after the end it changes nothing", func(t *testing.T) {
			p := c.mustStart(t, sh("exit 0"))
			waitFor(t, p)
			p.Stop("too late")
			p.Kill()
			if r := p.Wait(); !r.OK() {
				t.Errorf("got %+v", r)
			}
		})
		t.Run("many at once", func(t *testing.T) {
			p := c.mustStart(t, sh("sleep "+mark()))
			for range 8 {
				go p.Stop("x")
				go p.Kill()
			}
			if r := waitFor(t, p); r.Stopped == "" {
				t.Errorf("got %+v", r)
			}
		})
	})
}

// TERM after the leader exited on a Stop: its children get the grace as well.
func TestGraceIsForTheWholeTree(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		out := outFile(t)
		s := sh(`trap 'exit 4' TERM; sh -c 'trap "sleep 1; echo cleaned; exit" TERM; echo ready; while :; do sleep 0.05; done' & wait`)
		s.Stdout, s.Grace = out, bound
		p := c.mustStart(t, s)
		eventually(t, "ready", func() bool { return content(t, out) == "ready" })
		p.Stop("drain")
		r := waitFor(t, p)
		if r.ExitCode != 4 || r.Leftovers == 0 {
			t.Errorf("got %+v, want exit 4 and a leftover", r)
		}
		if got := content(t, out); !strings.Contains(got, "cleaned") {
			t.Errorf("the child was not let finish: %q", got)
		}
	})
}

func TestStdin(t *testing.T) {
	big := []byte(strings.Repeat("0123456789abcde\n", 10<<20/16))
	for _, tc := range []struct {
		name, script, out string
		in                []byte
		code              int
	}{
		{"unread by true", "exec true", "", big, 0},
		{"closed", "exec <&-; exit 0", "", big, 0},
		{"unread, exit 3", "exit 3", "", big, 3},
		{"head", "head -n 1", "0123456789abcde", big, 0},
		{"all", "wc -c", "10485760", big, 0},
		{"late", "sleep 0.3; wc -c", "10485760", big, 0},
		{"small", "cat", "hello", []byte("hello"), 0},
		{"none", "cat; echo end", "end", nil, 0},
		{"empty", "cat; echo end", "end", []byte{}, 0},
		{"closed, keeps running", "exec <&-; sleep 0.3; echo end", "end", big, 0},
		{"grandchild holds it", "setsid sleep @ <&0 & exit 0", "", big, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, c *controller) {
				t.Parallel()
				out := outFile(t)
				s := sh(strings.ReplaceAll(tc.script, "@", mark()))
				s.Stdin, s.Stdout, s.Grace = tc.in, out, time.Second
				r := c.mustRun(t, s)
				if got := content(t, out); r.ExitCode != tc.code || got != tc.out || r.Signal != "" || r.Abandoned {
					t.Errorf("got %+v, output %q; want exit %d, output %q", r, got, tc.code, tc.out)
				}
			})
		})
	}
}

// A stop while a large input is being written ends the writing too.
func TestStopWithUnreadStdin(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		s := sh("sleep " + mark())
		s.Stdin, s.Grace = make([]byte, 10<<20), 0
		p := c.mustStart(t, s)
		p.Stop("x")
		if r := waitFor(t, p); r.Stopped != "x" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestEnvironmentAndFolder(t *testing.T) {
	t.Setenv("SECRET", "leak")
	eachLevel(t, func(t *testing.T, c *controller) {
		out, dir := outFile(t), t.TempDir()
		c.mustRun(t, Spec{Path: "/usr/bin/env", Env: []string{"A=b"}, Stdout: out})
		want := "A=b"
		got := content(t, out)
		if c.level == LevelSubreaper {
			got, _, _ = strings.Cut(got, "\n"+MarkVar+"=")
		}
		if got != want {
			t.Errorf("environment %q, want %q", got, want)
		}
		out = outFile(t)
		s := sh("pwd")
		s.Dir, s.Stdout = dir, out
		c.mustRun(t, s)
		if got := content(t, out); got != dir {
			t.Errorf("folder %q, want %q", got, dir)
		}
	})
}

func TestExtraFiles(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		out := outFile(t)
		s := sh("echo three >&3; ls /proc/self/fd | wc -l >&3")
		s.ExtraFiles = []*os.File{out}
		if r := c.mustRun(t, s); !r.OK() {
			t.Errorf("got %+v", r)
		}
		// 0 to 3, and the one ls reads the folder by: nothing else is inherited.
		if got := strings.Fields(content(t, out)); len(got) != 2 || got[0] != "three" || got[1] != "5" {
			t.Errorf("descriptor 3 got %q", got)
		}
	})
}
