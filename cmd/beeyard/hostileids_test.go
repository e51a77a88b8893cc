package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostileIDs are names that must never become a file's name. A few more are
// refused where an id is made; where one is only looked up, they are not found.
var hostileIDs = []string{
	"../x", "a/b", "..", ".", "", "a\x00b", "/etc/x", "x\ny", "x\x1b[31m", strings.Repeat("x", 300), "a/../../b", "\xff\xfe",
}

var refusedWhenNew = []string{
	`..\x`, "-rf", "x.json", "CON", "nul.txt", "COM1", "a..b", ".hidden", "~", "w~0123456789abcdef", "é", "e\u0301", "a b", "a:b", "x\u202ey",
	strings.Repeat("x", 129),
}

// TestHostileIDs: as task, worker, dependency, run and artifact, at every door
// of the command line. Nothing is written outside the run, whatever is refused.
func TestHostileIDs(t *testing.T) {
	first := newYard(t)
	outside := filepath.Dir(first.root)
	before := namesIn(t, outside, first.root)
	c := call{env: first.env()}
	try := func(what, id string, want []int, args ...string) {
		t.Helper()
		a := c.run(t, append([]string{"--json"}, args...)...)
		for _, w := range want {
			if a.code == w {
				checkJSON(t, what, a, false)
				return
			}
		}
		t.Errorf("%s %q: exit %d, wanted %v: %s%s", what, id, a.code, want, a.stdout, a.stderr)
	}
	usage, known := []int{exitUsage}, []int{exitUsage, exitNotFound}
	for _, id := range append(append([]string{}, hostileIDs...), refusedWhenNew...) {
		eq := func(flag string) string { return flag + "=" + id } // "=": an id may look like a flag
		try("new task", id, usage, "enqueue", eq("--id"), "--type", "x")
		try("worker", id, usage, "claim", "--worker-id="+orText(id, " "))
		try("worker", id, usage, "work", "--handler", "/bin/true", "--once", "--worker-id="+orText(id, " "))
		try("dependency", id, usage, "enqueue", "--id", "dep", "--type", "x", "--depends-on="+id)
		if id != "" { // no name at all
			try("new run", id, usage, "run", "new", "--", id)
			try("imported run", id, usage, "run", "import", "--", filepath.Join(outside, "nowhere.tar"), id)
		}
		c.stdin = `{"id":` + quoteJSON(id) + `,"type":"x"}` + "\n"
		try("line", id, usage, "enqueue", "-f", "-")
		c.stdin = ""
	}
	for _, id := range append(append([]string{}, hostileIDs...), refusedWhenNew...) {
		want := known
		for _, h := range hostileIDs {
			if h == id {
				want = usage
			}
		}
		for _, cmd := range []string{"show", "why", "logs", "history", "wait", "hold", "unhold", "cancel", "retry", "prune"} {
			try(cmd, id, want, cmd, "--", id)
		}
		if id == "" {
			continue
		}
		try("settled task", id, []int{exitUsage, exitClaimLost}, "complete", "--task="+id, "--token", first.token)
		try("beating task", id, []int{exitUsage, exitClaimLost}, "heartbeat", "--task="+id, "--token", first.token)
		try("token", id, usage, "complete", "--task", "claimed", "--token=0:"+id+"~0123456789abcdef/../x")
		try("token", id, []int{exitUsage, exitClaimLost}, "release", "--task", "claimed", "--token=0:"+id)
		try("next task", id, []int{exitUsage, exitOK}, "checkpoint", "write", "--next-task-id="+id)
		try("run", id, []int{exitUsage, exitNotFound, exitNotAllowed}, "ls", "--", id)
	}
	if after := namesIn(t, outside, first.root); strings.Join(before, "\n") != strings.Join(after, "\n") {
		t.Errorf("something was written outside the root:\n%s\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	for _, place := range []string{"pending", "held", "done", "failed", "artifacts"} {
		entries, err := os.ReadDir(first.path(place))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name, _, _ := strings.Cut(e.Name(), ".")
			switch name {
			case "ready", "blocked", "held", "claimed", "done", "failed":
			default:
				t.Errorf("%s/%s was written", place, e.Name())
			}
		}
	}
}

// TestBodyThatLiesAboutItsID: a file whose task_id is another name's is set
// aside, never followed.
func TestBodyThatLiesAboutItsID(t *testing.T) {
	y := newYard(t)
	lie := y.path("pending", "ok.json")
	if err := os.WriteFile(lie, []byte(`{"task_id":"../../evil","task_type":"lie"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := call{env: y.env()}
	a := c.run(t, "claim", "--type", "lie", "--json")
	if a.code != 0 || a.stdout != "null\n" {
		t.Errorf("exit %d: %s%s", a.code, a.stdout, a.stderr)
	}
	a = c.run(t, "show", "ok", "--json")
	v, err := oneJSON([]byte(a.stdout))
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := at(v, "state"); state != "quarantined" {
		t.Errorf("state %q: %s", state, a.stdout)
	}
	for _, evil := range []string{y.path("..", "evil.json"), y.path("..", "..", "evil.json")} {
		if _, err := os.Stat(evil); err == nil {
			t.Errorf("%s was written", evil)
		}
	}
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// quoteJSON writes s as it is, also where it is not UTF-8.
func quoteJSON(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", `\u0000`, "\x1b", `\u001b`)
	return `"` + r.Replace(s) + `"`
}

// namesIn lists all below dir but what is below skip.
func namesIn(t *testing.T, dir, skip string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == skip {
			return fs.SkipDir
		}
		all = append(all, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
