package strict

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// keySet finds a second key of the same name in one object. Most objects have a
// handful of keys, where comparing is faster than hashing; past linear keys it
// hashes, or a hostile object would cost the square of its size.
type keySet struct {
	base int // where this object's keys start in scanner.keys
	set  map[string]struct{}
}

const linear = 16

// add returns the reason why key may not follow, or "".
func (k *keySet) add(s *scanner, key []byte) string {
	if s.o.LastWins {
		return ""
	}
	if k.set == nil {
		for _, old := range s.keys[k.base:] {
			if bytes.Equal(old, key) {
				return fmt.Sprintf("duplicate key %q", clip(string(key)))
			}
			if s.o.FoldKeys && bytes.EqualFold(old, key) {
				return foldedReason(key)
			}
		}
		s.keys = append(s.keys, key)
		if len(s.keys)-k.base > linear {
			k.set = make(map[string]struct{}, 4*linear)
			for _, old := range s.keys[k.base:] {
				k.set[k.name(s, old)] = struct{}{}
			}
		}
		return ""
	}
	name := k.name(s, key)
	if _, ok := k.set[name]; !ok {
		k.set[name] = struct{}{}
		return ""
	}
	if s.o.FoldKeys {
		return foldedReason(key)
	}
	return fmt.Sprintf("duplicate key %q", clip(string(key)))
}

func foldedReason(key []byte) string {
	return fmt.Sprintf("key %q is there twice when case is ignored", clip(string(key)))
}

func (k *keySet) name(s *scanner, key []byte) string {
	if s.o.FoldKeys {
		return fold(key)
	}
	return string(key)
}

// fold maps all spellings that bytes.EqualFold holds equal to one.
func fold(key []byte) string {
	out := make([]byte, 0, len(key))
	for len(key) > 0 {
		r, n := utf8.DecodeRune(key)
		key = key[n:]
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		out = utf8.AppendRune(out, least)
	}
	return string(out)
}
