package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/sys/unix"
)

// printJSON writes one JSON value on one line.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// show prints v as JSON, or calls text for people.
func (p *program) show(v any, text func(w io.Writer) error) error {
	if p.json {
		return p.printJSON(v)
	}
	if err := text(p.stdout); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// notef tells people something on stderr that is no result.
func (p *program) notef(format string, a ...any) {
	if !p.quiet {
		fmt.Fprintf(p.stderr, "beeyard: %s\n", told(fmt.Sprintf(format, a...)))
	}
}

// table lines up tab-separated rows.
func table(w io.Writer, rows func(w io.Writer)) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	rows(t)
	return t.Flush()
}

// plain makes somebody else's text safe for a terminal: one line, no control
// characters, no direction overrides, at most n runes. n <= 0: no limit.
func plain(s string, n int) string {
	var b strings.Builder
	count := 0
	for _, r := range s {
		if n > 0 && count == n {
			b.WriteRune('…')
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf):
			r = '�'
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}

// told makes what is said on stderr safe for a terminal: the names in it are
// whatever somebody put into a folder. Joined errors keep their lines.
func told(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = plain(l, 0)
	}
	return strings.Join(lines, "\n")
}

// isTerminal reports whether f is one.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// colour reports whether stdout takes colour.
func (p *program) colour() bool {
	// no-color.org: an empty NO_COLOR asks for nothing.
	if p.env("NO_COLOR") != "" || p.noColor || p.json {
		return false
	}
	return isTerminal(p.stdout) && p.env("TERM") != "dumb"
}

// paint colours s for a terminal.
func (p *program) paint(code, s string) string {
	if !p.colour() {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// progress reports whether to draw progress on stderr.
func (p *program) progress() bool {
	return !p.quiet && !p.json && isTerminal(p.stderr) && p.env("TERM") != "dumb"
}
