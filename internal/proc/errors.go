package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrUnusable is what an error matches when a program cannot be run as it is,
// now or later: the fault is in the program or its configuration.
var ErrUnusable = errors.New("program cannot be run")

// UnusableError names the program and the reason. It matches ErrUnusable and,
// where there is one, the system's error.
type UnusableError struct {
	Path   string
	Reason string
	Err    error
}

func (e *UnusableError) Error() string { return fmt.Sprintf("cannot run %s: %s", e.Path, e.Reason) }

func (e *UnusableError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnusable}
	}
	return []error{ErrUnusable, e.Err}
}

func unusable(path, reason string, err error) error {
	return &UnusableError{Path: path, Reason: reason, Err: err}
}

// startError sorts an error of fork and exec. What is the program's fault
// becomes ErrUnusable; a shortage (EAGAIN, ENOMEM, EMFILE, E2BIG) stays what
// it is, because the same program may start in a minute.
func startError(path, dir string, err error) error {
	if dir != "" {
		// The kernel reports a bad folder and a bad program alike.
		if fi, derr := os.Stat(dir); derr != nil || !fi.IsDir() {
			return fmt.Errorf("start %s: working folder %s: %w", path, dir, errors.Join(derr, err))
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP),
		errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EISDIR),
		errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.ELIBBAD), errors.Is(err, syscall.ETXTBSY),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		// Preflight explains better than the errno does: ENOENT is also what a
		// missing interpreter looks like.
		var known *UnusableError
		if perr := Preflight(path); errors.As(perr, &known) {
			return &UnusableError{Path: path, Reason: known.Reason, Err: err}
		}
		return unusable(path, reason(err), err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}

func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a program for this machine nor a script with a #! line"
	case errors.Is(err, syscall.ETXTBSY):
		return "some process still has it open for writing"
	case errors.Is(err, syscall.EACCES):
		return "no permission to run it (its run bit, a folder above it, or a noexec mount)"
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}
