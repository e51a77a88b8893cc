package strict

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// scanner walks one JSON text. It is a recursive descent, safe because depth is
// bounded before it recurses.
type scanner struct {
	data  []byte
	pos   int
	depth int
	o     Options
	keys  [][]byte // keys of all open objects, innermost last
}

func check(data []byte, o Options, sh *shape) error {
	if most := o.maxBytes(DefaultMaxBytes); len(data) > most {
		return newError(nil, 0, fmt.Sprintf("%d bytes, the most is %d", len(data), most))
	}
	s := scanner{data: data, o: o}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return s.fail(0, "starts with a byte-order mark")
	}
	if err := s.value(sh); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.data) {
		return s.fail(s.pos, "data after the end of the value")
	}
	return nil
}

func (s *scanner) fail(pos int, reason string) error {
	return newError(s.data, pos, reason)
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value(sh *shape) error {
	s.space()
	if s.pos == len(s.data) {
		return s.fail(s.pos, "ends where a value should be")
	}
	switch c := s.data[s.pos]; {
	case c == '{' || c == '[':
		if s.depth == s.o.maxDepth() {
			return s.fail(s.pos, fmt.Sprintf("more than %d levels deep", s.depth))
		}
		s.depth++
		s.pos++
		var err error
		if c == '{' {
			err = s.object(sh)
		} else {
			err = s.list(sh)
		}
		s.depth--
		return err
	case c == '"':
		_, err := s.str(false)
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	default:
		return s.word()
	}
}

func (s *scanner) word() error {
	rest := s.data[s.pos:]
	for _, w := range [...]string{"true", "false", "null"} {
		if len(rest) >= len(w) && string(rest[:len(w)]) == w {
			s.pos += len(w)
			return nil
		}
	}
	for _, w := range [...]string{"NaN", "Infinity"} {
		if bytes.HasPrefix(rest, []byte(w)) {
			return s.fail(s.pos, w+" is not a JSON number")
		}
	}
	return s.fail(s.pos, "not a JSON value")
}

func (s *scanner) list(sh *shape) error {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(sh.elem()); err != nil {
			return err
		}
		if done, err := s.next(']'); done || err != nil {
			return err
		}
	}
}

// next takes the comma between two members or the closing byte.
func (s *scanner) next(closing byte) (done bool, err error) {
	s.space()
	if s.pos == len(s.data) {
		return false, s.fail(s.pos, "ends inside a list or an object")
	}
	switch s.data[s.pos] {
	case ',':
		s.pos++
		return false, nil
	case closing:
		s.pos++
		return true, nil
	}
	return false, s.fail(s.pos, fmt.Sprintf("want a comma or %q", closing))
}

func (s *scanner) object(sh *shape) error {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == '}' {
		s.pos++
		return nil
	}
	if s.keys == nil {
		s.keys = make([][]byte, 0, linear)
	}
	seen := keySet{base: len(s.keys)}
	for {
		s.space()
		at := s.pos
		if at == len(s.data) || s.data[at] != '"' {
			return s.fail(at, "want a key in double quotes")
		}
		key, err := s.str(true)
		if err != nil {
			return err
		}
		if reason := seen.add(s, key); reason != "" {
			return s.fail(at, reason)
		}
		inner, reason := sh.field(key, s.o.KnownKeys)
		if reason != "" {
			return s.fail(at, reason)
		}
		s.space()
		if s.pos == len(s.data) || s.data[s.pos] != ':' {
			return s.fail(s.pos, "want a colon after the key")
		}
		s.pos++
		if err := s.value(inner); err != nil {
			return err
		}
		done, err := s.next('}')
		if err != nil {
			return err
		}
		if done {
			s.keys = s.keys[:seen.base]
			return nil
		}
	}
}

// str takes one string and, for a key, returns what it reads as.
func (s *scanner) str(key bool) ([]byte, error) {
	data, start := s.data, s.pos+1
	i, high, escaped := start, false, false
	for {
		for i < len(data) && plain[data[i]] {
			i++
		}
		if i == len(data) {
			return nil, s.fail(s.pos, "a string that does not end")
		}
		switch c := data[i]; {
		case c == '"':
			if high && !s.o.Replace && !utf8.Valid(data[start:i]) {
				return nil, s.fail(start+invalidAt(data[start:i]), "invalid UTF-8")
			}
			s.pos = i + 1
			if key && escaped {
				return unescape(data[start:i]), nil
			}
			return data[start:i], nil
		case c == '\\':
			escaped = true
			n, reason := s.escape(i)
			if reason != "" {
				return nil, s.fail(i, reason)
			}
			i += n
		case c >= utf8.RuneSelf:
			high = true
			for i++; i < len(data) && data[i] >= utf8.RuneSelf; i++ {
			}
		default:
			return nil, s.fail(i, fmt.Sprintf("control character 0x%02x inside a string", c))
		}
	}
}

// plain marks the bytes of a string that need no look: printable ASCII but the
// quote and the backslash.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return 0
}
