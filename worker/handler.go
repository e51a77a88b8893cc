package worker

import (
	"context"
	"io"
	"time"

	"beeyard"
)

// Handler makes slots that do tasks. Programs are handlers (see Process and
// Lines); so is anything else that can do one task at a time.
type Handler interface {
	// Check reports, before any task is claimed, whether it can run at all:
	// ErrUnusable with the reason.
	Check() error
	// Open makes one slot. A slot is never used for two tasks at once.
	Open() (Slot, error)
}

// Slot does one task after another.
type Slot interface {
	// Do does the task and returns how it went. It ends what it started, the
	// whole process tree, before it returns, and soon after ctx ends. Do
	// returns an error only for the worker's own fault: ErrUnusable when the
	// handler cannot run (the task is given back and the worker stops), anything
	// else when something was short (the task is given back and tried later).
	Do(ctx context.Context, j Job) (Done, error)
	Close() error
}

// Job is one task to do.
type Job struct {
	Claim   *beeyard.Claim
	Worker  string
	Timeout time.Duration // 0: none
	Grace   time.Duration
	// OpenLog opens the log of this attempt: capped, created when first called.
	OpenLog func() (Log, error)
	// Stage stores r as the task's output, for handlers that answer with it.
	Stage func(ctx context.Context, r io.Reader) error
}

// Log takes a handler's output.
type Log interface {
	io.Writer
	// Stderr is a writer to the same log whose end StderrTail returns.
	Stderr() io.Writer
	StderrTail(lines int) string
}

// Done is how a handler's run went.
type Done struct {
	ExitCode int
	Signal   string
	TimedOut bool
	OOM      bool
	Duration time.Duration
	Peak     int64 // bytes
	// Error is what a handler that stays said of its failure.
	Error string
	// Result, when the slot has it itself; else ResultPath is read.
	Result *beeyard.Result
	Stderr string // last lines
}
