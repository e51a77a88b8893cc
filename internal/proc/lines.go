package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// MaxLine bounds a request and an answer of a LineProcess, in bytes.
const MaxLine = 16 << 20

// pipeHolds is what an empty pipe takes without its reader's help.
const pipeHolds = 4 << 10

// ErrDied is matched by the error of a Do after which the process is gone, for
// whatever reason: it exited, took too long, was stopped, or broke the rule of
// one line for each line.
var ErrDied = errors.New("line process is gone")

// DiedError says how a line process ended. Result.TimedOut and Result.Stopped
// tell a timeout and a stop from a death.
type DiedError struct {
	Result Result
	Reason string
}

func (e *DiedError) Error() string {
	r := e.Result
	switch {
	case r.Signal != "":
		return fmt.Sprintf("%v: %s (%s)", ErrDied, e.Reason, r.Signal)
	default:
		return fmt.Sprintf("%v: %s (exit %d)", ErrDied, e.Reason, r.ExitCode)
	}
}

func (e *DiedError) Is(target error) bool { return target == ErrDied }

// LineProcess is a child that stays: one line in, one line out, one at a time.
type LineProcess struct {
	p      *Process
	in     *os.File
	out    *lineReader
	stderr *Capture
	log    switchWriter

	doing sync.Mutex
	once  sync.Once
	end   Result
}

// StartLines starts s as a LineProcess. Its Stdin, Stdout, Stderr and Timeout
// are not used. ctx stops it, as with Start. Close must be called.
func StartLines(ctx context.Context, s Spec) (*LineProcess, error) {
	return standard().startLines(ctx, s)
}

func (c *controller) startLines(ctx context.Context, s Spec) (*LineProcess, error) {
	l := &LineProcess{}
	var err error
	if l.stderr, err = NewCapture(nil, &l.log); err != nil {
		return nil, err
	}
	childIn, in, _, err := childPipe(true)
	if err != nil {
		l.stderr.Close()
		return nil, err
	}
	// Without our copies, the ends of the pipes are seen when the child's are
	// closed.
	defer childIn.Close()
	childOut, out, _, err := childPipe(false)
	if err != nil {
		in.Close()
		l.stderr.Close()
		return nil, err
	}
	defer childOut.Close()
	s.Stdin, s.stdinFile, s.Stdout, s.Stderr, s.Timeout = nil, childIn, childOut, l.stderr.Stderr(), 0
	if l.p, err = c.start(ctx, s); err != nil {
		in.Close()
		out.Close()
		l.stderr.Close()
		return nil, err
	}
	l.in, l.out = in, newLineReader(out, l.p.Kill)
	return l, nil
}

// PID is the leader's.
func (l *LineProcess) PID() int { return l.p.PID() }

// SetStderr sends what the child writes to stderr from now on to w; what it
// wrote before has gone to the writer before. Nil drops it.
func (l *LineProcess) SetStderr(w io.Writer) {
	l.stderr.Sync()
	l.log.set(w)
}

// Do sends a line, which must hold no line feed, and returns the child's
// answer without its line feed. A timeout of 0 is none. After any error that
// matches ErrDied the tree is gone; other errors changed nothing.
func (l *LineProcess) Do(ctx context.Context, line []byte, timeout time.Duration) ([]byte, error) {
	switch {
	case len(line) > MaxLine:
		return nil, fmt.Errorf("send line: %d bytes, more than %d", len(line), MaxLine)
	case bytes.IndexByte(line, '\n') >= 0:
		return nil, errors.New("send line: it holds a line feed")
	}
	l.doing.Lock()
	defer l.doing.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var expired <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		expired = t.C
	}
	l.out.asked.Store(true)
	sent, gone := l.send(line), l.p.Done()
	var answer []byte
	for sent != nil || answer == nil {
		select {
		case answer = <-l.out.lines:
		case <-sent:
			sent = nil
		case <-gone:
			// Its last words may be an answer that is still to be read. The end
			// of the output follows, unless a stray process holds it open.
			gone = nil
			l.out.f.SetReadDeadline(now().Add(lastWords))
		case <-l.out.done:
			select {
			case answer = <-l.out.lines:
			default:
			}
			if answer != nil {
				return answer, nil
			}
			l.exits(lastWords)
			return nil, l.died(l.out.err.Error())
		case <-expired:
			l.p.expire()
			return nil, l.died(fmt.Sprintf("no answer within %v", timeout))
		case <-ctx.Done():
			l.p.Stop(context.Cause(ctx).Error())
			return nil, l.died(context.Cause(ctx).Error())
		}
	}
	return answer, nil
}

// lastWords bounds how long the output of a process that is gone is read, and
// how long one that closed its output may take to exit by itself.
const lastWords = time.Second

var alreadySent = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// send writes the line; the channel is closed when that is done. A failed
// write is not reported: then the child is dying, which says more. A long line
// goes in the background, because a child may answer before it has read all.
func (l *LineProcess) send(line []byte) <-chan struct{} {
	line = append(append(make([]byte, 0, len(line)+1), line...), '\n')
	if len(line) <= pipeHolds {
		l.in.Write(line)
		return alreadySent
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		l.in.Write(line)
	}()
	return sent
}

func (l *LineProcess) died(reason string) error {
	return &DiedError{Result: l.finish(), Reason: reason}
}

// Kill ends the tree at once; a Do under way returns ErrDied.
func (l *LineProcess) Kill() { l.p.Kill() }

// Stop ends the tree with a grace; a Do under way returns ErrDied.
func (l *LineProcess) Stop(cause string) { l.p.Stop(cause) }

// Close closes the child's input and gives it the grace to exit by itself,
// then stops it. It returns how it ended, which is the same each time. It must
// not be called while Do runs.
func (l *LineProcess) Close() Result {
	l.in.Close()
	l.exits(l.p.grace)
	return l.finish()
}

// exits waits for a process that is expected to exit by itself.
func (l *LineProcess) exits(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-l.p.Done():
	case <-t.C:
	}
}

func (l *LineProcess) finish() Result {
	l.once.Do(func() {
		select {
		case <-l.p.Done():
		default:
			l.p.Stop("closed")
		}
		l.end = l.p.Wait()
		l.in.Close()
		l.out.close()
		l.stderr.Close()
	})
	return l.end
}

// switchWriter is a writer that can be exchanged.
type switchWriter struct{ to atomic.Pointer[io.Writer] }

func (s *switchWriter) set(w io.Writer) {
	if w == nil {
		w = io.Discard
	}
	s.to.Store(&w)
}

func (s *switchWriter) Write(b []byte) (int, error) {
	if w := s.to.Load(); w != nil {
		return (*w).Write(b)
	}
	return len(b), nil
}
