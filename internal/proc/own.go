package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// own follows the tree from start to end. Order matters: the leader's exit is
// seen without reaping it, then the rest of the tree is ended, and only then
// the leader is reaped, because its zombie is what keeps its pid, group and
// session ids from being given to strangers.
//
// It runs in the goroutine of whoever waits: another one would cost a switch
// of threads for every process. Only what is stuck gets a goroutine, which
// lives until the kernel lets go of the process.
func (p *Process) own() {
	if p.waitExit() {
		p.finish()
		return
	}
	go func() {
		for !p.waitExit() {
		}
		p.finish()
	}()
}

// stuckTick is how often a wait looks whether it should be given up.
const stuckTick = 1000 // milliseconds

// waitExit waits for the leader's exit and leaves it a zombie. It returns
// false after a tick if the process is stuck.
func (p *Process) waitExit() bool {
	exited := false
	err := p.os.WithHandle(func(pidfd uintptr) {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		for !exited {
			n, err := unix.Poll(fds, stuckTick)
			exited = n > 0 || (err != nil && !errors.Is(err, unix.EINTR))
			select {
			case <-p.stuck:
				return
			default:
			}
		}
	})
	for err != nil && !exited {
		// Before Linux 5.4 there is no pidfd, and this wait has no bound.
		werr := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		exited = !errors.Is(werr, unix.EINTR)
	}
	return exited
}

func (p *Process) finish() {
	p.mu.Lock()
	p.exited = true
	p.release()
	p.mu.Unlock()

	left, empty := p.endRest()
	p.stdin.close()

	p.mu.Lock()
	defer p.mu.Unlock()
	state, err := p.os.Wait()
	p.result = p.judge(state, err, left, empty)
	if p.killTimer != nil {
		p.killTimer.Stop()
	}
	if p.stuckTimer != nil {
		p.stuckTimer.Stop()
	}
	p.tree.account(&p.result)
	p.tree.release(empty)
	close(p.done)
}

// release lets go of what could still change the cause. The lock is held.
func (p *Process) release() {
	if p.timeout != nil {
		p.timeout.Stop()
	}
	p.unhook()
}

// endRest ends what outlived the leader. It reports how much that was, and
// whether all of it is gone.
func (p *Process) endRest() (left int, empty bool) {
	rest, err := p.tree.rest()
	if err == nil && len(rest) == 0 {
		return 0, true
	}
	left = len(rest)
	p.mu.Lock()
	limit := p.killAt.Sub(now())
	if !p.ending {
		limit = min(p.grace, leftoverGrace)
		p.ending = true
		p.tree.signal(unix.SIGTERM)
		p.tree.signal(unix.SIGCONT)
	}
	p.mu.Unlock()
	if limit > 0 && poll(limit, func() bool {
		rest, err = p.tree.rest()
		for _, st := range rest {
			if st.missedTERM() {
				st.kill(unix.SIGTERM)
				st.kill(unix.SIGCONT)
			}
		}
		return err == nil && len(rest) == 0
	}) {
		return left, true
	}
	// Again and again: without a cgroup, a process that forks while the list
	// is read is missed by one round.
	return left, poll(killDelay, func() bool {
		if rest, err = p.tree.rest(); err == nil && len(rest) == 0 {
			return true
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.tree.signal(unix.SIGKILL)
		return false
	})
}

func (p *Process) judge(state *os.ProcessState, err error, left int, empty bool) Result {
	r := Result{ExitCode: -1, TimedOut: p.timedOut, Stopped: p.stopped, Leftovers: left,
		Abandoned: !empty, Duration: now().Sub(p.begun)}
	if err != nil || state == nil {
		// Someone else reaped the leader: its exit code is lost, and a lost
		// exit code is no success.
		r.Abandoned = true
		return r
	}
	r.ExitCode = state.ExitCode()
	r.CPU = state.UserTime() + state.SystemTime()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Signal = unix.SignalName(ws.Signal())
	}
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok && ru.Maxrss > p.ourPeak {
		r.PeakMemory = ru.Maxrss * 1024
	}
	if r.Signal == "SIGKILL" && !p.killed {
		r.OOM = oomKills.since(p.oom)
	}
	return r
}
