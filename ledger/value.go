package ledger

import (
	"strconv"
	"strings"
)

// Kind is what a Value is.
type Kind uint8

// The kinds of values that a ledger holds.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Mapping
)

// Value is one value of a document: a scalar, a list or a map. The zero Value is
// null. Scalars and lists stay in their written form and are decoded on demand,
// so that a document of ten thousand items costs little more than its bytes.
type Value struct {
	kind Kind
	// Invariant: text is the older engine's spelling of a scalar or list: a
	// string is a JSON literal with quotes, a list is JSON with sorted keys, an
	// integer and a float are as Python prints them. Empty for null and maps.
	text string
	m    *Map
}

// Kind tells what v is.
func (v Value) Kind() Kind { return v.kind }

// StringValue makes a string. Bytes that are not UTF-8 become U+FFFD.
func StringValue(s string) Value {
	return Value{kind: String, text: string(appendQuoted(nil, s))}
}

// IntValue makes an integer.
func IntValue(n int64) Value { return Value{kind: Int, text: strconv.FormatInt(n, 10)} }

// BoolValue makes a boolean.
func BoolValue(b bool) Value { return Value{kind: Bool, text: strconv.FormatBool(b)} }

// MapValue makes a map of m, which it shares; null of a nil m.
func MapValue(m *Map) Value {
	if m == nil {
		return Value{}
	}
	return Value{kind: Mapping, m: m}
}

// listValue makes a list of values.
func listValue(vs []Value) Value {
	text := []byte{'['}
	for i, v := range vs {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = appendJSON(text, v)
	}
	return Value{kind: List, text: string(append(text, ']'))}
}

// Str returns the text of a string; ok is false for every other kind.
func (v Value) Str() (s string, ok bool) {
	if v.kind != String {
		return "", false
	}
	return unquote(v.text), true
}

// Map returns the map that v is, or nil.
func (v Value) Map() *Map { return v.m }

// True reports whether v is the boolean true and not merely truthy.
func (v Value) True() bool { return v.kind == Bool && v.text == "true" }

// Int64 returns an integer that fits.
func (v Value) Int64() (n int64, ok bool) {
	if v.kind != Int {
		return 0, false
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	return n, err == nil
}

// falsy is Python's notion, by which the older engine judges evidence.
func (v Value) falsy() bool {
	switch v.kind {
	case Null:
		return true
	case Bool:
		return v.text == "false"
	case Int:
		return v.text == "0"
	case Float:
		f, err := strconv.ParseFloat(v.text, 64)
		return err == nil && f == 0
	case String:
		return v.text == `""`
	case List:
		return v.text == "[]"
	default:
		return v.m.Len() == 0
	}
}

// Equal reports whether two values are the same, 1 and 1.0 being different.
func (v Value) Equal(w Value) bool {
	if v.kind != w.kind || v.text != w.text {
		return false
	}
	if v.kind != Mapping || v.m.raw != "" && v.m.raw == w.m.raw {
		return true
	}
	if v.m.Len() != w.m.Len() {
		return false
	}
	for k, x := range v.m.All() {
		if y, ok := w.m.Get(k); !ok || !x.Equal(y) {
			return false
		}
	}
	return true
}

// clone copies v so that changing the copy leaves v alone.
func (v Value) clone() Value {
	if v.kind == Mapping {
		return MapValue(v.m.clone())
	}
	return v
}

// elements decodes a list; nil for every other kind.
func (v Value) elements() []Value {
	if v.kind != List {
		return nil
	}
	p := jsonParser{src: v.text}
	p.pos++ // the bracket
	var out []Value
	for {
		p.space()
		switch p.src[p.pos] {
		case ']':
			return out
		case ',':
			p.pos++
		default:
			out = append(out, p.value())
		}
	}
}

// MarshalJSON gives v with sorted keys, integers with all their digits.
func (v Value) MarshalJSON() ([]byte, error) { return appendJSON(nil, v), nil }

// GoString helps tests.
func (v Value) GoString() string {
	return strings.ReplaceAll(string(appendJSON(nil, v)), "\n", " ")
}
