package beeyard

import (
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

// ParseToken checks text against that form. The error is ErrUsage.
func ParseToken(s string) (Token, error) {
	bad := &Error{Op: "read token", ID: s, Err: Because(ErrUsage, "it is not a claim token"),
		Hint: "pass the token exactly as claim printed it"}
	rev, dir, ok := strings.Cut(s, ":")
	if !ok || rev == "" || len(rev) > 18 || rev[0] == '0' && rev != "0" {
		return Token{}, bad
	}
	for i := range len(rev) {
		if rev[i] < '0' || rev[i] > '9' {
			return Token{}, bad
		}
	}
	n, err := strconv.ParseInt(rev, 10, 64)
	if err != nil {
		return Token{}, bad
	}
	worker, nonce, ok := ParseClaimDir(dir)
	if !ok {
		return Token{}, bad
	}
	return Token{Rev: n, Worker: worker, Nonce: nonce}, nil
}

// ParseClaimDir splits "<worker>~<nonce>"; false for a name that is not a
// beeyard claim's, such as an older worker's plain id.
func ParseClaimDir(name string) (worker, nonce string, ok bool) {
	worker, nonce, ok = strings.Cut(name, "~")
	if !ok || len(nonce) != NonceLen || len(worker) > MaxNativeIDBytes {
		return "", "", false
	}
	for i := range len(nonce) {
		if c := nonce[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "", "", false
		}
	}
	if worker != "" && (!nativeChars(worker) || strings.Contains(worker, "..")) {
		return "", "", false
	}
	return worker, nonce, true
}

// NonceLen is how many random [a-z0-9] a claim directory's name ends in.
const NonceLen = 16

// Dir is the name of the claim's directory under claimed/.
func (t Token) Dir() string { return t.Worker + "~" + t.Nonce }

func (t Token) String() string { return strconv.FormatInt(t.Rev, 10) + ":" + t.Dir() }
