package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

const doorSHA = "0123456789abcdef0123456789abcdef01234567"

// ledgerDoor is how one ledger command is tried; the codes are its exits where
// another holds the lease and where there is no ledger.
type ledgerDoor struct {
	ok, bad     string
	stdin       string
	held        int
	absent      int
	writes      bool // waits for the flock
	stream, own bool // JSON lines; no --state
}

func ledgerDoors() map[string]ledgerDoor {
	op := `{"op":"upsert","source":"gh","id":"5","item":{"status":"ingested"}}`
	proof := " --fix-ref x --verified-at 2026-01-01T00:00:00Z --merge-sha "
	return map[string]ledgerDoor{
		"acquire":  {ok: "--writer w", bad: "--writer w --ttl 1s", held: exitLocked, writes: true},
		"release":  {ok: "--writer w", bad: "--writer w extra", held: exitClaimLost, writes: true},
		"upsert":   {ok: "--writer w --source gh --id 9", stdin: "{}", bad: "--writer w --source gh", held: exitClaimLost, absent: exitClaimLost, writes: true},
		"cursor":   {ok: "--writer w --source gh --to 9 --past-item 1", bad: "--writer w", held: exitClaimLost, absent: exitClaimLost, writes: true},
		"apply":    {ok: "--writer w", stdin: op, bad: "extra", held: exitClaimLost, absent: exitClaimLost, writes: true, stream: true},
		"record":   {ok: "--writer w --outcome failed", bad: "--writer w --outcome odd", writes: true},
		"validate": {ok: "", bad: "extra", writes: true},
		"import":   {ok: "--file $DIR/legacy.json", bad: "--file $DIR/state.yml", writes: true},
		"read":     {ok: "", bad: "extra", absent: exitNotFound},
		"status":   {ok: "", bad: "--now yesterday", absent: exitNotFound},
		"list":     {ok: "--open", bad: "--limit x", absent: exitNotFound},
		"show":     {ok: "gh:1", bad: "", absent: exitNotFound},
		"history":  {ok: "gh:1", bad: "a b", absent: exitNotFound},
		"close":    {ok: "gh:1 --writer w" + proof + doorSHA, bad: "gh:1", held: exitClaimLost, absent: exitClaimLost, writes: true},
		"reopen":   {ok: "gh:2 --writer w", bad: "", held: exitClaimLost, absent: exitClaimLost, writes: true},
		"redact":   {ok: "--source gh", bad: "extra", writes: true},
		"merge":    {ok: "$DIR/a.yml $DIR/b.yml $DIR/c.yml", bad: "one two", own: true},
	}
}

func doorLedger(writer string) string {
	return "schema_version: 1\nlease:\n  writer: \"" + writer + "\"\n  timestamp: \"" + time.Now().UTC().Format(time.RFC3339) + "\"\n  ttl_minutes: 60\n" +
		"sources: {}\nitems:\n  \"gh:1\":\n    source: \"gh\"\n    status: \"analyzed\"\n    id: \"1\"\n  \"gh:2\":\n    source: \"gh\"\n    status: \"closed\"\n" +
		"    fix_ref: \"x\"\n    verified_merge_sha: \"" + doorSHA + "\"\n    verified_at: \"2026-01-01T00:00:00Z\"\n    id: \"2\"\n"
}

// TestEveryLedgerCommandAtEveryDoor: each command × (ok, bad arguments, unknown
// flag, another's lease, no ledger, corrupt, flocked) with --json gives JSON
// alone on stdout, and the right exit code.
func TestEveryLedgerCommandAtEveryDoor(t *testing.T) {
	all := ledgerDoors()
	for _, name := range leaves(commandTree(), "") {
		name, ok := strings.CutPrefix(name, "ledger ")
		if !ok {
			continue
		}
		d, ok := all[name]
		if !ok {
			t.Errorf("ledger %s has no row here: say how it fails", name)
			continue
		}
		delete(all, name)
		t.Run(name, func(t *testing.T) { tryLedgerDoor(t, name, d) })
	}
	for name := range all {
		t.Errorf("there is no command ledger %s", name)
	}
}

func tryLedgerDoor(t *testing.T, name string, d ledgerDoor) {
	try := func(what, args string, want int, ledger string, change func(dir string, c *call)) {
		t.Helper()
		dir := t.TempDir()
		files := map[string]string{"legacy.json": `{"channels":{}}`, "a.yml": doorLedger("w"), "b.yml": doorLedger("w"), "c.yml": doorLedger("w")}
		if ledger != "" {
			files["state.yml"] = ledger
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c := call{env: map[string]string{"HOME": dir}, stdin: d.stdin}
		if change != nil {
			change(dir, &c)
		}
		argv := []string{"--json", "ledger", name}
		if !d.own {
			argv = append(argv, "--state", filepath.Join(dir, "state.yml"))
		}
		for _, f := range strings.Fields(args) {
			argv = append(argv, strings.ReplaceAll(f, "$DIR", dir))
		}
		a := c.run(t, argv...)
		if a.code != want {
			t.Errorf("%s: beeyard %s: exit %d, wanted %d\n%s%s", what, strings.Join(argv, " "), a.code, want, a.stdout, a.stderr)
		}
		checkJSON(t, what, a, d.stream && strings.Contains(a.stdout, `"line"`))
	}
	mine := doorLedger("w")
	try("ok", d.ok, exitOK, mine, nil)
	try("bad arguments", d.bad, exitUsage, mine, nil)
	try("unknown flag", "--no-such-flag", exitUsage, mine, nil)
	if d.own {
		return
	}
	try("another's lease", d.ok, d.held, doorLedger("other"), nil)
	try("no ledger", d.ok, d.absent, "", nil)
	try("corrupt", d.ok, exitCorrupt, "schema_version: 1\n<<<<<<< ours\n", nil)
	want := exitOK
	if d.writes {
		want = exitTimeout
	}
	try("flocked", d.ok, want, mine, func(dir string, c *call) {
		holdLock(t, filepath.Join(dir, "state.yml.lock"))
		if d.writes {
			c.bound = 300 * time.Millisecond
		}
	})
}

// TestLedgerDocsHaveEveryFlag: docs/ledger.md and the commands do not drift.
func TestLedgerDocsHaveEveryFlag(t *testing.T) {
	data, err := os.ReadFile("../../docs/ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	text, flags := string(data), 0
	for _, group := range commandTree().Commands() {
		if group.Name() != "ledger" {
			continue
		}
		for _, cmd := range group.Commands() {
			if !strings.Contains(text, "`"+cmd.Name()) {
				t.Errorf("docs/ledger.md does not have %s", cmd.CommandPath())
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				flags++
				if f.Name != "help" && !regexp.MustCompile("--"+f.Name+"[^a-z-]").MatchString(text) {
					t.Errorf("docs/ledger.md does not have --%s of %s", f.Name, cmd.CommandPath())
				}
			})
		}
	}
	if flags < 25 {
		t.Errorf("only %d flags were found", flags)
	}
}
