package ledger

import (
	"strings"
	"time"
	"unicode"
)

// The fields that prove a close, in the order they are spoken of.
const (
	fieldFixRef   = "fix_ref"
	fieldMergeSHA = "verified_merge_sha"
	fieldVerified = "verified_at"
)

var evidence = [...]string{fieldFixRef, fieldMergeSHA, fieldVerified}

// Evidence is the proof of a close.
type Evidence struct{ FixRef, MergeSHA, VerifiedAt string }

func (e Evidence) fields() *Map {
	return fields(fieldFixRef, e.FixRef, fieldMergeSHA, e.MergeSHA, fieldVerified, e.VerifiedAt)
}

// skew is how far ahead another machine's clock may be before a time that it
// wrote counts as in the future.
const skew = 5 * time.Minute

// unproven returns what is wrong with an item's evidence, nil for a proven one.
// The texts name fields and never hold values.
func unproven(item *Map, now Now, ahead time.Duration) (problems []string) {
	if ref, ok := item.get(fieldFixRef).Str(); !ok || blank(ref) {
		problems = append(problems, fieldFixRef+" is blank or no string")
	}
	if sha, ok := item.get(fieldMergeSHA).Str(); !ok || !objectName(sha) {
		problems = append(problems, fieldMergeSHA+" is not exactly 40 or 64 lower-case hex digits")
	}
	at, ok := item.get(fieldVerified).Str()
	t, parsed := ParseTime(at)
	switch {
	case !ok || !parsed:
		problems = append(problems, fieldVerified+" is not a time")
	case now.ok && t.After(now.at.Add(ahead)):
		problems = append(problems, fieldVerified+" is in the future")
	}
	return problems
}

// proven reports a closed item whose evidence is well formed.
func proven(item *Map, now Now) bool {
	return item.str("status") == StatusClosed && len(unproven(item, now, skew)) == 0
}

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) && unicode.IsGraphic(r) }) < 0
}

func objectName(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
