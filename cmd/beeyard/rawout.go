package main

import (
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"
)

// rawOut is stdout for what somebody else wrote: to a terminal without control
// sequences, which could change what the user sees; to a file or a pipe as it is.
func (p *program) rawOut() io.Writer {
	if isTerminal(p.stdout) {
		return &tameWriter{w: p.stdout}
	}
	return p.stdout
}

type tameWriter struct {
	w    io.Writer
	more []byte
}

func (t *tameWriter) Write(b []byte) (int, error) {
	all := append(t.more, b...)
	var out []byte
	for len(all) > 0 && utf8.FullRune(all) {
		r, size := utf8.DecodeRune(all)
		all = all[size:]
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf)) {
			if r == '\r' {
				continue
			}
			r = utf8.RuneError
		}
		out = utf8.AppendRune(out, r)
	}
	t.more = bytes.Clone(all)
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
