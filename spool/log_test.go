package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"beeyard"
	"beeyard/internal/proc"
)

func chkLog(t *testing.T, r *Run, id string, attempt int, text string) {
	t.Helper()
	c := &beeyard.Claim{Task: &beeyard.Task{ID: id, Ext: beeyard.Ext{Attempt: attempt}}}
	l, err := r.openLog(chkContext(t), c)
	chkMust(t, err)
	_, err = l.Write([]byte(text))
	chkMust(t, err)
	chkMust(t, l.Close())
}

func chkLogText(t *testing.T, r *Run, name string) string {
	t.Helper()
	data, err := os.ReadFile(r.path + "/artifacts/" + name)
	chkMust(t, err)
	return string(data)
}

func TestLogOfEarlierAttemptsIsKept(t *testing.T) {
	r := chkRun(t, Options{})
	chkLog(t, r, "a", 0, "first")
	chkLog(t, r, "a", 1, "second")
	chkLog(t, r, "a", 1, "second again, after a release")
	chkLog(t, r, "a", 2, "third")
	for name, want := range map[string]string{
		"a.log": "third", "a~1.log": "first", "a~1.2.log": "second", "a~2.log": "second again, after a release",
	} {
		if got := chkLogText(t, r, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A task that is given back without end must not fill the disk with logs.
func TestLogsOfReleasesAreBounded(t *testing.T) {
	r := chkRun(t, Options{})
	for i := range 40 {
		chkLog(t, r, "a", 0, fmt.Sprint(i))
	}
	logs, err := filepath.Glob(r.path + "/artifacts/a*.log")
	chkMust(t, err)
	if len(logs) != keptLogs+1 {
		t.Errorf("%d logs are kept", len(logs))
	}
	if last, before := chkLogText(t, r, "a.log"), chkLogText(t, r, fmt.Sprintf("a~1.%d.log", keptLogs)); last != "39" || before != "38" {
		t.Errorf("the newest are %q and %q", last, before)
	}
}

// What lies at the name is moved, never written through.
func TestLogIsNoLink(t *testing.T) {
	r := chkRun(t, Options{})
	target := t.TempDir() + "/target"
	chkMust(t, os.WriteFile(target, []byte("mine"), 0o600))
	chkMust(t, os.Symlink(target, r.path+"/artifacts/a.log"))
	chkLog(t, r, "a", 0, "text")
	if got, err := os.ReadFile(target); string(got) != "mine" || err != nil {
		t.Errorf("written through a link: %q, %v", got, err)
	}
	if got := chkLogText(t, r, "a.log"); got != "text" {
		t.Errorf("the log is %q", got)
	}
	_, err := r.openLog(chkContext(t), &beeyard.Claim{Task: &beeyard.Task{ID: "../x"}})
	chkIs(t, err, beeyard.ErrUsage)
}

// Fault "Log without bound": head and tail within the cap, through the port.
func TestLogIsCapped(t *testing.T) {
	r := chkRun(t, Options{})
	l, err := r.openLog(chkContext(t), &beeyard.Claim{Task: &beeyard.Task{ID: "a"}})
	chkMust(t, err)
	const most = 64 << 10
	capped := proc.NewCappedLog(l, most)
	line := []byte(strings.Repeat("x", 99) + "\n")
	_, err = capped.Write([]byte("the beginning\n"))
	chkMust(t, err)
	for range 100_000 {
		if _, err := capped.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	_, err = capped.Write([]byte("the end\n"))
	chkMust(t, err)
	chkMust(t, capped.Close())
	chkMust(t, l.Close())
	got := chkLogText(t, r, "a.log")
	if len(got) > most || !strings.HasPrefix(got, "the beginning\n") || !strings.HasSuffix(got, "the end\n") {
		t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-20:])
	}
}

func TestLogWritesInOrder(t *testing.T) {
	r := chkRun(t, Options{})
	l, err := r.openLog(chkContext(t), &beeyard.Claim{Task: &beeyard.Task{ID: "a"}})
	chkMust(t, err)
	for _, step := range []func() (int, error){
		func() (int, error) { return l.Write([]byte("aaaa")) },
		func() (int, error) { return l.WriteAt([]byte("bb"), 1) },
		func() (int, error) { return l.Write([]byte("cc")) },
		func() (int, error) { return l.WriteAt([]byte("d"), 8) },
		func() (int, error) { return l.Write([]byte("e")) },
	} {
		_, err := step()
		chkMust(t, err)
	}
	chkMust(t, l.Close())
	if got := chkLogText(t, r, "a.log"); !slices.Equal([]byte(got), []byte("abbacc\x00\x00de")) {
		t.Errorf("the log is %q", got)
	}
}
