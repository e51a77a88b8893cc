package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var cliDoc = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile("../../docs/cli.md")
	return string(data), err
})

func doc(t *testing.T) string {
	t.Helper()
	text, err := cliDoc()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDocsHaveEveryCommandFlagAndCode: docs/cli.md and the program do not drift.
func TestDocsHaveEveryCommandFlagAndCode(t *testing.T) {
	text := doc(t)
	all := map[string]bool{}
	for _, path := range leaves(commandTree(), "") {
		if group, rest, _ := strings.Cut(path, " "); group == "compat" && strings.Contains(rest, " ") {
			continue // compat.md has them
		}
		all["beeyard "+path] = true
		if !strings.Contains(text, "`beeyard "+path+"`") {
			t.Errorf("docs/cli.md does not have `beeyard %s`", path)
		}
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if n := cmd.Name(); n == "ledger" || n == "compat" {
			return // ledger.md and compat.md have theirs
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" {
				return
			}
			if !word(text, "--"+f.Name) {
				t.Errorf("docs/cli.md does not have --%s of %s", f.Name, cmd.CommandPath())
			}
		})
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(commandTree())
	for _, m := range exitMeanings() {
		if !strings.Contains(text, fmt.Sprintf("\n| %d | ", m.code)) {
			t.Errorf("docs/cli.md does not have exit code %d", m.code)
		}
	}
	for _, c := range codes {
		if !word(text, c.name) {
			t.Errorf("docs/cli.md does not have the error code %s", c.name)
		}
		found := false
		for _, m := range exitMeanings() {
			found = found || m.code == c.code
		}
		if !found {
			t.Errorf("help exit-codes does not have %d", c.code)
		}
	}
	// And nothing that is not there.
	for _, part := range strings.Split(text, "`beeyard ")[1:] {
		path, _, _ := strings.Cut(part, "`")
		if path = "beeyard " + path; !all[path] && path == strings.ToLower(path) {
			t.Errorf("docs/cli.md has %q, which is no command", path)
		}
	}
}

// word finds w where no longer word contains it.
func word(text, w string) bool {
	letter := func(c byte) bool { return c == '-' || c == '_' || c >= 'a' && c <= 'z' }
	for i := 0; ; {
		k := strings.Index(text[i:], w)
		if k < 0 {
			return false
		}
		from, to := i+k, i+k+len(w)
		if (from == 0 || !letter(text[from-1])) && (to == len(text) || !letter(text[to])) {
			return true
		}
		i = to
	}
}

// checkDocumented: every key of an answer is in docs/cli.md, two levels deep.
func checkDocumented(t *testing.T, what, stdout string) {
	t.Helper()
	text := doc(t)
	var look func(raw json.RawMessage, depth int)
	look = func(raw json.RawMessage, depth int) {
		var m map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(raw, &m) == nil && m != nil:
			for k, v := range m {
				if !word(text, k) && k != strings.ToUpper(k) {
					t.Errorf("%s: docs/cli.md does not have the key %q", what, k)
				}
				if open := k == "by_state" || k == "claimed_by_worker" || k == "metadata" || k == "payload" || k == "by_outcome"; depth > 0 && !open {
					look(v, depth-1)
				}
			}
		case json.Unmarshal(raw, &list) == nil:
			for _, v := range list[:min(len(list), 3)] {
				look(v, depth)
			}
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		look(json.RawMessage(line), 2)
	}
}
