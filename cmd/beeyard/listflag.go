package main

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// listFlag is a flag of several words: a,b or given again. pflag's own list
// reads CSV, which drops what follows a line break without a word, and shows
// itself as [a,b], which no setting reads.
type listFlag struct {
	to  *[]string
	set bool // the first word given replaces the default
}

func (l *listFlag) Set(s string) error {
	// "$UNSET" must not mean "none": a dependency that is left out is a task that
	// runs too early.
	if strings.Trim(s, " ,") == "" {
		return errors.New("it is empty; leave the flag out instead")
	}
	if !l.set {
		*l.to, l.set = nil, true
	}
	for _, part := range strings.Split(s, ",") {
		if part = strings.Trim(part, " "); part != "" {
			*l.to = append(*l.to, part)
		}
	}
	return nil
}

func (l *listFlag) String() string {
	if l.to == nil {
		return ""
	}
	return strings.Join(*l.to, ",")
}

func (l *listFlag) Type() string { return "a,b" }

// listVar adds a list flag.
func listVar(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.Var(&listFlag{to: to}, name, usage)
}

// list adds a list flag of its own.
func list(f *pflag.FlagSet, name, usage string) *[]string {
	to := new([]string)
	listVar(f, to, name, usage)
	return to
}
