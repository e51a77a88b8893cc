package main

import (
	"os"
	"strings"
	"testing"
)

// TestErrorsAndNotesAreSafeForATerminal: a name that somebody else chose is in
// an error and in a warning; no control character of it comes through.
func TestErrorsAndNotesAreSafeForATerminal(t *testing.T) {
	y := newYard(t)
	const name = "e\x1b]0;x\a\x1b[31mred"
	must(t, os.Symlink(t.TempDir(), y.path("claimed", name)))
	c := call{env: y.env()}
	for _, args := range [][]string{
		{"ls", "r"},             // warns of claimed/NAME
		{"enqueue", "-f", name}, // no such file
		{"ls", "--" + name},     // no such flag
		{"work", "--handler", "./" + name},
	} {
		a := c.run(t, args...)
		if !strings.Contains(a.stderr, "[31mred") && !strings.Contains(a.stderr, `\x1b[31mred`) {
			t.Fatalf("%q does not tell of it: %q", args, a.stderr)
		}
		if strings.ContainsAny(a.stdout+a.stderr, "\x1b\a") {
			t.Errorf("%q: control characters in %q", args, a.stderr)
		}
	}
}

// TestToldKeepsLines: joined errors stay one a line.
func TestToldKeepsLines(t *testing.T) {
	if got := told("a\rb\nc\x1bd"); got != "a b\nc�d" {
		t.Errorf("%q", got)
	}
}

// TestEmptyNoColour: NO_COLOR counts when it is not empty.
func TestEmptyNoColour(t *testing.T) {
	y := newYard(t)
	for value, want := range map[string]bool{"": true, "0": false, "1": false} {
		env := y.env()
		env["TERM"], env["NO_COLOR"] = "xterm", value
		if out, _ := onTerminal(t, env, "ls", "r"); strings.Contains(out, "\x1b[") != want {
			t.Errorf("NO_COLOR=%q: colour %v, want %v: %q", value, !want, want, out)
		}
	}
}
