package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/worker"
)

// What handlers are told and what becomes of their exits: the table "Handlers"
// of the faults that users of such systems have reported.

func TestHandlerIsToldAndBelieved(t *testing.T) {
	tk := task("a")
	tk.Payload = json.RawMessage("{\n  \"n\": 1.50\n}")
	r := newRun(t, tk)
	path := script(t, `cat > "$BEEYARD_ARTIFACT_PATH"
dd if=/dev/zero of=/dev/null bs=300M count=1 2>/dev/null
echo "out: $SWARM_TASK_ID $SWARM_WORKER_ID $BEEYARD_ATTEMPT"; echo "err" >&2
test "$SWARM_RUN_DIR" = "$BEEYARD_RUN" && test "$SWARM_LOG_PATH" = "$BEEYARD_LOG_PATH" && test -n "$BEEYARD_CLAIM_TOKEN"`)
	work(t, r, config(path, &heard{}))
	got := read(t, r, "artifacts/a.md")
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, `"payload": {"n":1.50}`) || strings.Contains(got, "beeyard") {
		t.Fatalf("stdin was %q: one line of the nine fields is promised", got)
	}
	log := read(t, r, "artifacts/a.log")
	if !strings.Contains(log, "out: a w1 1\n") || !strings.Contains(log, "err\n") {
		t.Fatalf("log %q", log)
	}
	a := last(t, r, "a")
	// 0 is "not known": Linux counts the memory of the process that forks into its
	// child's, so a child that stays smaller than we are has no figure of its own.
	peak := a.PeakBytes == 0 || a.PeakBytes >= 290<<20
	if a.ExitCode == nil || *a.ExitCode != 0 || !peak || strings.TrimSpace(a.StderrTail) != "err" {
		t.Fatalf("record %+v", a)
	}
}

func TestExitCodesAndSignals(t *testing.T) {
	for _, c := range []struct {
		script, signal string
		code           int
		state          beeyard.State
	}{
		{"exit 0", "", 0, beeyard.StateDone},
		{"exit 1", "", 1, beeyard.StateFailed},
		{"exit 126", "", 126, beeyard.StateFailed},
		{"exit 127", "", 127, beeyard.StateFailed},
		{"kill -9 $$", "SIGKILL", 0, beeyard.StateFailed},
		{"kill -SEGV $$", "SIGSEGV", 0, beeyard.StateFailed},
	} {
		t.Run(c.script, func(t *testing.T) {
			r := newRun(t, task("a"))
			work(t, r, config(script(t, c.script), &heard{}))
			a := last(t, r, "a")
			if got := view(t, r, "a").State; got != c.state || a.Signal != c.signal {
				t.Fatalf("state %s, signal %q: %+v", got, a.Signal, a)
			}
			if c.signal == "" && (a.ExitCode == nil || *a.ExitCode != c.code) {
				t.Fatalf("exit code %v", a.ExitCode)
			}
		})
	}
}

func TestExit75IsTriedAgain(t *testing.T) {
	r := newRun(t, task("a"), task("b"))
	path := script(t, `if [ "$BEEYARD_TASK_ID" = a ]; then
  [ "$BEEYARD_ATTEMPT" = 3 ] && exit 0; exit 75
fi
if [ ! -e "$BEEYARD_RUN/seen" ]; then : > "$BEEYARD_RUN/seen"; echo '{"spend": false, "retry_after": "10ms", "reason": "rate limit"}' > "$BEEYARD_RESULT_PATH"; exit 75; fi`)
	cfg := config(path, &heard{})
	cfg.Limits = beeyard.Limits{MaxAttempts: 5, Backoff: time.Millisecond}
	work(t, r, cfg)
	if v := view(t, r, "a"); v.State != beeyard.StateDone || v.Task.Ext.Attempt != 3 {
		t.Fatalf("a: %s after %d attempts", v.State, v.Task.Ext.Attempt)
	}
	v := view(t, r, "b")
	if v.State != beeyard.StateDone || v.Task.Ext.Attempt != 1 {
		t.Fatalf("b: %s after %d attempts: a result that says spend false spends none", v.State, v.Task.Ext.Attempt)
	}
	if v.Task.Ext.Attempts[0].Reason != "rate limit" {
		t.Fatalf("reason %q", v.Task.Ext.Attempts[0].Reason)
	}
}

