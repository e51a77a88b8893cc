package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// door is how one command is tried. Arguments are those after its name; $TOKEN,
// $RUN and $DIR stand for the claim's token, the run's folder and a scratch
// folder, which has lines.txt, payload.json and an exported run, run.tar.
type door struct {
	ok      string // must exit with okExit
	okExit  int
	missing string // names what is not there: exit 3
	gone    int    // exit of missing, when it is not 3
	bad     string // invalid: exit 2
	noRun   bool   // works without a run
	locked  int    // exit while the queue and the checkpoint are locked; 0: it needs no lock
	stream  bool   // --json gives lines
	bound   time.Duration
}

// doors has every command of the tree but those of groups with tests of their
// own (ledger, compat).
func doors() map[string]door {
	return map[string]door{
		"enqueue":   {ok: "--id new --type x", missing: "--id new --type x --payload-file $DIR/nowhere", bad: "--id ../new --type x", locked: exitLocked},
		"claim":     {ok: "--type x", missing: "--type nothing --exit-empty", bad: "--worker-id a/b"},
		"complete":  {ok: "--task claimed --token $TOKEN --failure", missing: "--task nobody --token 0:w~0123456789abcdef", gone: exitClaimLost, bad: "--task claimed", locked: exitLocked},
		"release":   {ok: "--task claimed --token $TOKEN", missing: "--task nobody --token 0:w~0123456789abcdef", gone: exitClaimLost, bad: "--token x", locked: exitLocked},
		"heartbeat": {ok: "--task claimed --token $TOKEN", missing: "--task nobody --token 0:w~0123456789abcdef", gone: exitClaimLost, bad: "--task ../x --token $TOKEN"},
		"reap":      {ok: "--stale-after 1h", bad: "--stale-after 0s"},
		"retry":     {ok: "failed", missing: "nobody", bad: "../x", locked: exitLocked},
		"cancel":    {ok: "ready", missing: "nobody", bad: ""},
		"hold":      {ok: "ready", missing: "nobody", bad: "a/b", locked: exitLocked},
		"unhold":    {ok: "held", missing: "nobody", bad: "--bogus", locked: exitLocked},
		"prune":     {ok: "", missing: "nobody", bad: "--state ready", locked: exitLocked},
		"work":      {ok: "--handler /bin/true --once", bad: "--handler /bin/true --concurrency many", stream: true, locked: exitLocked},
		"each":      {ok: "-f $DIR/lines.txt -- /bin/true", missing: "-f $DIR/nowhere -- /bin/true", bad: "-f $DIR/lines.txt", noRun: true, stream: true, locked: exitLocked},
		"ls":        {ok: "r", missing: "nowhere", bad: "--state sideways"},
		"show":      {ok: "done", missing: "nobody", bad: ""},
		"why":       {ok: "blocked", missing: "nobody", bad: "a b"},
		"logs":      {ok: "done", missing: "ready", bad: "done --tail -1"},
		"wait":      {ok: "done", missing: "nobody", bad: "--any"},
		"watch":     {ok: "r", missing: "nowhere", bad: "a b", stream: true, bound: 500 * time.Millisecond},
		"graph":     {ok: "r", missing: "nowhere", bad: "--format png"},
		"history":   {ok: "done", missing: "nobody", bad: "../x"},
		"doctor":    {ok: "r", missing: "nowhere", bad: "a b"},

		"run new":     {ok: "fresh", missing: "", bad: "../x..", noRun: true},
		"run ls":      {ok: "", bad: "a", noRun: true},
		"run resume":  {ok: "r", missing: "nowhere", bad: "a b"},
		"run export":  {ok: "r --live --output $DIR/out.tar", missing: "nowhere --output $DIR/out.tar", bad: "r"},
		"run import":  {ok: "$DIR/run.tar imported", missing: "$DIR/nowhere imported", bad: "$DIR/run.tar", noRun: true},
		"run archive": {ok: "other --output $DIR/out.tar.gz", missing: "nowhere --output $DIR/out.tar.gz", bad: "a b"},

		"checkpoint show":  {ok: "", bad: "extra"},
		"checkpoint write": {ok: "--summary s", bad: "--metadata [", locked: exitLocked},
		"checkpoint done":  {ok: "", bad: "extra", locked: exitLocked},
		"checkpoint init":  {ok: "--run bare", bad: "--metadata nonsense", locked: exitLocked},

		"init":        {ok: "$DIR", missing: "$DIR/nowhere", bad: "a b", noRun: true},
		"config show": {ok: "", bad: "extra", noRun: true},
		"completion":  {ok: "bash", bad: "ksh", noRun: true},
		"version":     {ok: "", bad: "extra", noRun: true},
		"help":        {ok: "tokens", bad: "nothing", noRun: true},
	}
}

// leaves lists the commands that do something.
func leaves(cmd *cobra.Command, path string) []string {
	var all []string
	for _, c := range cmd.Commands() {
		name := strings.TrimSpace(path + " " + c.Name())
		if c.HasSubCommands() {
			all = append(all, leaves(c, name)...)
		} else if !c.Hidden && c.Name() != cobra.ShellCompRequestCmd {
			all = append(all, name)
		}
	}
	return all
}

func commandTree() *cobra.Command {
	p := newProgram()
	root := p.root()
	root.InitDefaultHelpCmd()
	return root
}

