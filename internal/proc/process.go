package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a started tree. Whoever waits for it first owns it, and sees to
// its end; timers and the context's hook only send signals.
type Process struct {
	pid   int
	grace time.Duration
	tree  tree
	os    *os.Process
	stdin *feeder
	begun time.Time
	oom   int64 // the machine's count of OOM kills at the start
	// ourPeak is this process's own peak, in KiB, at the start: Linux counts it
	// into the child's, which borrows our memory until it execs.
	ourPeak int64

	owned atomic.Bool
	// done is closed when result is final; stuck when KILL did not help.
	done, stuck chan struct{}
	result      Result

	mu sync.Mutex
	// exited: the leader has, and the result's cause is settled.
	exited   bool
	stopped  string
	timedOut bool
	// ending: TERM was sent, KILL follows at killAt.
	ending bool
	killAt time.Time
	// killed: KILL was sent to the leader by us, so it was not the OOM killer.
	killed bool
	// Timers and the context's hook, released when the leader has exited.
	timeout, killTimer, stuckTimer *time.Timer
	unhook                         func() bool
}

// Start starts a tree. It returns when the program runs (exec has succeeded).
// The tree is stopped when ctx ends, with the context's cause as the reason.
// Every started process must be waited for, by Wait or Done: until then nothing
// is done about what outlives its leader.
//
// Errors: ErrUnusable if the program cannot be run as it is; the context's
// cause; anything else is a shortage of the machine.
func Start(ctx context.Context, s Spec) (*Process, error) { return standard().start(ctx, s) }

func (c *controller) start(ctx context.Context, s Spec) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	if s.Dir != "" && s.Path != "" {
		// The child changes folder before it looks for the program.
		path, err := filepath.Abs(s.Path)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", s.Path, err)
		}
		s.Path = path
	}
	if s.Sandbox != nil {
		return c.startSandboxed(ctx, s)
	}
	return c.launch(ctx, s)
}

func (c *controller) launch(ctx context.Context, s Spec) (*Process, error) {
	stdin, err := newFeeder(s.Stdin, s.stdinFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	p := &Process{grace: s.Grace, stdin: stdin, begun: now(), oom: oomKills.baseline(), ourPeak: ownPeak(),
		done: make(chan struct{}), stuck: make(chan struct{})}
	if err := c.fork(p, s); err != nil {
		stdin.abort()
		return nil, err
	}
	stdin.run()
	p.mu.Lock()
	if s.Timeout > 0 {
		p.timeout = time.AfterFunc(s.Timeout, p.expire)
	}
	p.unhook = context.AfterFunc(ctx, func() { p.Stop(context.Cause(ctx).Error()) })
	p.mu.Unlock()
	return p, nil
}

// fork makes the tree and starts the leader in it.
func (c *controller) fork(p *Process, s Spec) error {
	t, err := c.newTree()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Path, err)
	}
	if err := forkExec(p, t, s); err != nil {
		t.release(true)
		return startError(s.Path, s.Dir, err)
	}
	return nil
}

// busyTries bounds the retries after ETXTBSY: a fork of this process may hold
// the program open for writing for the moment until it has exec'd, which is
// nobody's fault. Together about 200 ms.
const busyTries = 8

func forkExec(p *Process, t tree, s Spec) (err error) {
	sys := &syscall.SysProcAttr{}
	null, err := devNull()
	if err != nil {
		return err
	}
	files := append([]*os.File{p.stdin.child, s.Stdout, s.Stderr}, s.ExtraFiles...)
	for i := range files[:3] {
		if files[i] == nil {
			files[i] = null
		}
	}
	env := t.prepare(s.Env, sys)
	if env == nil {
		env = []string{} // nil would be the whole environment
	}
	attr := &os.ProcAttr{Dir: s.Dir, Env: env, Files: files, Sys: sys}
	argv := append([]string{s.Path}, s.Args...)
	pause := time.Millisecond
	for range busyTries {
		p.os, err = os.StartProcess(s.Path, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) {
			break
		}
		time.Sleep(pause)
		pause *= 2
	}
	if err != nil {
		return err
	}
	p.pid, p.tree = p.os.Pid, t
	t.started(p.pid)
	return nil
}

var devNull = sync.OnceValues(func() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) })

// PID is the leader's process id, and that of its group and session.
func (p *Process) PID() int { return p.pid }

// Done is closed when Wait would return at once with the tree gone. Calling it
// is as good as waiting, in a goroutine that ends with the tree.
func (p *Process) Done() <-chan struct{} {
	if p.owned.CompareAndSwap(false, true) {
		go p.own()
	}
	return p.done
}

// Wait returns when the leader has exited and nothing of its tree is left. It
// may be called more than once. Once the tree is being ended, by Stop, by the
// timeout or because its leader exited, it returns within the grace and
// killDelay, twice: what is stuck in the kernel is Abandoned.
func (p *Process) Wait() Result {
	if p.owned.CompareAndSwap(false, true) {
		p.own()
	}
	select {
	case <-p.done:
		return p.result
	case <-p.stuck:
	}
	select {
	case <-p.done:
		return p.result
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Result{ExitCode: -1, TimedOut: p.timedOut, Stopped: p.stopped, Abandoned: true, Duration: now().Sub(p.begun)}
}

// Stop ends the tree: TERM to all of it, KILL after the grace. It does not
// wait. The first cause is kept; after the leader has exited it changes
// nothing.
func (p *Process) Stop(cause string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return
	}
	if p.stopped == "" && !p.timedOut {
		p.stopped = cause
	}
	p.terminate()
}

// Kill is Stop without a grace. It also cuts short the grace of a Stop.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited && p.stopped == "" && !p.timedOut {
		p.stopped = "killed"
	}
	p.kill()
}

func (p *Process) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited || p.ending {
		return
	}
	p.timedOut = true
	p.terminate()
}

// terminate sends TERM and sets the time of KILL. The lock is held.
func (p *Process) terminate() {
	if p.ending {
		return
	}
	p.ending, p.killAt = true, now().Add(p.grace)
	if p.grace <= 0 {
		p.kill()
		return
	}
	p.tree.signal(unix.SIGTERM)
	// A stopped process does not act on TERM until it goes on.
	p.tree.signal(unix.SIGCONT)
	p.killTimer = time.AfterFunc(p.grace, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.kill()
	})
}

// kill sends KILL. The lock is held, so the leader's pid is still its own:
// own waits for it only under the lock.
func (p *Process) kill() {
	select {
	case <-p.done:
		return
	default:
	}
	p.ending = true
	p.killed = p.killed || !p.exited
	p.killAt = now()
	p.tree.signal(unix.SIGKILL)
	if p.stuckTimer == nil {
		p.stuckTimer = time.AfterFunc(2*killDelay, func() { close(p.stuck) })
	}
}
