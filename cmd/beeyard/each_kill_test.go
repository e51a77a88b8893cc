package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEachGoesOnAfterKills kills `each` with SIGKILL again and again; the same
// command goes on where it was and ends with the summary of all lines.
func TestEachGoesOnAfterKills(t *testing.T) {
	const lines, kills, slots = 60, 5, 3
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		must(t, os.WriteFile(p, []byte(text), 0o700))
		return p
	}
	ran := filepath.Join(dir, "ran")
	audit := file("audit.sh", "#!/bin/sh\necho \"$1\" >> "+ran+"\nsleep 0.05\necho \"audited $1\" > \"$BEEYARD_ARTIFACT_PATH\"\n")
	sum := file("sum.sh", "#!/bin/sh\ncat \"$BEEYARD_RUN\"/artifacts/line-*.md | wc -l > \"$BEEYARD_ARTIFACT_PATH\"\n")
	var input strings.Builder
	for i := range lines {
		fmt.Fprintf(&input, "line %02d of $(rm -rf /) ; it's \"quoted\"\n", i)
	}
	items := file("items.txt", input.String())
	run := filepath.Join(dir, "run")
	each := func() *exec.Cmd {
		return exec.CommandContext(testContext(t), binary(t), "each", "--run", run, "-f", items, "-j", fmt.Sprint(slots), "--worker-id", "e",
			"--backoff", "1ms", "--then", sum, "-q", "--", audit, "{}")
	}
	done := func() int {
		names, err := os.ReadDir(filepath.Join(run, "done"))
		if os.IsNotExist(err) {
			return 0
		}
		must(t, err)
		return len(names)
	}
	for k := range kills {
		cmd := each()
		must(t, cmd.Start())
		for end := time.Now().Add(testBound); done() < (k+1)*lines/(kills+2); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it does not get on")
			}
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed
	}
	out, err := each().CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d of %d done", lines+1, lines+1)) {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(ran)
	must(t, err)
	seen := map[string]bool{}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, l := range all {
		seen[l] = true
	}
	if len(seen) != lines || len(all) > lines+kills*slots {
		t.Fatalf("%d lines were done, %d runs for %d kills of %d slots", len(seen), len(all), kills, slots)
	}
	sums, err := filepath.Glob(filepath.Join(run, "artifacts", "then-*.md"))
	if err != nil || len(sums) != 1 {
		t.Fatalf("summaries %v, %v", sums, err)
	}
	if text, err := os.ReadFile(sums[0]); err != nil || strings.TrimSpace(string(text)) != fmt.Sprint(lines) {
		t.Fatalf("the summary saw %q lines, %v", text, err)
	}
	again, err := each().CombinedOutput()
	if err != nil || !strings.Contains(string(again), "done") {
		t.Fatalf("once more, with nothing to do: %v: %s", err, again)
	}
	t.Logf("MEASURED each: %d lines, %d kills, %d re-runs", lines, kills, len(all)-lines)
}
