package ledger

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"
	"unsafe"

	"beeyard/internal/strict"
)

// ReadCompat reads a file with the older engine's leniency: duplicate keys (the
// last wins), any indentation, tabs around a line, bare words as strings.
// Empty data is a nil Document: the same as no file. Errors are *CorruptError. The
// document keeps data, which must not be changed any more.
func ReadCompat(data []byte) (*Document, error) { return read(data, false) }

// Read reads a file strictly: what it takes, every YAML parser reads to the same
// values, but for what the older engine itself writes. Empty data is a nil
// Document. Errors are *CorruptError with the line and what to do. The document
// keeps data, which must not be changed any more.
func Read(data []byte) (*Document, error) { return read(data, true) }

// open is a map under construction.
type open struct {
	indent int
	m      *Map
}

type reader struct {
	native bool
	stack  []open
	line   int
	// pending: the last line opened a map that has no line yet. YAML reads null
	// there, the older engine an empty map.
	pending bool
	slab    []Map // maps are made by the hundred: a ledger has one for each item
	width   int   // pairs of the last map that was closed; its neighbour will have as many
}

func (r *reader) newMap(ord order) *Map {
	if len(r.slab) == 0 {
		r.slab = make([]Map, 128)
	}
	m := &r.slab[0]
	r.slab = r.slab[1:]
	m.ord = ord
	if ord == itemOrder && r.width > 0 && len(r.stack) != 2 { // items are mostly plain
		m.pairs = make([]pair, 0, min(r.width, small))
	}
	return m
}

// closeTo leaves the maps that are open below the given depth.
func (r *reader) closeTo(depth int) {
	if depth < len(r.stack) {
		r.width = len(r.stack[len(r.stack)-1].m.pairs)
		r.stack = r.stack[:depth]
	}
}

func read(data []byte, native bool) (*Document, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if i := invalidUTF8(data); i >= 0 {
		return nil, &CorruptError{Line: 1 + bytes.Count(data[:i], []byte("\n")), Reason: "bytes that are not UTF-8"}
	}
	root := &Map{ord: topOrder}
	r := reader{native: native, stack: append(make([]open, 0, 8), open{-1, root})}
	// No copy: values are parts of the file's text for as long as the document
	// lives, and a copy would be a fifth of all that an operation allocates.
	for src := unsafe.String(unsafe.SliceData(data), len(data)); src != ""; {
		r.line++
		raw := src
		if i := strings.IndexByte(src, '\n'); i >= 0 {
			raw, src = src[:i], src[i+1:]
		} else {
			src = ""
		}
		if reason := r.take(raw); reason != "" {
			return nil, &CorruptError{Line: r.line, Reason: reason}
		}
		if r.pending && r.inItem() {
			src = src[r.plainItem(src):]
		}
	}
	d := &Document{root: root, size: len(data)}
	reason := d.shape()
	switch {
	case native && r.pending:
		return nil, &CorruptError{Line: r.line, Reason: noValue}
	case reason != "":
		return nil, &CorruptError{Reason: reason}
	case native && d.Schema() < 1:
		return nil, &CorruptError{Reason: "schema_version is not a whole number from 1"}
	}
	d.complete()
	return d, nil
}

// inItem reports that the last line opened an item where the writers put it.
func (r *reader) inItem() bool {
	items := r.stack[0].m.get(keyItems).m
	return len(r.stack) == 3 && r.stack[1].m == items && r.stack[1].indent == 0 && r.stack[2].indent == 2
}

// plainItem takes the lines of a plain item at once and returns their length.
func (r *reader) plainItem(src string) int {
	n, lines := plainItem(src)
	if n > 0 {
		m := r.stack[2].m
		m.raw, m.sorted, r.pending = src[:n], true, false
		r.line += lines
	}
	return n
}

// take adds one line to the document or returns why it cannot.
func (r *reader) take(raw string) (reason string) {
	indent := 0
	for indent < len(raw) && raw[indent] == ' ' {
		indent++
	}
	strip, split, value := compatLine, compatKey, compatValue
	if r.native {
		strip, split, value = nativeLine, nativeKey, nativeValue
	}
	content, reason := strip(raw[indent:])
	if content == "" || reason != "" {
		return reason
	}
	key, rest, reason := split(content)
	if reason != "" {
		return reason
	}
	if !r.native {
		r.compatNest(indent)
	} else if reason = r.nativeNest(indent); reason != "" {
		return reason
	}
	top := r.stack[len(r.stack)-1]
	var v Value
	if r.pending = rest == ""; r.pending {
		if len(r.stack) > fileDepth {
			return "maps nested too deep"
		}
		v = MapValue(r.newMap(top.m.ord.under(key)))
		r.stack = append(r.stack, open{indent, v.m})
	} else if v, reason = value(rest); reason != "" {
		return reason
	}
	if !top.m.append(key, v) {
		if r.native {
			return "the key " + clip(key) + " is there twice: keep one"
		}
		top.m.Set(key, v)
	}
	return ""
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return -1
}

// literalEnd returns the length of the string literal at the start of s, or 0
// when it does not end.
func literalEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return 0
}

// plainLiteral reports a string literal without escapes or control characters,
// which needs no further look.
func plainLiteral(s string) bool {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return false
	}
	for i := 1; i < len(s)-1; i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// escapedLiteral reports a string literal with escapes that are all short ones,
// which is what nearly every text of more than one line is.
func escapedLiteral(s string) bool {
	for i := 1; i < len(s)-1; i++ {
		switch c := s[i]; {
		case c < 0x20 || c == '"':
			return false
		case c == '\\':
			if i++; i == len(s)-1 || strings.IndexByte(`"\nrtbf`, s[i]) < 0 {
				return false
			}
		}
	}
	return len(s) > 1 && s[len(s)-1] == '"'
}

// jsonValue reads a string, list or map written as JSON on the rest of a line.
func jsonValue(rest string, lenient bool) (Value, string) {
	switch {
	case rest[0] == '"' && plainLiteral(rest):
		return Value{kind: String, text: rest}, ""
	case rest[0] == '"' && escapedLiteral(rest):
		return Value{kind: String, text: canonical(rest)}, ""
	case rest[0] == '[' && plainList(rest):
		return Value{kind: List, text: rest}, ""
	}
	o := strict.Options{MaxDepth: fileDepth, LastWins: lenient}
	if err := strict.Check([]byte(rest), o); err != nil {
		var e *strict.Error
		if !errors.As(err, &e) {
			return Value{}, "bad JSON"
		}
		return Value{}, "bad JSON: " + e.Reason
	}
	p := jsonParser{src: rest}
	return p.value(), ""
}

// plainList reports a list of strings without escapes and of small whole
// numbers, spelled as the engines do, which needs no further look.
func plainList(s string) bool {
	if s == "[]" {
		return true
	}
	for i := 1; ; {
		start := i
		if i < len(s) && s[i] == '"' {
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] < 0x20 || s[i] == '\\' {
					return false
				}
			}
			i++
		} else {
			for i < len(s) && s[i] >= '0' && s[i] <= '9' {
				i++
			}
			if i == start || i > start+18 || s[start] == '0' && i > start+1 {
				return false
			}
		}
		switch {
		case i+1 == len(s) && s[i] == ']':
			return true
		case i+2 < len(s) && s[i] == ',' && s[i+1] == ' ':
			i += 2
		default:
			return false
		}
	}
}
