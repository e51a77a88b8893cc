package ledger

import (
	"errors"
	"strings"
	"testing"

	"beeyard"
)

// corruptLedgers are refused by the strict reading, with the line.
var corruptLedgers = []struct {
	name, in, reason string
	line             int
}{
	{"conflict", "schema_version: 1\nitems:\n<<<<<<< ours\n  a: 1\n", "merge-conflict", 3},
	{"conflict, middle", "schema_version: 1\n=======\n", "merge-conflict", 2},
	{"conflict, end", "schema_version: 1\n>>>>>>> theirs: x\n", "merge-conflict", 2},
	{"conflict, base", "schema_version: 1\n||||||| base\n", "merge-conflict", 2},
	{"duplicate item", "schema_version: 1\nitems:\n  a:\n    status: \"x\"\n  a:\n    status: \"y\"\n", `the key "a" is there twice`, 5},
	{"duplicate by quotes", "schema_version: 1\nitems: {}\n\"items\": {}\n", "twice", 3},
	{"duplicate in JSON", "schema_version: 1\nx: [{\"a\": 1, \"a\": 2}]\n", "duplicate key", 2},
	{"two documents", "schema_version: 1\n---\nschema_version: 1\n", "one document", 2},
	{"document marker", "---\nschema_version: 1\n", "one document", 1},
	{"directive", "%YAML 1.2\nschema_version: 1\n", "directive", 1},
	{"anchor", "schema_version: 1\na: &x 1\n", "anchor", 2},
	{"anchor as key", "&a a: 1\n", "anchor", 1},
	{"alias", "schema_version: 1\na: *x\n", "alias", 2},
	{"alias bomb", "schema_version: 1\na: &a [\"x\"]\nb: [*a, *a]\n", "anchor", 2},
	{"tag", "schema_version: 1\na: !!str 1\n", "a tag", 2},
	{"tab", "schema_version: 1\nitems:\n\ta: 1\n", "a tab", 3},
	{"tab after", "schema_version: 1\t\n", "a tab", 1},
	{"mark", "\xef\xbb\xbfschema_version: 1\n", "byte-order mark", 1},
	{"bad UTF-8", "schema_version: 1\na: \"\xff\"\n", "UTF-8", 2},
	{"NUL", "schema_version: 1\na: \"\x00\"\n", "control character", 2},
	{"no colon", "schema_version: 1\nno colon here\n", "without a colon", 2},
	{"no space", "schema_version: 1\na:1\n", "without a space", 2},
	{"open string", "schema_version: 1\na: \"x\n", "does not end", 2},
	{"after a string", "schema_version: 1\na: \"x\" y\n", "bad JSON", 2},
	{"bad JSON", "schema_version: 1\nitems: {a: 1}\n", "bad JSON", 2},
	{"block list", "schema_version: 1\nitems:\n  - a\n", "a list", 3},
	{"no version", "items: {}\n", "schema_version is missing", 0},
	{"version of text", "schema_version: \"1\"\n", "whole number", 0},
	{"version zero", "schema_version: 0\n", "whole number", 0},
	{"version of 1.0", "schema_version: 1.0\n", "whole number", 0},
	{"items a list", "schema_version: 1\nitems: []\n", "items is not a map", 0},
	{"lease a word", "schema_version: 1\nlease: me\n", "lease is not a map", 0},
	{"odd indent", "schema_version: 1\nitems:\n   a: 1\n", "two spaces", 3},
	{"too deep", "schema_version: 1\nitems:\n    a: 1\n", "two spaces", 3},
	{"under a scalar", "schema_version: 1\na: 1\n  b: 2\n", "two spaces", 3},
	{"no value", "schema_version: 1\nitems:\nsources: {}\n", "no value", 3},
	{"no value at the end", "schema_version: 1\nitems:\n", "without a value", 2},
	{"date", "schema_version: 1\na: 2026-01-02\n", "double quotes", 2},
	{"octal", "schema_version: 1\na: 0123\n", "double quotes", 2},
	{"hex", "schema_version: 1\na: 0x1F\n", "double quotes", 2},
	{"underscore", "schema_version: 1\na: 1_000\n", "double quotes", 2},
	{"yes", "schema_version: 1\na: yes\n", "double quotes", 2},
	{"tilde", "schema_version: 1\na: ~\n", "double quotes", 2},
	{"infinity", "schema_version: 1\na: .inf\n", "double quotes", 2},
	{"single quotes", "schema_version: 1\na: 'x'\n", "double quotes", 2},
	{"block string", "schema_version: 1\na: |\n  x\n", "block string", 2},
	{"word with a comment", "schema_version: 1\na: b #c\n", "double quotes", 2},
	{"numeric key", "schema_version: 1\n1: 2\n", "double quotes", 2},
	{"slash escape", "schema_version: 1\na: \"\\/\"\n", "slash", 2},
	{"surrogate escapes", "schema_version: 1\na: \"\\ud83d\\udc1d\"\n", "surrogate", 2},
	{"line break in a comment", "schema_version: 1\n# x\u2028items: {}\n", "control character", 2},
	{"dotless float", "schema_version: 1\na: 1e5\n", "without a dot", 2},
	{"dotless float in a list", "schema_version: 1\na: [\"1e5\", 1E5]\n", "without a dot", 2},
	{"return in a list", "schema_version: 1\na: [1,\r2]\n", "carriage return", 2},
	{"return in a comment", "schema_version: 1\n# x\ritems: {}\n", "control character", 2},
}

