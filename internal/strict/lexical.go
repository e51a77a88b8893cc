package strict

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"
)

// escape checks the escape at data[i] and returns its length.
func (s *scanner) escape(i int) (n int, reason string) {
	if i+1 == len(s.data) {
		return 0, "a string that does not end"
	}
	switch s.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, "unknown escape in a string"
	}
	r, ok := hex4(s.data, i+2)
	if !ok {
		return 0, `\u without four hex digits`
	}
	if !utf16.IsSurrogate(r) {
		return 6, ""
	}
	if i+7 < len(s.data) && s.data[i+6] == '\\' && s.data[i+7] == 'u' {
		if low, ok := hex4(s.data, i+8); ok && utf16.DecodeRune(r, low) != '\uFFFD' {
			return 12, ""
		}
	}
	if s.o.LoneSurrogates {
		return 6, ""
	}
	return 0, "half of a surrogate pair in a string"
}

func hex4(data []byte, i int) (r rune, ok bool) {
	if i+4 > len(data) {
		return 0, false
	}
	for _, c := range data[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape reads the inside of a string that was found well formed. Keys with
// escapes are rare, so the decoder's own reading, the one to agree with, is used.
func unescape(raw []byte) []byte {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		return raw
	}
	return []byte(out)
}

func (s *scanner) number() error {
	data, start := s.data, s.pos
	i := start
	if data[i] == '-' {
		i++
	}
	whole := i
	i = digits(data, i)
	switch {
	case i == whole && i < len(data) && data[i] == 'I':
		return s.fail(start, "-Infinity is not a JSON number")
	case i == whole:
		return s.fail(start, "a minus sign without digits")
	case data[whole] == '0' && i > whole+1:
		return s.fail(start, "a number with a leading zero")
	}
	integer := true
	if i < len(data) && data[i] == '.' {
		integer = false
		frac := i + 1
		if i = digits(data, frac); i == frac {
			return s.fail(start, "a number that ends in its dot")
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		integer = false
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		exp := i
		if i = digits(data, exp); i == exp {
			return s.fail(start, "a number without its exponent")
		}
	}
	s.pos = i
	return s.fits(start, integer)
}

func digits(data []byte, i int) int {
	for i < len(data) && data[i] >= '0' && data[i] <= '9' {
		i++
	}
	return i
}

// fits refuses a number that readers would turn into infinity or, where asked,
// an integer that they would round.
func (s *scanner) fits(start int, integer bool) error {
	text := s.data[start:s.pos]
	if integer && s.o.Int64 && len(text) > 18 {
		var err error
		if text[0] == '-' {
			_, err = strconv.ParseInt(string(text), 10, 64)
		} else {
			_, err = strconv.ParseUint(string(text), 10, 64)
		}
		if err != nil {
			return s.fail(start, "an integer of more than 64 bits")
		}
	}
	if integer && len(text) < 300 {
		return nil
	}
	if _, err := strconv.ParseFloat(string(text), 64); err != nil {
		return s.fail(start, "a number too large for 64-bit floating point")
	}
	return nil
}
