package beeyard

import (
	"regexp"
	"strconv"
	"strings"
)

// Token proves a claim: "<rev>:<worker>~<nonce>". rev is the task's revision
// when it was claimed; the rest names the directory that only this claim's
// owner renames into. A settle with another token than the current one is
// refused with ErrClaimLost.
type Token struct {
	Rev    int64
	Worker string // empty for an operation (hold, cancel, retry …)
	Nonce  string
}

var tokenPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,17}):([A-Za-z0-9][A-Za-z0-9._-]{0,127})?~([a-z0-9]{16})$`)

// ParseToken checks text against the pattern. The error is ErrUsage.
func ParseToken(s string) (Token, error) {
	m := tokenPattern.FindStringSubmatch(s)
	if m == nil || strings.Contains(m[2], "..") {
		return Token{}, &Error{Op: "read token", ID: s, Err: Because(ErrUsage, "it is not a claim token"),
			Hint: "pass the token exactly as claim printed it"}
	}
	rev, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return Token{}, &Error{Op: "read token", ID: s, Err: Because(ErrUsage, "its revision is out of range")}
	}
	return Token{Rev: rev, Worker: m[2], Nonce: m[3]}, nil
}

// Dir is the name of the claim's directory under claimed/.
func (t Token) Dir() string { return t.Worker + "~" + t.Nonce }

func (t Token) String() string { return strconv.FormatInt(t.Rev, 10) + ":" + t.Dir() }
