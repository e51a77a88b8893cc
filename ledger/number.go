package ledger

import (
	"strconv"
	"strings"
)

// number reads text as a JSON number and returns the value in the older engine's
// spelling; ok is false when it is none or when no float64 holds it.
func number(text string) (v Value, ok bool) {
	i := 0
	if text != "" && text[0] == '-' {
		i++
	}
	whole := i
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	if i == whole || text[whole] == '0' && i > whole+1 {
		return Value{}, false
	}
	if i == len(text) {
		if text == "-0" {
			text = "0"
		}
		return Value{kind: Int, text: text}, true
	}
	for j := i; j < len(text); j++ {
		if c := text[j]; (c < '0' || c > '9') && !strings.ContainsRune(".eE+-", rune(c)) {
			return Value{}, false
		}
	}
	if text[i] == '.' && (i+1 == len(text) || text[i+1] < '0' || text[i+1] > '9') {
		return Value{}, false // ParseFloat takes "1." and JSON does not
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, false
	}
	return Value{kind: Float, text: formatFloat(f)}, true
}

// formatFloat writes a float as Python's repr does: the shortest digits that
// read back, an exponent only below 1e-4 and from 1e16.
func formatFloat(f float64) string {
	e := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if f != 0 && (exp < -4 || exp >= 16) {
		return e
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// appendDotted copies a float and gives it the dot without which YAML 1.1 reads
// 1e+16 as a string.
func appendDotted(dst []byte, text string) []byte {
	i := strings.IndexByte(text, 'e')
	if i < 0 || strings.IndexByte(text, '.') >= 0 {
		return append(dst, text...)
	}
	dst = append(dst, text[:i]...)
	return append(append(dst, ".0"...), text[i:]...)
}
