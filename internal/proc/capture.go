package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Capture gives a child pipes for its output and copies what comes to writers.
//
// It never holds a child up longer than its writers do, never waits for a
// process that keeps a pipe open, and a write error of a writer stops neither
// the child nor the copying: see Close.
type Capture struct {
	out, err *drain
	closed   sync.Once
	cause    error
}

// drainLimit bounds what Close still reads from a pipe whose other end some
// stray process keeps filling: many times what a pipe holds.
const drainLimit = 4 << 20

// NewCapture makes the pipes. If both writers are the same, there is one pipe
// for both, and the order of the child's writes is kept; with two, it is kept
// within each. Writers are called by one goroutine each, and must return soon.
// A nil writer is /dev/null.
func NewCapture(stdout, stderr io.Writer) (*Capture, error) {
	c := &Capture{}
	var err error
	if stdout != nil {
		if c.out, err = newDrain(stdout); err != nil {
			return nil, err
		}
	}
	switch {
	case stderr == nil:
	case stderr == stdout:
		c.err = c.out
	default:
		if c.err, err = newDrain(stderr); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Stdout and Stderr are for Spec. They are closed by Close.
func (c *Capture) Stdout() *os.File { return c.out.childEnd() }
func (c *Capture) Stderr() *os.File { return c.err.childEnd() }

// Sync returns when everything that was written to the pipes before it was
// called has been given to the writers.
func (c *Capture) Sync() {
	for _, d := range c.drains() {
		d.sync()
	}
}

// Close takes what is left in the pipes and closes them. It does not wait for
// their other ends to be closed: call it after Wait. It returns the first
// error of a writer.
func (c *Capture) Close() error {
	c.closed.Do(func() {
		var errs []error
		for _, d := range c.drains() {
			errs = append(errs, d.close())
		}
		c.cause = errors.Join(errs...)
	})
	return c.cause
}

func (c *Capture) drains() []*drain {
	var ds []*drain
	if c.out != nil {
		ds = append(ds, c.out)
	}
	if c.err != nil && c.err != c.out {
		ds = append(ds, c.err)
	}
	return ds
}

// drain is one pipe and the goroutine that reads it.
type drain struct {
	to    io.Writer
	child *os.File
	r     *os.File
	fd    int // r's, for reads that do not wait
	err   error

	// asking is held by whoever sets the deadline: a second one would have its
	// deadline taken away by the answer to the first.
	asking  sync.Mutex
	syncs   chan chan struct{}
	closing chan struct{}
	done    chan struct{}
}

func newDrain(to io.Writer) (*drain, error) {
	child, r, fd, err := childPipe(false)
	if err != nil {
		return nil, err
	}
	d := &drain{to: to, child: child, r: r, fd: fd,
		syncs: make(chan chan struct{}), closing: make(chan struct{}), done: make(chan struct{})}
	go d.run()
	return d, nil
}

func (d *drain) childEnd() *os.File {
	if d == nil {
		return nil
	}
	return d.child
}

var drainBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// run reads until the end of the pipe or until it is told to close. Whoever
// wants its attention sets the read deadline, which is the only way to wake a
// goroutine that waits in Read.
func (d *drain) run() {
	defer close(d.done)
	buf := drainBuffers.Get().(*[64 << 10]byte)
	defer drainBuffers.Put(buf)
	for {
		n, err := d.r.Read(buf[:])
		d.write(buf[:n])
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return // end of file
		}
		d.now(buf[:])
		select {
		case <-d.closing:
			return
		case ack := <-d.syncs:
			d.r.SetReadDeadline(time.Time{})
			close(ack)
		}
	}
}

// now reads what is there, without waiting. Read would refuse, since the
// deadline has passed.
func (d *drain) now(buf []byte) {
	for got := 0; got < drainLimit; {
		n, err := unix.Read(d.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			return
		}
		d.write(buf[:n])
		got += n
	}
}

func (d *drain) write(b []byte) {
	if len(b) == 0 {
		return
	}
	if _, err := d.to.Write(b); err != nil && d.err == nil {
		d.err = err
	}
}

func (d *drain) sync() {
	d.asking.Lock()
	defer d.asking.Unlock()
	ack := make(chan struct{})
	d.r.SetReadDeadline(time.Unix(1, 0))
	select {
	case d.syncs <- ack:
		<-ack
	case <-d.done:
	}
}

func (d *drain) close() error {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.child.Close()
	close(d.closing)
	d.r.SetReadDeadline(time.Unix(1, 0))
	<-d.done
	d.r.Close()
	return d.err
}