func TestReadRefuses(t *testing.T) {
	for _, c := range corruptLedgers {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read([]byte(c.in))
			var e *CorruptError
			if d != nil || !errors.As(err, &e) || !errors.Is(err, beeyard.ErrCorrupt) || !strings.Contains(e.Reason, c.reason) {
				t.Fatalf("got %v, want %q", err, c.reason)
			}
			if e.Line != c.line {
				t.Errorf("line %d, want %d", e.Line, c.line)
			}
		})
	}
}

func TestReadAcceptsHandEdits(t *testing.T) {
	in := "# a comment\nschema_version: 1\r\n\n  # deeper\nitems:\n  \"a b\":   \n    status: needs analysis\n    num: -1.50\n    l: [1,2,1.0e5,\"1e5\",1e+16]  \n    m: {\"b\":1,\"a\":[]}\n    é: \"x\"\n"
	if _, err := Read([]byte(in)); err == nil {
		t.Error("a key that is not ASCII passed without quotes")
	}
	d, err := Read([]byte(strings.Replace(in, "é", `"é"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := "schema_version: 1\nsources: {}\nitems:\n  \"a b\":\n    status: \"needs analysis\"\n    l: [1, 2, 100000.0, \"1e5\", 1.0e+16]\n    m:\n      a: []\n      b: 1\n    num: -1.5\n    \"é\": \"x\"\n"
	if got := string(d.Bytes(Native)); got != want {
		t.Errorf("wrote\n%s\nwant\n%s", got, want)
	}
}

func TestEmptyFileIsNoFile(t *testing.T) {
	for _, in := range []string{"", "\n", "  \n\t\r\n"} {
		for _, read := range []func([]byte) (*Document, error){Read, ReadCompat} {
			if d, err := read([]byte(in)); d != nil || err != nil {
				t.Errorf("%q: %v %v", in, d, err)
			}
		}
	}
}

func TestCompatReadsAsTheOlderEngine(t *testing.T) {
	in := "schema_version: 3\nitems:\n    x:\n        status: open\n    x:\n        status: \"closed\"\n\tcount: 007\nwords: a: b # c\n"
	d, err := ReadCompat([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	want := "schema_version: 1\nsources: {}\nitems:\n  x:\n    status: \"closed\"\ncount: \"007\"\nwords: \"a: b # c\"\n"
	if got := string(d.Bytes(Compat)); got != want {
		t.Errorf("wrote\n%s\nwant\n%s", got, want)
	}
	for _, in := range []string{"items: {}\n", "x\nschema_version: 1\n", "schema_version: 1\na: \"x\n", "schema_version: 1\na: [1,]\n", "schema_version: 1\na: \xff\n", "schema_version: 1\nitems: 5\n"} {
		if _, err := ReadCompat([]byte(in)); !errors.Is(err, beeyard.ErrCorrupt) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestErrorsHoldNoValues: a line that fails to parse may hold a secret.
func TestErrorsHoldNoValues(t *testing.T) {
	for _, line := range []string{`body: "CANARY`, `body: CANARY`, "body: \"CANARY\" x", `body: [CANARY]`, "body: {\"a\": CANARY}", "\tbody: \"CANARY\"", "CANARY", "body: \"CANARY\\q\"", "body: 'CANARY'"} {
		for _, read := range []func([]byte) (*Document, error){Read, ReadCompat} {
			if _, err := read([]byte("schema_version: 1\n" + line + "\n")); err != nil && strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}