func TestExit77MovesToTheNextTier(t *testing.T) {
	tk := task("a")
	tk.TierHint = "haiku"
	r := newRun(t, tk, task("last"))
	path := script(t, `grep -q opus && exit 0; exit 77`)
	cfg := config(path, &heard{})
	cfg.Tiers = []string{"haiku", "sonnet", "opus"}
	work(t, r, cfg)
	v := view(t, r, "a")
	if v.State != beeyard.StateDone || v.Task.TierHint != "opus" || v.Task.Ext.Attempt != 3 {
		t.Fatalf("a: %s on %s after %d", v.State, v.Task.TierHint, v.Task.Ext.Attempt)
	}
	r = newRun(t, tk)
	cfg.Handler = &worker.Process{Path: script(t, "exit 77")}
	work(t, r, cfg)
	if v := view(t, r, "a"); v.State != beeyard.StateFailed || !strings.Contains(v.Task.Ext.Reason, "there is none") {
		t.Fatalf("no tier left: %s, %s", v.State, v.Task.Ext.Reason)
	}
}

func TestUnusableHandlerSpendsNoTask(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		must(t, os.WriteFile(p, []byte(text), mode))
		return p
	}
	for name, path := range map[string]string{
		"no run bit":          file("a", "#!/bin/sh\n", 0o600),
		"CRLF":                file("b", "#!/bin/sh\r\nexit 0\r\n", 0o700),
		"empty":               file("c", "", 0o700),
		"interpreter missing": file("d", "#!/no/such/interpreter\n", 0o700),
		"folder":              dir,
		"missing":             filepath.Join(dir, "none"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, task("a"))
			if _, err := worker.New(r, config(path, &heard{}), clock.Real()); !errors.Is(err, beeyard.ErrUnusable) {
				t.Fatalf("got %v", err)
			}
			if v := view(t, r, "a"); v.State != beeyard.StateReady || v.Task.Ext.Rev != 0 {
				t.Fatalf("the task was touched: %+v", v)
			}
		})
	}
	t.Run("breaks while it works", func(t *testing.T) {
		r := newRun(t, task("a"), task("b"), task("c"))
		path := script(t, `rm -f "$0"`)
		w, err := worker.New(r, config(path, &heard{}), clock.Real())
		must(t, err)
		if _, err := w.Run(background(t)); !errors.Is(err, beeyard.ErrUnusable) {
			t.Fatalf("got %v", err)
		}
		for _, id := range []string{"b", "c"} {
			if v := view(t, r, id); v.State != beeyard.StateReady || v.Task.Ext.Attempt != 0 {
				t.Fatalf("%s is %s, attempt %d", id, v.State, v.Task.Ext.Attempt)
			}
		}
	})
}

func TestTimeoutEndsTheTree(t *testing.T) {
	tk := task("a")
	tk.Ext.Timeout = beeyard.Duration(300 * time.Millisecond)
	r := newRun(t, tk)
	mark := filepath.Join(t.TempDir(), "lived")
	path := script(t, `echo hi; setsid sh -c 'sleep 2; : > `+mark+`' & sleep 300 & wait`)
	work(t, r, config(path, &heard{}))
	a := last(t, r, "a")
	if !a.TimedOut || !strings.Contains(a.Reason, "timed out after") || view(t, r, "a").State != beeyard.StateFailed {
		t.Fatalf("%+v", a)
	}
	if log := read(t, r, "artifacts/a.log"); !strings.Contains(log, "hi\n") {
		t.Fatalf("log %q", log)
	}
	time.Sleep(2500 * time.Millisecond) // what setsid started would have written by now
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("a grandchild outlived the timeout")
	}
}

