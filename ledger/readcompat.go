package ledger

import (
	"strings"
	"unicode"
)

// compatLine strips a line as the older engine does; "" is a line to skip.
func compatLine(raw string) (content, reason string) {
	content = strings.TrimFunc(raw, pythonSpace)
	if content != "" && content[0] == '#' {
		return "", ""
	}
	return content, ""
}

// compatKey takes the key off a line and returns what follows its colon.
func compatKey(content string) (key, rest string, reason string) {
	if content[0] == '"' {
		n := literalEnd(content)
		if n == 0 {
			return "", "", "a string that does not end"
		}
		v, reason := jsonValue(content[:n], true)
		if reason != "" {
			return "", "", reason
		}
		rest = strings.TrimLeftFunc(content[n:], pythonSpace)
		if rest == "" || rest[0] != ':' {
			return "", "", noColon
		}
		key, _ = v.Str()
		return key, strings.TrimLeftFunc(rest[1:], pythonSpace), ""
	}
	i := strings.IndexByte(content, ':')
	if i < 0 {
		return "", "", noColon
	}
	if strings.HasPrefix(content, "- ") {
		return "", "", "a list that is not on one line"
	}
	return strings.TrimRightFunc(content[:i], pythonSpace), strings.TrimLeftFunc(content[i+1:], pythonSpace), ""
}

const noColon = "a line without a colon"

// compatNest attaches a line to the nearest map above it that is indented less.
func (r *reader) compatNest(indent int) {
	depth := len(r.stack)
	for depth > 1 && indent <= r.stack[depth-1].indent {
		depth--
	}
	r.closeTo(depth)
}

func compatValue(rest string) (v Value, reason string) {
	if v, ok := bareScalar(rest); ok {
		return v, ""
	}
	switch rest[0] {
	case '"', '[', '{':
		return jsonValue(rest, true)
	}
	return StringValue(rest), ""
}

// bareScalar reads null, a boolean or a number.
func bareScalar(word string) (v Value, ok bool) {
	switch word {
	case "null":
		return Value{}, true
	case "true", "false":
		return Value{kind: Bool, text: word}, true
	}
	return number(word)
}

// pythonSpace is what Python strips from the ends of a line.
func pythonSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F
}
