package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var cutPattern = regexp.MustCompile(`\n\[\.\.\. +(\d+) bytes left out here: the log is capped \.\.\.\]\n`)

// memFile is a file in memory.
type memFile struct{ b []byte }

func (m *memFile) WriteAt(p []byte, off int64) (int, error) {
	if need := int(off) + len(p); need > len(m.b) {
		m.b = append(m.b, make([]byte, need-len(m.b))...)
	}
	return copy(m.b[off:], p), nil
}

// For any writes: what fits is kept whole; what does not has its head and its
// tail, and the mark accounts for each byte between.
func TestCappedLogKeepsHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := int64(rapid.IntRange(0, 2000).Draw(t, "limit"))
		f := &memFile{}
		l := NewCappedLog(f, limit)
		if limit == 0 {
			limit = DefaultLogCap
		}
		limit = max(limit, int64(4*cutMarkLen))
		var all []byte
		for i, n := range rapid.SliceOf(rapid.IntRange(0, 700)).Draw(t, "sizes") {
			chunk := bytes.Repeat([]byte{byte('a' + i%26)}, n)
			for j := range chunk {
				if (len(all)+j)%9 == 8 {
					chunk[j] = '\n'
				}
			}
			all = append(all, chunk...)
			if n, err := l.Write(chunk); n != len(chunk) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
			if rapid.Bool().Draw(t, "snapshot") {
				l.armed = true
				l.tick()
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l.Total() != int64(len(all)) {
			t.Fatalf("total %d, want %d", l.Total(), len(all))
		}
		if int64(len(all)) <= limit {
			if !bytes.Equal(f.b, all) {
				t.Fatalf("%d bytes within the cap of %d were changed", len(all), limit)
			}
			return
		}
		if int64(len(f.b)) != limit {
			t.Fatalf("file has %d bytes, want the cap of %d", len(f.b), limit)
		}
		at := cutPattern.FindSubmatchIndex(f.b)
		if at == nil {
			t.Fatalf("no mark in %q", f.b)
		}
		cut, _ := strconv.Atoi(string(f.b[at[2]:at[3]]))
		head, tail := f.b[:at[0]], f.b[at[1]:]
		if !bytes.HasPrefix(all, head) || !bytes.HasSuffix(all, tail) || len(head)+cut+len(tail) != len(all) {
			t.Fatalf("head %d, cut %d, tail %d of %d", len(head), cut, len(tail), len(all))
		}
		if len(tail) < int(limit)/5 {
			t.Fatalf("tail of %d bytes under a cap of %d", len(tail), limit)
		}
	})
}

func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ring{max: rapid.IntRange(1, 40).Draw(t, "max")}
		var all []byte
		for i, n := range rapid.SliceOf(rapid.IntRange(0, 60)).Draw(t, "sizes") {
			chunk := bytes.Repeat([]byte{byte('a' + i%26)}, n)
			all = append(all, chunk...)
			r.add(chunk)
		}
		a, b := r.parts()
		got := append(append([]byte(nil), a...), b...)
		if want := all[max(0, len(all)-r.max):]; !bytes.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestStderrTail(t *testing.T) {
	l := NewCappedLog(&memFile{}, 0)
	defer l.Close()
	io.WriteString(l, "out 1\n")
	io.WriteString(l.Stderr(), "err 1\nerr 2\n")
	io.WriteString(l, "out 2\n")
	io.WriteString(l.Stderr(), "err 3\nlast, no newline")
	for n, want := range map[int]string{
		0: "", 1: "last, no newline", 2: "err 3\nlast, no newline",
		99: "err 1\nerr 2\nerr 3\nlast, no newline",
	} {
		if got := l.StderrTail(n); got != want {
			t.Errorf("%d lines: %q, want %q", n, got, want)
		}
	}
	io.WriteString(l.Stderr(), strings.Repeat("x", 3*stderrKept))
	if got := l.StderrTail(5); len(got) != stderrKept {
		t.Errorf("kept %d bytes of one long line, want %d", len(got), stderrKept)
	}
}

// A reader sees output at once while it fits, and a killed worker leaves it;
// the end is in the file without Close too.
func TestCappedLogIsLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	l := NewCappedLog(f, 1000)
	defer l.Close()
	for i := range 20 {
		fmt.Fprintf(l, "line %d\n", i)
		if got := read(); !strings.HasSuffix(got, fmt.Sprintf("line %d\n", i)) {
			t.Fatalf("line %d is not in the file: %q", i, got)
		}
	}
	for i := range 1000 {
		fmt.Fprintf(l, "more %d\n", i)
	}
	eventually(t, "the end is in the file", func() bool {
		got := read()
		return strings.HasSuffix(got, "more 999\n") && strings.HasPrefix(got, "line 0\n") && cutPattern.MatchString(got)
	})
}

type fullFile struct{ memFile }

var errFull = errors.New("no space left on device")

func (f *fullFile) WriteAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > 100 {
		return 0, errFull
	}
	return f.memFile.WriteAt(p, off)
}

// A full disk is Close's to report: the program that prints goes on.
func TestCappedLogOnAFullDisk(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		f := &fullFile{}
		l := NewCappedLog(f, 0)
		cap, err := NewCapture(l, l.Stderr())
		if err != nil {
			t.Fatal(err)
		}
		s := sh("echo first; i=0; while [ $i -lt 5000 ]; do echo $i; i=$((i+1)); done; echo last >&2; exit 7")
		s.Stdout, s.Stderr = cap.Stdout(), cap.Stderr()
		r := c.mustRun(t, s)
		if err := cap.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); !errors.Is(err, errFull) {
			t.Errorf("Close: %v, want the disk's error", err)
		}
		if r.ExitCode != 7 || l.StderrTail(1) != "last" || l.Total() < 5000 {
			t.Errorf("got %+v, stderr %q, %d bytes", r, l.StderrTail(1), l.Total())
		}
	})
}
