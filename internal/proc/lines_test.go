package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func startLines(t *testing.T, c *controller, s Spec) *LineProcess {
	t.Helper()
	l, err := c.startLines(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Kill(); l.Close() })
	return l
}

const echoLines = `while read -r line; do echo "log $line" >&2; echo "answer $line"; done; exit 0`

func TestLines(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		l := startLines(t, c, sh(echoLines))
		for i := range 100 {
			var log safeBuffer
			l.SetStderr(&log)
			got, err := l.Do(t.Context(), fmt.Appendf(nil, `{"n":%d}`, i), bound)
			if err != nil || string(got) != fmt.Sprintf(`answer {"n":%d}`, i) {
				t.Fatalf("got %q, %v", got, err)
			}
			l.SetStderr(nil)
			if want := fmt.Sprintf("log {\"n\":%d}\n", i); log.String() != want {
				t.Fatalf("log %q, want %q", log.String(), want)
			}
		}
		if r := l.Close(); !r.OK() {
			t.Errorf("after its input ended: %+v", r)
		}
		if _, err := l.Do(t.Context(), []byte("x"), bound); !errors.Is(err, ErrDied) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestLinesBigLines(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		l := startLines(t, c, Spec{Path: "/bin/cat", Grace: time.Second})
		line := bytes.Repeat([]byte("x"), MaxLine)
		for range 2 {
			got, err := l.Do(t.Context(), line, bound)
			if err != nil || !bytes.Equal(got, line) {
				t.Fatalf("got %d bytes, %v", len(got), err)
			}
		}
		for _, bad := range [][]byte{append(line, 'x'), []byte("two\nlines")} {
			if _, err := l.Do(t.Context(), bad, bound); err == nil || errors.Is(err, ErrDied) {
				t.Errorf("%.10q: %v, want a refusal", bad, err)
			}
		}
		if got, err := l.Do(t.Context(), []byte("y"), bound); err != nil || string(got) != "y" {
			t.Errorf("after a refusal: %q, %v", got, err)
		}
	})
}

func TestLinesDeaths(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		want         Result
		reason       string
	}{
		{"exit without an answer", "read -r x; exit 5", Result{ExitCode: 5}, "output ended"},
		{"signal", "read -r x; kill -9 $$", Result{ExitCode: -1, Signal: "SIGKILL"}, "output ended"},
		{"half an answer", "read -r x; printf half; exit 6", Result{ExitCode: 6}, "output ended"},
		{"exit before reading", "exit 7", Result{ExitCode: 7}, "output ended"},
		{"exit with a stray", "read -r x; (setsid sleep @ &) ; exit 8", Result{ExitCode: 8, Leftovers: 1}, "output ended"},
		{"closes its output", "read -r x; exec >&-; sleep @", Result{ExitCode: -1, Signal: "SIGTERM", Stopped: "closed"}, "output ended"},
		{"endless answer", "read -r x; tr '\\0' x </dev/zero", Result{ExitCode: -1, Signal: "SIGKILL", Stopped: "killed"}, "longer than"},
		{"timeout", "read -r x; echo ok; read -r x; sleep @ & setsid sleep @", Result{ExitCode: -1, Signal: "SIGTERM", TimedOut: true}, "no answer within"},
		{"timeout, TERM ignored", "trap '' TERM; read -r x; echo ok; read -r x; while :; do sleep @; done", Result{ExitCode: -1, Signal: "SIGKILL", TimedOut: true}, "no answer within"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, c *controller) {
				t.Parallel()
				m := mark()
				s := sh(strings.ReplaceAll(tc.script, "@", m))
				s.Grace = 300 * time.Millisecond
				l := startLines(t, c, s)
				limit := bound
				if tc.want.TimedOut {
					if _, err := l.Do(t.Context(), []byte("{}"), limit); err != nil {
						t.Fatal(err)
					}
					limit = 300 * time.Millisecond
				}
				_, err := l.Do(t.Context(), []byte("{}"), limit)
				var died *DiedError
				if !errors.As(err, &died) || !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), tc.reason) {
					t.Fatalf("got %v, want ErrDied with %q", err, tc.reason)
				}
				got := died.Result
				if got.ExitCode != tc.want.ExitCode || got.Signal != tc.want.Signal || got.TimedOut != tc.want.TimedOut || got.Stopped != tc.want.Stopped || got.Abandoned {
					t.Errorf("got %+v, want %+v", got, tc.want)
				}
				noneLeft(t, m)
			})
		})
	}
}

// An answer counts even if it is the last thing the process does.
func TestLinesLastWords(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		for range 20 {
			l := startLines(t, c, sh("read -r x; echo done; exit 3"))
			got, err := l.Do(t.Context(), []byte("{}"), bound)
			if err != nil || string(got) != "done" {
				t.Fatalf("got %q, %v", got, err)
			}
			_, err = l.Do(t.Context(), []byte("{}"), bound)
			var died *DiedError
			if !errors.As(err, &died) || died.Result.ExitCode != 3 {
				t.Fatalf("the next: %v", err)
			}
		}
	})
}

// A line that nobody asked for would be taken for the next answer.
func TestLinesUnasked(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		l := startLines(t, c, sh("echo hello; sleep "+mark()))
		eventually(t, "it is killed", func() bool {
			select {
			case <-l.p.Done():
				return true
			default:
				return false
			}
		})
		if _, err := l.Do(t.Context(), []byte("{}"), bound); !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "no request asked") {
			t.Errorf("got %v", err)
		}
	})
}

func TestLinesContextAndKill(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		m := mark()
		l := startLines(t, c, sh("read -r x; sleep "+m))
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("claim lost")) })
		_, err := l.Do(ctx, []byte("{}"), 0)
		var died *DiedError
		if !errors.As(err, &died) || died.Result.Stopped != "claim lost" {
			t.Errorf("got %v", err)
		}
		noneLeft(t, m)
		l = startLines(t, c, sh("read -r x; sleep "+m))
		time.AfterFunc(100*time.Millisecond, l.Kill)
		if _, err := l.Do(context.Background(), []byte("{}"), 0); !errors.Is(err, ErrDied) {
			t.Errorf("got %v", err)
		}
		noneLeft(t, m)
	})
}

func TestLinesUnusable(t *testing.T) {
	if _, err := StartLines(context.Background(), Spec{Path: "/no/such"}); !errors.Is(err, ErrUnusable) {
		t.Errorf("got %v", err)
	}
}