// TestEveryCommandAtEveryDoor: each command × (ok, not found, bad arguments, no
// run, locked) with --json gives JSON alone on stdout, and the right exit code.
func TestEveryCommandAtEveryDoor(t *testing.T) {
	first := newYard(t)
	if a := (call{env: first.env()}).run(t, "run", "new", "other"); a.code != 0 {
		t.Fatal(a.stderr)
	}
	for _, dir := range []string{"bare", "bare/pending"} {
		if err := os.Mkdir(filepath.Join(first.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	exported := filepath.Join(t.TempDir(), "run.tar")
	if a := (call{env: first.env()}).run(t, "run", "export", "other", "--output", exported); a.code != 0 {
		t.Fatal(a.stderr)
	}
	all := doors()
	for _, name := range leaves(commandTree(), "") {
		group, _, _ := strings.Cut(name, " ")
		if group == "ledger" || group == "compat" {
			continue
		}
		d, ok := all[name]
		if !ok {
			t.Errorf("command %q has no row here: say how it fails", name)
			continue
		}
		delete(all, name)
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			if name != "work" && name != "each" { // those become parents of orphans: one at a time
				t.Parallel()
			}
			tryDoor(t, first, exported, name, d)
		})
	}
	for name := range all {
		t.Errorf("there is no command %q", name)
	}
}

func tryDoor(t *testing.T, first yard, exported, name string, d door) {
	try := func(what, args string, want int, stream bool, change func(y yard, c *call)) {
		t.Helper()
		y := first.copy(t)
		dir := t.TempDir()
		for file, text := range map[string]string{"lines.txt": "one\ntwo\n", "payload.json": "{}"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(exported, filepath.Join(dir, "run.tar")); err != nil {
			t.Fatal(err)
		}
		c := call{env: y.env(), bound: d.bound}
		if change != nil {
			change(y, &c)
		}
		fill := strings.NewReplacer("$TOKEN", y.token, "$RUN", y.path(), "$DIR", dir)
		argv := strings.Fields(name)
		for _, f := range strings.Fields(args) {
			argv = append(argv, fill.Replace(f))
		}
		// After what may end in "-- COMMAND": flags come before.
		argv = append([]string{"--json"}, argv...)
		a := c.run(t, argv...)
		if a.code != want {
			t.Errorf("%s: beeyard %s: exit %d, wanted %d\n%s%s", what, strings.Join(argv, " "), a.code, want, a.stdout, a.stderr)
			return
		}
		checkJSON(t, what, a, stream)
		if what == "ok" {
			checkDocumented(t, name, a.stdout)
		}
	}
	try("ok", d.ok, d.okExit, d.stream, nil)
	if d.missing != "" {
		want := exitNotFound
		if d.gone != 0 {
			want = d.gone
		}
		try("not found", d.missing, want, false, nil)
	}
	try("bad arguments", d.bad, exitUsage, false, nil)
	try("unknown flag", "--no-such-flag", exitUsage, false, nil)
	if !d.noRun {
		args := d.ok
		for _, run := range []string{"r", "other"} { // named by argument: as one that is not there
			if f := strings.Fields(args); len(f) > 0 && f[0] == run {
				args = strings.Join(append([]string{"nowhere"}, f[1:]...), " ")
			}
		}
		args = strings.ReplaceAll(args, "--run bare", "")
		try("no run", args, exitNotFound, false, func(y yard, c *call) {
			c.env["BEEYARD_RUN"] = filepath.Join(y.root, "nowhere") + "/x"
		})
	}
	try("locked", d.ok, map[bool]int{true: d.locked, false: d.okExit}[d.locked != 0], d.stream && d.locked == 0, func(y yard, c *call) {
		for _, run := range []string{"r", "other", "bare"} {
			for _, name := range []string{".queue.lock", ".status.lock"} {
				holdLock(t, filepath.Join(y.root, run, name))
			}
		}
		if d.locked != 0 || d.bound != 0 {
			c.bound = 300 * time.Millisecond
		}
	})
}

func holdLock(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

// checkJSON: one value, or one a line; an error's shape agrees with the code.
func checkJSON(t *testing.T, what string, a answer, stream bool) {
	t.Helper()
	if stream {
		for _, line := range strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n") {
			if _, err := oneJSON([]byte(line)); err != nil {
				t.Errorf("%s: a line is not JSON: %v: %q", what, err, line)
			}
		}
		return
	}
	v, err := oneJSON([]byte(a.stdout))
	if err != nil {
		t.Errorf("%s: stdout is not one JSON value: %v: %q", what, err, a.stdout)
		return
	}
	exit, err := at(v, "error.exit")
	if a.code == exitOK || err != nil {
		if strings.HasPrefix(a.stdout, `{"error"`) {
			t.Errorf("%s: an error with exit 0: %s", what, a.stdout)
		}
		return
	}
	if code, _ := at(v, "error.code"); exit != string(rune('0'+a.code)) || code == "" {
		t.Errorf("%s: exit %d and %s", what, a.code, a.stdout)
	}
}

// TestUnknownWordsExit2: a word that no command has, in every group.
func TestUnknownWordsExit2(t *testing.T) {
	var groups []string
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		if cmd.HasSubCommands() && !strings.HasPrefix(path, "compat") {
			groups = append(groups, path)
		}
		for _, c := range cmd.Commands() {
			walk(c, strings.TrimSpace(path+" "+c.Name()))
		}
	}
	walk(commandTree(), "")
	if len(groups) < 4 {
		t.Fatalf("only %d groups: %q", len(groups), groups)
	}
	for _, g := range groups {
		a := call{env: map[string]string{"HOME": t.TempDir()}}.run(t, append(strings.Fields(g), "zzzzzz", "--json")...)
		if a.code != exitUsage {
			t.Errorf("beeyard %s zzzzzz: exit %d, wanted %d: %s", g, a.code, exitUsage, a.stdout)
		}
		checkJSON(t, g, a, false)
	}
}
