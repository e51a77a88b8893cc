package ledger

import (
	"fmt"
	"strings"
)

const noValue = "a key without a value: write null or {} after the colon"

// nativeLine strips a line, "" being one to skip. What is read strictly is what
// engines write and plain hand edits, and nothing that two YAML parsers could
// read differently.
func nativeLine(raw string) (content, reason string) {
	content = strings.TrimRight(strings.TrimSuffix(raw, "\r"), " ")
	if content != "" && content[0] == '#' {
		for _, r := range content {
			if r < 0x20 && r != '\t' || retyped(r) {
				return "", "a control character in a comment"
			}
		}
		return "", ""
	}
	if strings.IndexByte(content, '\r') >= 0 {
		return "", "a carriage return inside a line, which YAML takes for a line break"
	}
	if strings.IndexByte(content, '\t') >= 0 {
		return "", `a tab: indent with spaces, and write \t inside strings`
	}
	return content, ""
}

func nativeKey(content string) (key, rest, reason string) {
	n := 0
	if content[0] == '"' {
		if n = literalEnd(content); n == 0 {
			return "", "", "a string that does not end"
		}
		v, reason := nativeJSON(content[:n])
		if reason != "" {
			return "", "", reason
		}
		key, _ = v.Str()
	} else {
		for n < len(content) && content[n] != ':' {
			n++
		}
		key = content[:n]
		if n == len(content) || !bareKey(key) {
			return "", "", badLine(content, n)
		}
	}
	switch rest = content[n:]; {
	case rest == ":":
		return key, "", ""
	case strings.HasPrefix(rest, ": "):
		return key, strings.TrimLeft(rest[2:], " "), ""
	case strings.HasPrefix(rest, ":"):
		return "", "", "a colon without a space after it"
	}
	return "", "", noColon
}

// badLine names what stands where a key should be.
func badLine(content string, colon int) string {
	for _, mark := range [...]string{"<<<<<<<", "=======", ">>>>>>>", "|||||||"} {
		if strings.HasPrefix(content, mark) {
			return "a merge-conflict marker: finish the merge, then try again"
		}
	}
	switch {
	case strings.HasPrefix(content, "\ufeff"):
		return "a byte-order mark: save the file as UTF-8 without one"
	case content == "---" || content == "..." || strings.HasPrefix(content, "--- "):
		return "a document marker: a ledger is one document without markers"
	case content[0] == '%':
		return "a YAML directive"
	case content == "-" || strings.HasPrefix(content, "- "):
		return "a list that is not JSON on one line"
	case content[0] == '&' || content[0] == '*':
		return "an anchor or alias: write the value out"
	case content[0] == '!':
		return "a tag"
	case colon == len(content):
		return noColon
	}
	return "a key that must be in double quotes"
}

// nativeNest wants exactly two spaces more for each level.
func (r *reader) nativeNest(indent int) (reason string) {
	level := len(r.stack) - 1 // of the innermost open map's lines
	if indent%2 != 0 || indent/2 > level {
		return fmt.Sprintf("indented by %d: each level is two spaces", indent)
	}
	if r.pending && indent/2 < level {
		return "the key above has no value: write null or {} after its colon"
	}
	r.closeTo(indent/2 + 1)
	return ""
}

func nativeValue(rest string) (v Value, reason string) {
	if v, ok := bareScalar(rest); ok {
		if dotless(rest) {
			return Value{}, dotlessFloat
		}
		return v, ""
	}
	switch rest[0] {
	case '"', '[', '{':
		return nativeJSON(rest)
	}
	if reason := bareWord(rest); reason != "" {
		return Value{}, reason
	}
	return StringValue(rest), ""
}

// nativeJSON reads JSON and refuses the two escapes that YAML reads otherwise.
func nativeJSON(rest string) (Value, string) {
	for i := strings.IndexByte(rest, '\\'); i >= 0 && i+1 < len(rest); {
		switch {
		case rest[i+1] == '/':
			return Value{}, `the escape \/: write the slash alone`
		case rest[i+1] == 'u' && i+4 < len(rest) && (rest[i+2] == 'd' || rest[i+2] == 'D') && rest[i+3] >= '8':
			return Value{}, "a surrogate escape: write the character itself"
		}
		j := strings.IndexByte(rest[i+2:], '\\')
		if j < 0 {
			break
		}
		i += 2 + j
	}
	if rest[0] != '"' {
		for i := 0; i < len(rest); i++ {
			if rest[i] == '"' {
				if n := literalEnd(rest[i:]); n > 0 {
					i += n - 1
				}
				continue
			}
			j := i
			for j < len(rest) && strings.IndexByte("0123456789+-.eE", rest[j]) >= 0 {
				j++
			}
			if j > i {
				if dotless(rest[i:j]) {
					return Value{}, dotlessFloat
				}
				i = j - 1
			}
		}
	}
	return jsonValue(rest, false)
}

const dotlessFloat = "a float without a dot, which YAML parsers read differently: write it with a dot, as 1.0e+5"

// dotless reports a float with an exponent and no dot, unless it is spelled as
// the older engine writes it.
func dotless(word string) bool {
	if strings.IndexByte(word, '.') >= 0 || !strings.ContainsAny(word, "eE") {
		return false
	}
	v, ok := number(word)
	return ok && v.text != word
}

// bareWord returns why a hand-edited word may not stand without quotes, or "".
func bareWord(word string) string {
	switch word[0] {
	case '&', '*':
		return "an anchor or alias: write the value out"
	case '!':
		return "a tag"
	case '|', '>':
		return "a block string: write it in double quotes on one line"
	}
	if !keyStart(word[0]) || retypedWord(word) {
		return "a word that YAML parsers read differently: put it in double quotes"
	}
	for i := 0; i < len(word); i++ {
		c := word[i]
		if !keyStart(c) && (c < '0' || c > '9') && strings.IndexByte(" ./@+-", c) < 0 {
			return "a string that must be in double quotes"
		}
	}
	return ""
}

// clip quotes a key for an error text, bounded.
func clip(key string) string {
	const most = 64
	if len(key) > most {
		key = strings.ToValidUTF8(key[:most], "") + "…"
	}
	return string(appendPortable(nil, string(appendQuoted(nil, key))))
}
