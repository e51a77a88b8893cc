package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// feeder gives a child its standard input.
type feeder struct {
	child *os.File // the child's end; nil is /dev/null
	w     *os.File // ours, if there is a pipe
	rest  []byte   // what the pipe did not take at once
	done  chan struct{}
}

// newFeeder makes a pipe and fills it as far as it goes, so that a small input
// needs no goroutine: it fits whole, before the child exists.
func newFeeder(data []byte, file *os.File) (*feeder, error) {
	if file != nil || len(data) == 0 {
		return &feeder{child: file}, nil
	}
	child, w, fd, err := childPipe(true)
	if err != nil {
		return nil, err
	}
	f := &feeder{child: child, w: w, rest: data}
	for len(f.rest) > 0 {
		n, err := unix.Write(fd, f.rest)
		if n > 0 {
			f.rest = f.rest[n:]
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			break // full
		}
	}
	return f, nil
}

// run, after the child has started, writes what is left.
func (f *feeder) run() {
	if f.w == nil {
		return
	}
	f.child.Close()
	if len(f.rest) == 0 {
		f.w.Close()
		return
	}
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		// A child that closes its input or exits has read what it wanted:
		// EPIPE is no error. Nor is the deadline that close sets.
		f.w.Write(f.rest)
		f.w.Close()
	}()
}

// close ends the writing, when the tree is gone.
func (f *feeder) close() {
	if f.done != nil {
		f.w.SetWriteDeadline(time.Unix(1, 0))
		<-f.done
	}
}

// abort is instead of run, when there is no child.
func (f *feeder) abort() {
	if f.w != nil {
		f.child.Close()
		f.w.Close()
	}
}
