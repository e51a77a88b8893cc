package ledger

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendQuoted writes s as a JSON literal the way the older engine does: only
// the quote, the backslash and control characters below U+0020 are escaped.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[start:i]...), "\uFFFD"...)
		} else {
			dst = appendEscape(append(dst, s[start:i]...), c)
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// unquote reads a JSON literal that was found well formed.
func unquote(lit string) string {
	s := lit[1 : len(lit)-1]
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := append(make([]byte, 0, len(s)), s[:i]...)
	for i < len(s) {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		r, n := decodeEscape(s[i:])
		out = utf8.AppendRune(out, r)
		i += n
	}
	return string(out)
}

// decodeEscape reads the escape at the start of s. Half of a surrogate pair
// reads as U+FFFD.
func decodeEscape(s string) (r rune, n int) {
	switch s[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
	default:
		return rune(s[1]), 2
	}
	r = hexRune(s[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if both := utf16.DecodeRune(r, hexRune(s[8:12])); both != utf8.RuneError {
			return both, 12
		}
	}
	return utf8.RuneError, 6
}

func hexRune(s string) (r rune) {
	for i := range 4 {
		c := rune(s[i])
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | c
	}
	return r
}

// canonical returns the older engine's spelling of a well-formed JSON literal,
// without copying when it is spelled so already.
func canonical(lit string) string {
	for i := 1; i < len(lit)-1; {
		j := strings.IndexByte(lit[i:len(lit)-1], '\\')
		if j < 0 {
			return lit
		}
		i += j
		switch lit[i+1] {
		case '"', '\\', 'n', 'r', 't', 'b', 'f':
			i += 2
			continue
		case 'u':
			r := hexRune(lit[i+2 : i+6])
			if r < 0x20 && !strings.ContainsRune("\n\r\t\b\f", r) && lit[i+2:i+6] == strings.ToLower(lit[i+2:i+6]) {
				i += 6
				continue
			}
		}
		return string(appendQuoted(nil, unquote(lit)))
	}
	return lit
}

// retyped are characters that YAML parsers refuse, drop or take for a line
// break, though JSON lets them stand in a string.
func retyped(r rune) bool {
	return r >= 0x7F && r <= 0x9F || r == 0x2028 || r == 0x2029 || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF
}

// appendPortable copies JSON text and escapes what retyped names. Such
// characters stand only inside string literals, so any JSON text may be given.
func appendPortable(dst []byte, text string) []byte {
	start := 0
	for i := 0; i < len(text); {
		if c := text[i]; c < 0x7F {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if retyped(r) {
			dst = append(dst, text[start:i]...)
			dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	return append(dst, text[start:]...)
}
