package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// hostile are keys and strings that some YAML parser has been known to read as
// something else, or to refuse.
var hostile = []string{
	"", " ", "a", " a", "a ", "  spaced  ", "no", "No", "NO", "yes", "on", "off", "y", "n", "Y", "true", "True", "FALSE", "null", "Null", "~",
	"1.10", "1e5", "1e+16", "0123", "0x1F", "0o17", "1_000", "12:30", "190:20:30", "+1", "-1", ".5", "1.", ".inf", "-.Inf", ".nan", "NaN", "Infinity",
	"2026-01-02", "2026-01-02T03:04:05Z", "2001-12-14 21:59:43.10 -5", "#x", "a #b", "a: b", "a:b", "- x", "-", "? x", "?", ": x", ":", "!tag", "&a", "*a",
	"%x", "@x", "`x`", "|", ">", "[", "]", "{", "}", "{}", "[]", ",", "<<", "=", "---", "...", "--- x", "\"", "\\", "\\\"", "'", "''", "\\n", "\\u0041", "\\/",
	"two\nlines", "crlf\r\n", "\r", "tab\there", "trailing\n", "\n", "\n\n", "日本", "ключ", "emoji 🐝", "👩‍👩‍👧", "é\u0301", "\u00a0", "\u2028", "\u2029", "\u0085", "\ufeff", "x\ufeffy",
	"\ufffe", "\uffff", "\ufffd", "\ud7ff", "\ue000", "\U0010ffff", "\x7f", "\x80"[:0] + "\u0080", "\u009f", "a\x00b", "\x1b[31m", "owner/repo#12", "<m@x>", "email: inbox",
	"<<<<<<< ours", "=======", ">>>>>>> theirs", "source", "status", "id", "schema_version",
}

func init() {
	for c := rune(0); c <= 0xA0; c++ {
		hostile = append(hostile, "c"+string(c)+"c")
	}
}

// generator makes documents of every kind of value.
type generator struct{ r *rand.Rand }

func (g generator) text() string {
	switch g.r.IntN(10) {
	case 0:
		return fmt.Sprint(g.r.Int64())
	case 1:
		return hostile[g.r.IntN(len(hostile))] + hostile[g.r.IntN(len(hostile))]
	}
	return hostile[g.r.IntN(len(hostile))]
}

// key keeps to the 1,024 characters that YAML lets a key have.
func (g generator) key() string {
	if g.r.IntN(40) == 0 {
		return strings.Repeat("k", 1000)
	}
	return g.text()
}

func (g generator) value(depth int) Value {
	switch n := g.r.IntN(12); {
	case n == 0:
		return Value{}
	case n == 1:
		return BoolValue(g.r.IntN(2) == 0)
	case n == 2:
		return IntValue(g.r.Int64() >> g.r.IntN(64) * int64(1-2*g.r.IntN(2)))
	case n == 3:
		return g.float()
	case n == 4:
		vs := make([]Value, g.r.IntN(4))
		for i := range vs {
			vs[i] = g.value(depth + 1)
		}
		return listValue(vs)
	case n <= 6 && depth < 6:
		return MapValue(g.mapping(depth+1, g.r.IntN(4)))
	}
	return StringValue(g.text())
}

func (g generator) float() Value {
	f := math.Float64frombits(g.r.Uint64())
	if g.r.IntN(2) == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		f = []float64{0, 1.5, -2, 1e15, 1e16, 1e-5, 1e-4, 123456789.123, 5e-324, 1.7976931348623157e308, 1e22, -1e100}[g.r.IntN(12)]
	}
	return Value{kind: Float, text: formatFloat(f)}
}

func (g generator) mapping(depth, n int) *Map {
	m := &Map{}
	for range n {
		m.Set(g.key(), g.value(depth))
	}
	return m
}

func (g generator) document() *Document {
	d := NewDocument()
	for range g.r.IntN(6) {
		source, id := g.text(), g.text()
		item := g.mapping(2, g.r.IntN(6))
		item.Set("source", StringValue(source))
		item.Set("id", StringValue(id))
		if key := ItemKey(source, id); columns(key) < 900 {
			d.Items().Set(key, MapValue(item))
		}
	}
	for range g.r.IntN(3) {
		d.Sources().Set(g.key(), MapValue(g.mapping(2, g.r.IntN(3))))
	}
	if g.r.IntN(3) == 0 {
		d.root.Set(g.key()+"x", g.value(1))
	}
	if g.r.IntN(2) == 0 {
		Acquire(d, g.text(), int64(g.r.IntN(100)), NowText(g.text()))
	}
	if g.r.IntN(2) == 0 {
		Record(d, Run{Writer: g.text(), Outcome: "partial", Timestamp: g.text(), Counts: g.value(1)})
	}
	return d
}

// deep is one map in the other, as deep as input may be.
func deep(levels int) Value {
	v := StringValue("bottom")
	for i := range levels {
		m := &Map{}
		m.Set(hostile[i%len(hostile)], v)
		m.Set("other", IntValue(int64(i)))
		v = MapValue(m)
	}
	return v
}
