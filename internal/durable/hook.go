package durable

import "io/fs"

// Op is one operation on a Dir or a File, as hooks see it.
type Op struct {
	Op      string // one of the Op constants
	Dir     string // path of the folder, or of the one a file is in
	Name    string // "" for an operation on the folder itself
	To      string // path of the folder moved to
	NewName string
}

// The operations of a Dir. Reading a file whole is one operation.
const (
	OpOpen       = "open"
	OpCreate     = "create"
	OpAppend     = "append"
	OpReadFile   = "readfile"
	OpStat       = "stat"
	OpExists     = "exists"
	OpRename     = "rename"
	OpRenameExcl = "renameexcl"
	OpLink       = "link"
	OpRemove     = "remove"
	OpMkdir      = "mkdir"
	OpRmdir      = "rmdir"
	OpOpenDir    = "opendir"
	OpEach       = "each"
	OpTouch      = "touch"
	OpChtimes    = "chtimes"
	OpChmod      = "chmod"
	OpLock       = "lock"
	OpInfo       = "info"
	OpSyncDir    = "syncdir"
	OpSyncFS     = "syncfs"
	OpCloseDir   = "closedir"
)

// The operations of a File.
const (
	OpRead     = "read"
	OpWrite    = "write"
	OpSeek     = "seek"
	OpSync     = "sync"
	OpFstat    = "fstat"
	OpTruncate = "truncate"
	OpFtouch   = "ftouch"
	OpTryLock  = "trylock"
	OpClose    = "close"
)

// Hooks are called around each operation of a Dir and of what is opened from
// it, from the goroutine of the caller; they may block, count and fail it.
type Hooks struct {
	// Before makes the operation fail with its error, undone. A *ShortWrite
	// lets part of a write through first. Closing happens all the same: there
	// is no such thing as a close that was not done.
	Before func(Op) error
	// After decides what a done operation answers: an error for one that
	// succeeded is a server that did it and said no.
	After func(Op, error) error
}

// ShortWrite is an error for Before of OpWrite: the first N bytes are written.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return e.Err.Error() }
func (e *ShortWrite) Unwrap() error { return e.Err }

// WithHooks puts hooks around a Dir and around every Dir and File opened from it.
func WithHooks(d Dir, h Hooks) Dir {
	if h.Before == nil {
		h.Before = func(Op) error { return nil }
	}
	if h.After == nil {
		h.After = func(_ Op, err error) error { return err }
	}
	return &hookedDir{dir: d, h: &h}
}

// Hooked is WithHooks of a Before only.
func Hooked(d Dir, before func(Op) error) Dir { return WithHooks(d, Hooks{Before: before}) }

// HookedAfter is WithHooks of an After only.
func HookedAfter(d Dir, after func(Op, error) error) Dir { return WithHooks(d, Hooks{After: after}) }

// run does one operation between its hooks.
func (h *Hooks) run(op Op, do func() error) error {
	if err := h.Before(op); err != nil {
		return op.fail(err)
	}
	return h.After(op, do())
}

// end is run for an operation that cannot be left undone.
func (h *Hooks) end(op Op, do func() error) error {
	before := h.Before(op)
	err := do()
	if before != nil {
		return op.fail(before)
	}
	return h.After(op, err)
}

// fail dresses an injected error as the system's are.
func (op Op) fail(err error) error {
	return &fs.PathError{Op: op.Op, Path: op.Dir + "/" + op.Name, Err: err}
}
