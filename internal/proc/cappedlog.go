package proc

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// DefaultLogCap is what a log may take when nothing else is said.
const DefaultLogCap = 10 << 20

const (
	// logTail is how much of the end is kept, at most a quarter of the cap.
	logTail = 1 << 20
	// snapshotEvery bounds how much of the end a killed worker loses.
	snapshotEvery = time.Second
	cutMark       = "\n[... %15d bytes left out here: the log is capped ...]\n"
)

var cutMarkLen = len(fmt.Sprintf(cutMark, 0))

// CappedLog writes output to a file of bounded size: all of it while it fits,
// else its beginning and its end with a mark between that says how much is
// missing. Memory is bounded by the kept end.
//
// Output is in the file as soon as it was written to the log, until the cap is
// reached; then the end is brought up to date once a second and by Close, in
// place. So a reader may follow, and a worker that is killed leaves what it
// had. A Write never fails: a full disk must not end the program that writes.
// The first error is Close's.
type CappedLog struct {
	f    io.WriterAt
	head int64 // bytes before the mark
	max  int64

	mu    sync.Mutex
	total int64 // bytes written to the log
	tail  ring
	err   error
	timer *time.Timer
	armed bool // timer is set

	stderr ring
}

// stderrKept bounds what StderrTail can return.
const stderrKept = 64 << 10

// NewCappedLog writes to f from its offset 0 on, at most limit bytes; 0 is
// DefaultLogCap. f stays the caller's to close, after Close. It must not be
// open for appending.
func NewCappedLog(f io.WriterAt, limit int64) *CappedLog {
	if limit <= 0 {
		limit = DefaultLogCap
	}
	limit = max(limit, int64(4*cutMarkLen))
	tail := min(logTail, limit/4)
	l := &CappedLog{f: f, max: limit, head: limit - tail - int64(cutMarkLen)}
	l.tail.max, l.stderr.max = int(tail), stderrKept
	l.timer = time.AfterFunc(time.Hour, l.tick)
	l.timer.Stop()
	return l
}

// Write adds to the log. It always reports success.
func (l *CappedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(b)
	return len(b), nil
}

// Stderr is a writer to the same log whose last lines StderrTail returns.
func (l *CappedLog) Stderr() io.Writer { return stderrWriter{l} }

type stderrWriter struct{ l *CappedLog }

func (w stderrWriter) Write(b []byte) (int, error) {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.stderr.add(b)
	w.l.add(b)
	return len(b), nil
}

func (l *CappedLog) add(b []byte) {
	start := l.total
	l.total += int64(len(b))
	// What lies behind the head may yet be cut, or may be the end.
	if behind := l.total - l.head; behind > 0 {
		l.tail.add(b[max(0, int64(len(b))-behind):])
	}
	if start < l.max {
		fits := b[:min(int64(len(b)), l.max-start)]
		l.put(fits, start)
	}
	if l.total > l.max && !l.armed {
		l.armed = true
		l.timer.Reset(snapshotEvery)
	}
}

func (l *CappedLog) put(b []byte, at int64) {
	if _, err := l.f.WriteAt(b, at); err != nil && l.err == nil {
		l.err = fmt.Errorf("write log: %w", err)
	}
}

func (l *CappedLog) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed {
		l.armed = false
		l.end()
	}
}

// end writes mark and tail over what follows the head. Both have the same
// length each time, which is why nothing needs truncating.
func (l *CappedLog) end() {
	if l.total <= l.max {
		return
	}
	a, b := l.tail.parts()
	cut := l.total - l.head - int64(len(a)+len(b))
	at := l.head
	for _, part := range [][]byte{fmt.Appendf(nil, cutMark, cut), a, b} {
		l.put(part, at)
		at += int64(len(part))
	}
}

// Close brings the end of the file up to date. It returns the first error of
// writing, after which the file lacks something. The file is not closed.
func (l *CappedLog) Close() error {
	l.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	l.end()
	return l.err
}

// Total is how many bytes were written to the log, kept or not.
func (l *CappedLog) Total() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// StderrTail returns the last n lines written to Stderr, of at most 64 KiB in
// all, without the last line's end. Bytes are as they came.
func (l *CappedLog) StderrTail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stderr.lastLines(n)
}
