package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestCaptureOneWriterKeepsOrder(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		var out safeBuffer
		cap, err := NewCapture(&out, &out)
		if err != nil {
			t.Fatal(err)
		}
		s := sh("for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done; echo dev >/dev/stderr")
		s.Stdout, s.Stderr = cap.Stdout(), cap.Stderr()
		r := c.mustRun(t, s)
		if err := cap.Close(); err != nil {
			t.Error(err)
		}
		var want strings.Builder
		for i := 1; i <= 9; i++ {
			fmt.Fprintf(&want, "o%d\ne%d\n", i, i)
		}
		want.WriteString("dev\n")
		if got := out.String(); !r.OK() || got != want.String() {
			t.Errorf("got %+v, %q", r, got)
		}
	})
}

// 200 MB through a log of 10 MB: the file within the cap, the memory flat, the
// exit code kept. (Two gigabytes differ only in the number of rounds.)
func TestMuchOutput(t *testing.T) {
	const bytesOut = 200 << 20
	eachLevel(t, func(t *testing.T, c *controller) {
		runtime.GC() // what earlier tests left is not ours
		path := filepath.Join(t.TempDir(), "log")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		l := NewCappedLog(f, 0)
		cap, err := NewCapture(l, l.Stderr())
		if err != nil {
			t.Fatal(err)
		}
		s := sh(fmt.Sprintf("echo begin; head -c %d /dev/zero | tr '\\0' x; echo; echo end; echo oops >&2; exit 9", bytesOut))
		s.Stdout, s.Stderr = cap.Stdout(), cap.Stderr()
		p := c.mustStart(t, s)
		var most uint64
		for ended := false; !ended; {
			select {
			case <-p.Done():
				ended = true
			case <-time.After(20 * time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
		r := p.Wait()
		if err := errors.Join(cap.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != 9 || fi.Size() != DefaultLogCap || l.Total() < bytesOut {
			t.Errorf("exit %d, file of %d bytes, %d seen; want 9, %d, over %d", r.ExitCode, fi.Size(), l.Total(), DefaultLogCap, bytesOut)
		}
		if !bytes.HasPrefix(b, []byte("begin\n")) || !bytes.Contains(b[len(b)-100:], []byte("end\n")) || !cutPattern.Match(b) {
			t.Errorf("not head, mark and tail: %.20q … %q", b, b[len(b)-20:])
		}
		if l.StderrTail(3) != "oops" {
			t.Errorf("stderr %q", l.StderrTail(3))
		}
		if most > 32<<20 {
			t.Errorf("heap grew to %d MB", most>>20)
		}
		t.Logf("heap at most %d MB; %.0f MB/s", most>>20, float64(bytesOut)/1e6/r.Duration.Seconds())
	})
}

// A process out of the tree that keeps the pipe, and even one that fills it,
// does not hold Close up.
func TestCaptureDoesNotWaitForStrays(t *testing.T) {
	for _, tc := range []struct{ name, script string }{
		{"silent", "sleep @"},
		{"noisy", "yes @"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out safeBuffer
			cap, err := NewCapture(&out, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := mark()
			// Started past the controller, so nothing ends it.
			stray, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "echo kept; exec " + strings.ReplaceAll(tc.script, "@", m)},
				&os.ProcAttr{Files: []*os.File{nil, cap.Stdout(), nil}})
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "it wrote", func() bool { return strings.HasPrefix(out.String(), "kept\n") })
			done := make(chan error, 1)
			go func() { done <- cap.Close() }()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(bound):
				t.Error("Close hangs")
			}
			stray.Signal(unix.SIGKILL)
			stray.Wait()
		})
	}
}

func TestCaptureSync(t *testing.T) {
	var out safeBuffer
	cap, err := NewCapture(&out, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cap.Close()
	var wg sync.WaitGroup
	for i := range 50 {
		fmt.Fprintf(cap.Stdout(), "line %d\n", i)
		for range 3 {
			wg.Go(cap.Sync)
		}
		cap.Sync()
		if !strings.HasSuffix(out.String(), fmt.Sprintf("line %d\n", i)) {
			t.Fatalf("line %d is not there after Sync: %q", i, out.String())
		}
	}
	wg.Wait()
}

func TestCaptureReportsTheWriter(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errFull)
	cap, err := NewCapture(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(cap.Stdout(), "x")
	if err := cap.Close(); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
	if err := cap.Close(); !errors.Is(err, errFull) {
		t.Errorf("a second time: %v", err)
	}
}

func TestRun(t *testing.T) {
	out, errOut, r, err := Run(context.Background(), sh("echo out; echo err >&2; exit 5"), 100)
	if err != nil || r.ExitCode != 5 || string(out) != "out\n" || string(errOut) != "err\n" {
		t.Errorf("got %q, %q, %+v, %v", out, errOut, r, err)
	}
	out, _, r, err = Run(context.Background(), sh("i=0; while [ $i -lt 9999 ]; do echo 0123456789; i=$((i+1)); done; exit 6"), 100)
	if !errors.Is(err, ErrTooMuchOutput) || r.ExitCode != 6 || len(out) != 100 {
		t.Errorf("too much: %d bytes, %+v, %v", len(out), r, err)
	}
	if _, _, _, err := Run(context.Background(), Spec{Path: "/no/such"}, 100); !errors.Is(err, ErrUnusable) {
		t.Errorf("unusable: %v", err)
	}
}
