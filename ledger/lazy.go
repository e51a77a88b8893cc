package ledger

import "strings"

// Most operations touch one item of thousands. An item whose lines are just what
// either spelling would write is therefore kept as those lines: it is checked
// when it is read, like every other, but taken apart only when it is looked into,
// and written by copying.

// plainItem measures the lines of an item at the start of src, which come after
// its key: all of them plain (see plainLine) and in the order of keys, none a map.
// n is 0 when one of them is not, or when there is no line.
func plainItem(src string) (n, lines int) {
	last := ""
	for strings.HasPrefix(src[n:], "    ") {
		end := strings.IndexByte(src[n:], '\n')
		if end < 0 {
			return 0, 0 // the writers end every line
		}
		key, value := plainLine(src[n+4 : n+end])
		if value == "" || lines > 0 && !itemOrder.less(last, key) {
			return 0, 0
		}
		last = key
		n += end + 1
		lines++
	}
	return n, lines
}

// plainLine splits a line of an item, its indentation taken off; value is "" for
// a line that is not spelled just as both writers would.
func plainLine(line string) (key, value string) {
	colon := strings.IndexByte(line, ':')
	if colon < 1 || colon+2 >= len(line) || line[colon+1] != ' ' {
		return "", ""
	}
	if key = line[:colon]; !bareKey(key) || retypedWord(key) {
		return "", ""
	}
	value = line[colon+2:]
	switch {
	case value[0] == '"' && plainString(value):
	case value[0] == '[' && plainList(value) && (!hasHigh(value) || portable(value)):
	case value == "null", value == "true", value == "false", smallInt(value):
	default:
		return "", ""
	}
	return key, value
}

// plainString reports a literal that both writers spell so: only short escapes,
// and none but the slash has a second spelling.
func plainString(s string) bool {
	high := false
	for i := 1; i < len(s)-1; i++ {
		switch c := s[i]; {
		case c == '\\':
			if i++; i == len(s)-1 || strings.IndexByte(`"\nrtbf`, s[i]) < 0 {
				return false
			}
		case c < 0x20 || c == '"':
			return false
		case c >= 0x7F:
			high = true
		}
	}
	return len(s) > 1 && s[len(s)-1] == '"' && (!high || portable(s))
}

// portable reports text without the characters that the native writer escapes.
func portable(text string) bool {
	for _, r := range text {
		if retyped(r) {
			return false
		}
	}
	return true
}

func smallInt(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return digitsOnly(s) && len(s) <= 18 && (s[0] != '0' || s == "0")
}

// load takes the lines of a plain item apart.
func (m *Map) load() {
	if m.raw == "" || m.pairs != nil {
		return
	}
	m.pairs = make([]pair, 0, strings.Count(m.raw, "\n")+1)
	for src := m.raw; src != ""; {
		end := strings.IndexByte(src, '\n')
		colon := strings.IndexByte(src, ':')
		key, value := src[4:colon], src[colon+2:end]
		v := Value{kind: String, text: value}
		switch value[0] {
		case '"':
		case '[':
			v.kind = List
		default:
			v, _ = bareScalar(value)
		}
		m.pairs = append(m.pairs, pair{key, v})
		src = src[end+1:]
	}
}

// change readies the map for a change, after which its lines no longer hold.
func (m *Map) change() {
	m.load()
	m.raw = ""
}
