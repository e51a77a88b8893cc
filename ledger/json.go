package ledger

import (
	"slices"
	"strings"

	"beeyard/internal/strict"
)

// Depth bounds. Input from a caller is held to the same depth as every other
// door; a file may be deeper, because the older engine writes any depth.
const (
	inputDepth = 64
	fileDepth  = 512
)

// parseJSON reads one JSON value. The strict reading refuses duplicate keys, and
// integers that YAML parsers would round; the lenient one is the older engine's:
// the last of two keys wins. Neither takes half of
// a surrogate pair, NaN or infinity, which no ledger can hold. Errors hold no
// value from data.
func parseJSON(data []byte, lenient bool) (Value, error) {
	o := strict.Options{MaxDepth: inputDepth, Int64: true}
	if lenient {
		o = strict.Options{MaxDepth: fileDepth, LastWins: true}
	}
	if err := strict.Check(data, o); err != nil {
		return Value{}, err
	}
	p := jsonParser{src: string(data)}
	return p.value(), nil
}

// ParseJSON reads one JSON value strictly; see internal/strict for what that
// refuses. Errors hold no value from data.
func ParseJSON(data []byte) (Value, error) { return parseJSON(data, false) }

// jsonParser reads JSON that was checked before: it does not look for errors.
type jsonParser struct {
	src     string
	pos     int
	members []member // of the maps that are open inside a list
	scratch []byte
}

func (p *jsonParser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *jsonParser) value() Value {
	p.space()
	switch c := p.src[p.pos]; c {
	case '{':
		return MapValue(p.object())
	case '[':
		start := p.pos
		text := p.canonicalList(nil)
		if string(text) == p.src[start:p.pos] {
			return Value{kind: List, text: p.src[start:p.pos]}
		}
		return Value{kind: List, text: string(text)}
	case '"':
		return Value{kind: String, text: canonical(p.literal())}
	default:
		return p.bare()
	}
}

// literal takes a string and returns it with its quotes.
func (p *jsonParser) literal() string {
	start := p.pos
	for p.pos++; p.src[p.pos] != '"'; p.pos++ {
		if p.src[p.pos] == '\\' {
			p.pos++
		}
	}
	p.pos++
	return p.src[start:p.pos]
}

func (p *jsonParser) bare() Value {
	start := p.pos
	for p.pos < len(p.src) && !strings.ContainsRune(" \n\t\r,]}", rune(p.src[p.pos])) {
		p.pos++
	}
	switch word := p.src[start:p.pos]; word {
	case "null":
		return Value{}
	case "true", "false":
		return Value{kind: Bool, text: word}
	default:
		v, _ := number(word)
		return v
	}
}

func (p *jsonParser) object() *Map {
	m := &Map{ord: itemOrder}
	p.pos++
	for {
		p.space()
		switch p.src[p.pos] {
		case '}':
			p.pos++
			return m
		case '"':
			if m.pairs == nil {
				m.pairs = make([]pair, 0, 6) // an item of a connector, without growing
			}
		case ',':
			p.pos++
			continue
		}
		key := unquote(p.literal())
		p.space()
		p.pos++ // the colon
		m.Set(key, p.value())
	}
}

// canonicalList appends the list at p in the older engine's spelling.
func (p *jsonParser) canonicalList(dst []byte) []byte {
	dst = append(dst, '[')
	p.pos++
	for first := true; ; {
		p.space()
		switch p.src[p.pos] {
		case ']':
			p.pos++
			return append(dst, ']')
		case ',':
			p.pos++
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = p.canonicalValue(dst)
	}
}

// canonicalValue appends the value at p, which is inside a list.
func (p *jsonParser) canonicalValue(dst []byte) []byte {
	switch p.src[p.pos] {
	case '[':
		return p.canonicalList(dst)
	case '{':
		return p.canonicalObject(dst)
	default:
		return appendJSON(dst, p.value())
	}
}

// canonicalObject appends the map at p with sorted keys. A list may hold a
// hundred thousand small maps, so none is built: the members are written in the
// order they come, and moved only if that was not the order of their keys.
func (p *jsonParser) canonicalObject(dst []byte) []byte {
	p.pos++
	start, base, sorted := len(dst), len(p.members), true
	for {
		p.space()
		switch p.src[p.pos] {
		case ',':
			p.pos++
			continue
		case '}':
			p.pos++
			return p.arrange(dst, start, base, sorted)
		}
		m := member{key: unquote(p.literal()), from: len(dst)}
		p.space()
		p.pos++ // the colon
		p.space()
		dst = p.canonicalValue(append(appendQuoted(dst, m.key), ": "...))
		m.to = len(dst)
		if n := len(p.members); n > base && p.members[n-1].key >= m.key {
			sorted = false
		}
		p.members = append(p.members, m)
	}
}

// member is one written member of a map: dst[from:to].
type member struct {
	key      string
	from, to int
}

// arrange puts the members from base on, written from start on, into order and
// between braces. Of two with one key the last counts.
func (p *jsonParser) arrange(dst []byte, start, base int, sorted bool) []byte {
	members := p.members[base:]
	written := append(p.scratch[:0], dst[start:]...)
	if !sorted {
		slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	}
	dst = append(dst[:start], '{')
	for i, m := range members {
		if i+1 < len(members) && members[i+1].key == m.key {
			continue
		}
		if len(dst) > start+1 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, written[m.from-start:m.to-start]...)
	}
	p.members, p.scratch = p.members[:base], written
	return append(dst, '}')
}

// appendJSON writes v on one line with sorted keys, as the older engine writes
// lists and payloads.
func appendJSON(dst []byte, v Value) []byte {
	if v.kind == Null {
		return append(dst, "null"...)
	}
	if v.kind != Mapping {
		return append(dst, v.text...)
	}
	v.m.load()
	pairs := v.m.pairs
	if v.m.ord != plainOrder || !v.m.sorted {
		pairs = slices.Clone(pairs)
		slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	}
	dst = append(dst, '{')
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(appendQuoted(dst, p.key), ": "...)
		dst = appendJSON(dst, p.val)
	}
	return append(dst, '}')
}