func TestWrapperExitsFirst(t *testing.T) {
	for _, s := range []string{`(sleep 300 >&1 &) ; exit 0`, `setsid sleep 300 & exit 0`} {
		r := newRun(t, task("a"))
		begun := time.Now()
		work(t, r, config(script(t, s), &heard{}))
		if view(t, r, "a").State != beeyard.StateDone || time.Since(begun) > bound/2 {
			t.Fatalf("%q: %s after %s", s, view(t, r, "a").State, time.Since(begun))
		}
	}
}

func TestUnreadStdin(t *testing.T) {
	big := task("a")
	big.Payload = json.RawMessage(`"` + strings.Repeat("x", 10<<20) + `"`)
	for s, want := range map[string]beeyard.State{"true": beeyard.StateDone, "exec <&-; exit 0": beeyard.StateDone, "exit 3": beeyard.StateFailed} {
		r := newRun(t, big)
		work(t, r, config(script(t, s), &heard{}))
		if got := view(t, r, "a").State; got != want {
			t.Fatalf("%q with 10 MB on stdin: %s", s, got)
		}
	}
}

func TestLogIsCapped(t *testing.T) {
	r := newRun(t, task("a"))
	cfg := config(script(t, `echo first; head -c 20000000 /dev/zero | tr '\0' 'x'; echo; echo last; exit 3`), &heard{})
	cfg.LogCap = 1 << 20
	work(t, r, cfg)
	log := read(t, r, "artifacts/a.log")
	if len(log) > 1<<20 || !strings.HasPrefix(log, "first\n") || !strings.HasSuffix(log, "last\n") || !strings.Contains(log, "left out") {
		t.Fatalf("log of %d bytes, starts %.20q, ends %.20q", len(log), log, log[len(log)-20:])
	}
	if a := last(t, r, "a"); a.ExitCode == nil || *a.ExitCode != 3 {
		t.Fatalf("exit code lost: %+v", a)
	}
}

func TestEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "canary-1f3a")
	t.Setenv("WANTED", "yes")
	r := newRun(t, task("a"))
	cfg := config(script(t, `env; echo "wanted=$WANTED"`), &heard{})
	cfg.Handler = &worker.Process{Path: cfg.Handler.(*worker.Process).Path, Env: worker.Environment(os.LookupEnv, []string{"WANTED"})}
	work(t, r, cfg)
	if log := read(t, r, "artifacts/a.log"); strings.Contains(log, "canary-1f3a") || !strings.Contains(log, "wanted=yes") {
		t.Fatalf("environment:\n%s", log)
	}
	err := filepath.WalkDir(r.Location(), func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if strings.Contains(string(b), "canary-1f3a") {
			t.Errorf("the secret is in %s", p)
		}
		return err
	})
	must(t, err)
}

func TestPoisonTaskFailsAndOthersProceed(t *testing.T) {
	// Its worker dies of it each time; here the death is a claim whose owner is gone.
	r := newRun(t, task("a"))
	for range 3 {
		att, err := r.Attach(background(t), beeyard.WorkerSpec{ID: "w1"})
		must(t, err)
		if c, err := att.Claim(background(t), beeyard.Filter{}); err != nil || c == nil {
			t.Fatalf("claim: %v, %v", c, err)
		}
		must(t, att.Close(context.Background()))
	}
	_, err := r.Enqueue(background(t), []*beeyard.Task{task("b")}, beeyard.EnqueueOptions{})
	must(t, err)
	work(t, r, config(script(t, "exit 0"), &heard{}))
	if v := view(t, r, "a"); v.State != beeyard.StateFailed || v.Task.Ext.Reason != "worker died 3 times" {
		t.Fatalf("a: %s, %s", v.State, v.Task.Ext.Reason)
	}
	if v := view(t, r, "b"); v.State != beeyard.StateDone {
		t.Fatalf("b: %s", v.State)
	}
}
