package main

import (
	"strings"
	"testing"
)

// TestBadFlagValues: the refusal names the flag, what it wants and what it
// got, and no function of Go's.
func TestBadFlagValues(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"enqueue --priority abc", `--priority: not a whole number: "abc"`},
		{"enqueue --priority 99999999999999999999", `--priority: too large a number: "99999999999999999999"`},
		{"enqueue --hold=maybe", `--hold: neither true nor false: "maybe"`},
		{"work --timeout 5", `--timeout: not a duration like 90s or 5m: "5"`},
		{"each -j x", `--concurrency: not a whole number: "x"`},
		{"claim --wait=x", `"x"`},
	} {
		a := call{}.run(t, strings.Fields(c.args)...)
		if a.code != exitUsage || !strings.Contains(a.stderr, c.want) || strings.Contains(a.stderr, "strconv") {
			t.Errorf("%s: exit %d: %s, want %s", c.args, a.code, a.stderr, c.want)
		}
	}
}
