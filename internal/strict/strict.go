// Package strict reads JSON and YAML that may be hostile.
//
// Plain encoding/json takes duplicate keys (the last wins), replaces invalid
// UTF-8 without a word, and matches keys whatever their case, so two programs
// can read one document differently. A YAML parser can be made to spend seconds
// and gigabytes on a few megabytes. This package refuses such input before it
// reaches a decoder, within bounds on size, depth and node count, and says where
// and why.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// The bounds that hold where Options leaves a field at zero.
const (
	DefaultMaxBytes = 16 << 20
	DefaultMaxDepth = 64
	DefaultMaxNodes = 50_000
	// MaxYAMLBytes is the size bound of YAML: configuration and flows are
	// written by people, and YAML costs a hundred times as much to read as JSON.
	MaxYAMLBytes = 1 << 20
)

// Options says what to refuse beyond malformed input. The zero value refuses
// duplicate keys, invalid UTF-8, lone surrogates, a byte-order mark, numbers
// that no float64 holds, trailing data, and anything over the default bounds.
type Options struct {
	MaxBytes int // 0 is DefaultMaxBytes for JSON and MaxYAMLBytes for YAML
	MaxDepth int // nested objects and lists; 0 is DefaultMaxDepth
	MaxNodes int // YAML only; 0 is DefaultMaxNodes

	// FoldKeys refuses an object with two keys that differ only by case, which
	// encoding/json would store into one struct field.
	FoldKeys bool
	// Int64 refuses integers outside -2^63 .. 2^64-1, which other readers would
	// round without a word.
	Int64 bool
	// KnownKeys makes Unmarshal refuse a key that names no field of the struct
	// it decodes into.
	KnownKeys bool
	// LoneSurrogates lets a \ud800 without its other half pass. encoding/json
	// reads U+FFFD there; some older writers produce it.
	LoneSurrogates bool
	// LastWins lets an object repeat a key, for formats whose older readers take
	// the last one.
	LastWins bool
	// Replace lets invalid UTF-8 inside strings pass, to be read as U+FFFD.
	Replace bool
}

func (o Options) maxBytes(def int) int {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return def
}

func (o Options) maxDepth() int {
	if o.MaxDepth > 0 {
		return o.MaxDepth
	}
	return DefaultMaxDepth
}

// Error tells where input was refused and why. Reason never holds a value from
// the input, only key names, so it may be logged.
type Error struct {
	Offset int64  // bytes from the start, or -1 where only the line is known
	Line   int    // from 1
	Reason string // "duplicate key \"id\""
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d, byte %d: %s", e.Line, e.Offset, e.Reason)
}

// Check reports the first thing in data that is not one strict JSON value, as
// an *Error. It keeps nothing of data and allocates only for objects of many
// keys.
func Check(data []byte, o Options) error {
	return check(data, o, nil)
}

// Unmarshal checks data, then decodes it into v with encoding/json. Keys that
// match a field of v only when case is ignored are refused: encoding/json would
// take them. A number decoded into an interface is a float64 unless v says
// json.Number.
func Unmarshal(data []byte, v any, o Options) error {
	var shape *shape
	if t := reflect.TypeOf(v); t != nil {
		shape = shapeOf(t)
	}
	if err := check(data, o, shape); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return decodeError(data, err)
	}
	return nil
}

// decodeError turns what encoding/json says of a mismatch into an *Error. Its
// own text can quote a number from the input, so only type names are taken.
func decodeError(data []byte, err error) error {
	var e *json.UnmarshalTypeError
	if errors.As(err, &e) {
		where := "the value"
		if e.Field != "" {
			where = fmt.Sprintf("field %q", clip(e.Field))
		}
		kind := e.Value
		for i, c := range kind {
			if c == ' ' { // "number 1e400"
				kind = kind[:i]
				break
			}
		}
		return newError(data, int(e.Offset), fmt.Sprintf("%s is a %s, want %s", where, kind, e.Type))
	}
	return fmt.Errorf("decode: %w", err)
}

func newError(data []byte, pos int, reason string) *Error {
	pos = min(max(pos, 0), len(data))
	line := 1
	for _, c := range data[:pos] {
		if c == '\n' {
			line++
		}
	}
	return &Error{Offset: int64(pos), Line: line, Reason: reason}
}

// clip bounds a key name from the input for an error text.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
