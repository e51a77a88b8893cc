package ledger

import (
	"strings"
	"unicode/utf8"
)

// Spelling is how a document is written.
type Spelling uint8

// Compat is the older engine's bytes exactly. Native differs only where YAML
// parsers would read something else from those: keys that YAML re-types are
// quoted, characters that YAML does not let stand are escaped, floats carry a
// dot. The older engine reads equal values from both.
const (
	Compat Spelling = iota
	Native
)

// Bytes writes the document. It is complete: schema_version, sources and items
// are always there.
func (d *Document) Bytes(s Spelling) []byte {
	return d.Append(make([]byte, 0, d.size+d.size/64+4096), s)
}

// Append is Bytes into dst.
func (d *Document) Append(dst []byte, s Spelling) []byte {
	d.complete()
	if s == Compat {
		d.root.Set(keySchema, IntValue(schemaVersion))
	}
	w := writer{out: dst, native: s == Native}
	w.mapping(d.root, topOrder, 0)
	return w.out
}

type writer struct {
	out    []byte
	native bool
}

func (w *writer) mapping(m *Map, ord order, level int) {
	m.arrange(ord)
	for i := range m.pairs {
		p := &m.pairs[i]
		w.indent(level)
		w.key(p.key)
		switch {
		case p.val.kind != Mapping:
			w.out = append(w.out, ' ')
			w.scalar(p.val)
			w.out = append(w.out, '\n')
		case p.val.m.raw != "" && level == 1:
			w.out = append(append(w.out, '\n'), p.val.m.raw...)
		case p.val.m.Len() == 0:
			w.out = append(w.out, " {}\n"...)
		default:
			w.out = append(w.out, '\n')
			w.mapping(p.val.m, ord.under(p.key), level+1)
		}
	}
}

const spaces = "                                                                "

func (w *writer) indent(level int) {
	n := 2 * level
	for ; n > len(spaces); n -= len(spaces) {
		w.out = append(w.out, spaces...)
	}
	w.out = append(w.out, spaces[:n]...)
}

func (w *writer) key(key string) {
	switch {
	case bareKey(key) && (!w.native || !retypedWord(key)):
		w.out = append(w.out, key...)
	case w.native:
		start := len(w.out)
		w.out = appendQuoted(w.out, key)
		if quoted := w.out[start:]; hasHigh(quoted) {
			w.out = appendPortable(w.out[:start], string(quoted))
		}
	default:
		w.out = appendQuoted(w.out, key)
	}
	w.out = append(w.out, ':')
}

func (w *writer) scalar(v Value) {
	switch {
	case v.kind == Null:
		w.out = append(w.out, "null"...)
	case !w.native:
		w.out = append(w.out, v.text...)
	case v.kind == Float:
		w.out = appendDotted(w.out, v.text)
	case v.kind == List:
		w.list(v)
	default:
		w.portable(v.text)
	}
}

// portable copies text that is ASCII, which most is, in one go.
func (w *writer) portable(text string) {
	if hasHigh(text) {
		w.out = appendPortable(w.out, text)
		return
	}
	w.out = append(w.out, text...)
}

func hasHigh[T string | []byte](text T) bool {
	for i := 0; i < len(text); i++ {
		if text[i] >= 0x7F {
			return true
		}
	}
	return false
}

// list writes a list; only one with a float in exponent form needs taking apart.
func (w *writer) list(v Value) {
	if !strings.Contains(v.text, "e+") && !strings.Contains(v.text, "e-") {
		w.portable(v.text)
		return
	}
	w.flow(v)
}

func (w *writer) flow(v Value) {
	switch v.kind {
	case List:
		w.out = append(w.out, '[')
		for i, e := range v.elements() {
			if i > 0 {
				w.out = append(w.out, ", "...)
			}
			w.flow(e)
		}
		w.out = append(w.out, ']')
	case Mapping:
		v.m.arrange(plainOrder)
		w.out = append(w.out, '{')
		for i, p := range v.m.pairs {
			if i > 0 {
				w.out = append(w.out, ", "...)
			}
			w.out = appendPortable(w.out, string(appendQuoted(nil, p.key)))
			w.out = append(w.out, ": "...)
			w.flow(p.val)
		}
		w.out = append(w.out, '}')
	default:
		w.scalar(v)
	}
}

// bareKey is the older engine's rule for a key without quotes.
func bareKey(key string) bool {
	if key == "" || !keyStart(key[0]) {
		return false
	}
	for i := 1; i < len(key); i++ {
		if c := key[i]; !keyStart(c) && (c < '0' || c > '9') && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

func keyStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// retypedWord reports words that some YAML parser takes for a boolean or null.
// Numbers and dates start with a character that no bare key has.
func retypedWord(word string) bool {
	if len(word) > len("false") {
		return false
	}
	switch strings.ToLower(word) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

// columns counts characters, as the limit of YAML on a key does.
func columns(key string) int { return utf8.RuneCountInString(key) }
