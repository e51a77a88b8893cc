package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"beeyard"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes, stable; docs/cli.md has them for users.
const (
	exitOK         = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotFound   = 3
	exitConflict   = 4
	exitClaimLost  = 5
	exitLocked     = 6
	exitCorrupt    = 7
	exitTimeout    = 8
	exitNotAllowed = 9
)

// exitError ends the program with a code; err may be nil where the output has
// said everything (a failed task after `wait`).
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

// silent ends with a code and says nothing more.
func silent(code int) error { return &exitError{code: code} }

// codes maps the domain's errors; the first match counts.
var codes = []struct {
	is   error
	code int
	name string
}{
	{beeyard.ErrClaimLost, exitClaimLost, "claim_lost"},
	{beeyard.ErrUsage, exitUsage, "usage"},
	{beeyard.ErrNotFound, exitNotFound, "not_found"},
	{beeyard.ErrExists, exitConflict, "exists"},
	{beeyard.ErrCycle, exitConflict, "cycle"},
	{beeyard.ErrConflict, exitConflict, "conflict"},
	{beeyard.ErrLocked, exitLocked, "locked"},
	{beeyard.ErrWorkerLive, exitLocked, "worker_live"},
	{beeyard.ErrCorrupt, exitCorrupt, "corrupt"},
	{beeyard.ErrNotTask, exitCorrupt, "not_a_task"},
	{beeyard.ErrTimeout, exitTimeout, "timeout"},
	{context.DeadlineExceeded, exitTimeout, "timeout"},
	{beeyard.ErrUnusable, exitNotAllowed, "handler_unusable"},
	{beeyard.ErrNotAllowed, exitNotAllowed, "not_permitted"},
	{fs.ErrPermission, exitNotAllowed, "not_permitted"}, // the system's own, where nobody has put it in words
	{syscall.EROFS, exitNotAllowed, "not_permitted"},
}

func codeOf(err error) (code int, name string) {
	if err == nil {
		return exitOK, ""
	}
	var e *exitError
	if errors.As(err, &e) && e.code != 0 {
		if e.err != nil {
			_, name = codeOf(e.err)
		}
		return e.code, name
	}
	for _, c := range codes {
		if errors.Is(err, c.is) {
			return c.code, c.name
		}
	}
	return exitFailed, "failed"
}

// errorJSON is the stable shape of an error with --json.
type errorJSON struct {
	Error struct {
		Code    string `json:"code"`
		Exit    int    `json:"exit"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	} `json:"error"`
}

// finish reports err where the caller looks for it and gives the exit code.
func (p *program) finish(cmd *cobra.Command, err error) int {
	code, name := codeOf(err)
	if err == nil {
		return code
	}
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return code
	}
	hint := beeyard.HintOf(err)
	if p.json {
		var out errorJSON
		out.Error.Code, out.Error.Exit, out.Error.Message, out.Error.Hint = name, code, err.Error(), hint
		if werr := p.printJSON(out); werr != nil {
			return exitFailed
		}
		return code
	}
	fmt.Fprintf(p.stderr, "beeyard: %s\n", told(err.Error()))
	if hint != "" {
		fmt.Fprintf(p.stderr, "  %s\n", told(hint))
	}
	if code == exitUsage && cmd != nil {
		fmt.Fprintf(p.stderr, "  see: %s --help\n", cmd.CommandPath())
	}
	return code
}

func usage(cmd *cobra.Command, err error) error {
	// The program's own name stands before every error already.
	op := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return &beeyard.Error{Op: op, Err: beeyard.Because(beeyard.ErrUsage, err.Error())}
}

// flagError says what a flag wants where the parser names the Go function that
// refused the value.
func flagError(cmd *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return usage(cmd, err)
	}
	why := bad.Unwrap().Error()
	switch bad.GetFlag().Value.Type() {
	case "int", "int64":
		why = "not a whole number"
		if errors.Is(err, strconv.ErrRange) {
			why = "too large a number"
		}
	case "bool":
		why = "neither true nor false"
	case "duration":
		why = "not a duration like 90s or 5m"
	}
	return usageText(cmd, fmt.Sprintf("--%s: %s: %s", bad.GetFlag().Name, why, beeyard.Quote(bad.GetValue())))
}

func usageText(cmd *cobra.Command, text string) error { return usage(cmd, errors.New(text)) }

func unknownCommand(cmd *cobra.Command, word string) error {
	e := &beeyard.Error{Op: cmd.CommandPath(), Err: beeyard.Because(beeyard.ErrUsage, "there is no command "+beeyard.Quote(word))}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

// args checks the number of arguments with exit 2, which cobra's own errors
// would not give.
func args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		switch {
		case len(a) < least:
			return usageText(cmd, "it needs "+strings.TrimPrefix(strings.TrimPrefix(cmd.Use, cmd.Name()), " "))
		case most >= 0 && len(a) > most:
			return usageText(cmd, "it does not take "+beeyard.Quote(a[most]))
		}
		return nil
	}
}
