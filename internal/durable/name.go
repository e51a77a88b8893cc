package durable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// CheckName refuses, with ErrName, what is not one component of a path. Which
// characters an id may have is the domain's rule; this one only keeps a name
// inside its folder.
func CheckName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	return nil
}

const (
	tempMark   = ".tmp~"
	tempRandom = 16
	tempPrefix = 100 // bytes kept of the name it is for: the whole must stay under NAME_MAX, 255
)

// TempName makes a name for a file that is not published yet:
// ".tmp~<prefix>~<16 random [a-z0-9]>". Invariant: it starts with a dot and
// does not end in .json, so that no reader takes it for a task (older programs
// look at hidden *.json too). The prefix is for people; what is in it that
// could not be in a name is replaced.
func TempName(prefix string) string {
	if len(prefix) > tempPrefix {
		prefix = prefix[:tempPrefix]
		for !utf8.ValidString(prefix) && prefix != "" && len(prefix) > tempPrefix-utf8.UTFMax {
			prefix = prefix[:len(prefix)-1]
		}
	}
	prefix = strings.Map(func(r rune) rune {
		if r == '/' || r == 0 {
			return '_'
		}
		return r
	}, prefix)
	return tempMark + prefix + "~" + Random(tempRandom)
}

// Random gives n characters of [a-z0-9] from a generator that the operating
// system seeds for each process (ChaCha8): unlike crypto/rand it costs no
// system call on kernels older than 6.11. Not for secrets.
func Random(n int) string {
	const set = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = set[rand.IntN(len(set))]
	}
	return string(b)
}

// IsTemp says whether TempName made the name.
func IsTemp(name string) bool {
	if !strings.HasPrefix(name, tempMark) || len(name) < len(tempMark)+1+tempRandom {
		return false
	}
	at := len(name) - tempRandom
	if name[at-1] != '~' {
		return false
	}
	for _, c := range []byte(name[at:]) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
