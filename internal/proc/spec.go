package proc

import (
	"os"
	"time"
)

// Spec describes one process and the limits of its tree.
type Spec struct {
	// Path is the program, absolute or relative to the current folder; it is
	// not looked up in PATH (see Lookup).
	Path string
	// Args are the arguments after the program's name. They are visible to
	// every user of the machine: data belongs into Stdin.
	Args []string
	// Env is the whole environment; nil is empty, not inherited.
	Env []string
	Dir string

	// Stdin is written in the background. A program that does not read it, or
	// not all of it, is no error. Nil is /dev/null.
	Stdin []byte
	// Stdout and Stderr are given to the child as they are; nil is /dev/null.
	// A pipe must have a reader that outlives the tree: see Capture.
	Stdout, Stderr *os.File
	// ExtraFiles become descriptors 3 and up. Nothing else is inherited.
	ExtraFiles []*os.File

	// Timeout ends the tree; 0 is no limit.
	Timeout time.Duration
	// Grace is the time between TERM and KILL; 0 kills at once.
	Grace time.Duration

	// Sandbox, if not nil, restricts the tree before the program runs.
	Sandbox *Sandbox

	// stdinFile replaces Stdin, for a child that is talked with.
	stdinFile *os.File
}

// Result says how a tree ended.
type Result struct {
	// ExitCode is the leader's, or -1 if a signal ended it.
	ExitCode int
	// Signal is the name of the signal that ended the leader, such as
	// "SIGKILL", or empty.
	Signal string
	// TimedOut is true when Timeout passed before the leader had exited,
	// whatever it then exited with.
	TimedOut bool
	// Stopped is the cause given to Stop, or the context's, when that came
	// before the leader had exited.
	Stopped string
	// OOM is true when the kernel's out-of-memory killer is the likely reason:
	// certain with a cgroup that has the memory controller, otherwise a hint.
	OOM bool
	// Duration is from the start of the leader to the end of the tree.
	Duration time.Duration
	// PeakMemory is in bytes: of the whole tree where the cgroup counts it,
	// otherwise of its largest process among those waited for. 0 is not known:
	// without the cgroup's count, a process that stayed smaller than this one
	// ever was cannot be told from it.
	PeakMemory int64
	// CPU is user plus system time: of the whole tree in a cgroup, otherwise of the
	// leader and the descendants that were waited for.
	CPU time.Duration
	// Leftovers counts the processes that outlived the leader and were killed.
	Leftovers int
	// Abandoned is true when something did not even end after KILL (a process
	// stuck in the kernel, on a dead network file system for example). It may
	// still run; ExitCode is -1 if it is the leader.
	Abandoned bool
}

// OK reports an exit code of 0 that nothing overruled.
func (r Result) OK() bool {
	return r.ExitCode == 0 && r.Signal == "" && !r.TimedOut && r.Stopped == "" && !r.Abandoned
}

const (
	// leftoverGrace bounds the TERM→KILL time of processes that outlive a
	// leader which exited by itself: the result is known, and whoever waits
	// should not wait for a daemon's manners.
	leftoverGrace = time.Second
	// killDelay is how long a killed tree may take to disappear before it is
	// given up as stuck in the kernel.
	killDelay = 3 * time.Second
)
