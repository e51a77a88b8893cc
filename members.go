package beeyard

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// members splits a JSON object into views of its members' texts, nil for what
// is no object; of equal keys the last wins. data must have passed json.Valid.
//
// encoding/json would check and copy the text again at each level, and a
// checkpoint of 100,000 ids is read at every fold of a drain.
func members(data []byte) map[string]json.RawMessage {
	i := space(data, 0)
	if i == len(data) || data[i] != '{' {
		return nil
	}
	m := map[string]json.RawMessage{}
	for i = space(data, i+1); data[i] != '}'; {
		if data[i] == ',' {
			i = space(data, i+1)
		}
		end := valueEnd(data, i)
		var key string
		if err := json.Unmarshal(data[i:end], &key); err != nil {
			return nil
		}
		i = space(data, end)
		i = space(data, i+1) // past the colon
		end = valueEnd(data, i)
		m[key] = data[i:end:end]
		i = space(data, end)
	}
	return m
}

func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// valueEnd is where the value that starts at i ends.
func valueEnd(data []byte, i int) int {
	switch data[i] {
	case '"':
		return textEnd(data, i)
	case '{', '[':
		for depth := 0; ; {
			switch data[i] {
			case '"':
				i = textEnd(data, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(data) && !bytes.ContainsRune([]byte(",]} \n\r\t"), rune(data[i])) {
		i++
	}
	return i
}

// textEnd is where the string that starts at i ends.
func textEnd(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// plainList reads a list of strings without escapes, all from one copy of the
// text; false for any other. raw must have passed json.Valid.
func plainList(raw json.RawMessage) ([]string, bool) {
	if raw[0] != '[' || bytes.IndexByte(raw, '\\') >= 0 || !utf8.Valid(raw) {
		return nil, false
	}
	text := string(raw)
	list := make([]string, 0, strings.Count(text, `"`)/2)
	for i := space(raw, 1); raw[i] != ']'; {
		if raw[i] == ',' {
			i = space(raw, i+1)
		}
		if raw[i] != '"' {
			return nil, false
		}
		end := i + 1 + strings.IndexByte(text[i+1:], '"')
		list = append(list, text[i+1:end])
		i = space(raw, end+1)
	}
	return list, true
}
