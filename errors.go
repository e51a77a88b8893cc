package beeyard

import (
	"errors"
	"strings"
)

// Sentinels to branch on with errors.Is. Each has one exit code at the command
// line (see docs/cli.md) and one status at the other doors.
var (
	ErrUsage      = errors.New("invalid request")           // 2
	ErrNotFound   = errors.New("not found")                 // 3
	ErrExists     = errors.New("already exists")            // 4
	ErrConflict   = errors.New("conflict")                  // 4
	ErrClaimLost  = errors.New("claim lost")                // 5
	ErrLocked     = errors.New("locked by another")         // 6
	ErrCorrupt    = errors.New("corrupt")                   // 7
	ErrTimeout    = errors.New("timed out")                 // 8
	ErrNotAllowed = errors.New("not permitted")             // 9
	ErrCycle      = errors.New("dependencies form a cycle") // 4
	ErrNotTask    = errors.New("not a task file")           // 7
	ErrUnusable   = errors.New("handler cannot run")        // 9
	ErrWorkerLive = errors.New("worker id is live")         // 6
)

// Error is what people and agents read: what was attempted, on what, why it
// failed and a safe next step. Hint never holds a destructive command.
type Error struct {
	Op   string // the verb that failed: "enqueue"
	ID   string // the task, run or worker concerned
	Err  error  // wraps a sentinel above
	Hint string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.ID != "" {
		b.WriteString(" ")
		b.WriteString(Quote(e.ID))
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// HintOf is the next step of the first Error in the chain that names one.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// reasonError pairs a sentinel with its particulars; the sentinel is found by
// errors.Is and its words are not said twice.
type reasonError struct {
	sentinel error
	reason   string
}

func (e *reasonError) Error() string { return e.reason }
func (e *reasonError) Unwrap() error { return e.sentinel }

// Because makes an error that reads as reason and is sentinel to errors.Is.
func Because(sentinel error, reason string) error { return &reasonError{sentinel, reason} }
