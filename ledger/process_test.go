package ledger

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// olderUpsert is what the older engine took for one upsert into this ledger on
// the machine where that was measured. It cannot be run here.
const olderUpsert = 400 * time.Millisecond

// cost is what a process took: by the clock, and of the processors, which is what
// it takes however busy the machine is.
type cost struct{ wall, cpu time.Duration }

func (c cost) String() string {
	return fmt.Sprintf("%v (processor %v)", c.wall.Round(10*time.Microsecond), c.cpu.Round(10*time.Microsecond))
}

func (c *cost) least(d cost) {
	c.wall, c.cpu = min(c.wall, d.wall), min(c.cpu, d.cpu)
}

// TestBenchProcesses measures whole processes: make bench sets BEEYARD_BENCH.
func TestBenchProcesses(t *testing.T) {
	if os.Getenv("BEEYARD_BENCH") != "1" {
		t.Skip("SKIP: a measurement; make bench runs it")
	}
	dir := t.TempDir()
	bin, state := filepath.Join(dir, "beeyard"), filepath.Join(dir, "state.yml")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "beeyard/cmd/beeyard")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := func(stdin string, args ...string) cost {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Stdin = strings.NewReader(stdin)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out.Bytes())
		}
		return cost{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	}
	run("", "ledger", "acquire", "--state", state, "--writer", "w")
	run(operations(0, 10_000), "ledger", "apply", "--state", state, "--writer", "w")
	info, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	ops := operations(5_000, 15_000)
	full := filepath.Join(dir, "full.yml")
	empty, upsert, older, apply := cost{time.Hour, time.Hour}, cost{time.Hour, time.Hour}, cost{time.Hour, time.Hour}, cost{time.Hour, time.Hour}
	for i := range 15 { // in turns, so that a busy moment hits them all
		id := fmt.Sprint("new", i)
		empty.least(run("", "version"))
		upsert.least(run(`{"status":"analyzed"}`, "ledger", "upsert", "--state", state, "--writer", "w", "--source", "gh", "--id", id))
		older.least(run("", "compat", "sweep-state", "upsert-item", "--state", state, "--writer", "w", "--source", "gh", "--id", id, "--json", `{"status":"analyzed"}`))
		data, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o600); err != nil {
			t.Fatal(err)
		}
		apply.least(run(ops, "ledger", "apply", "--state", full, "--writer", "w"))
	}
	t.Logf("MEASURED ledger: 10,000 items, %.1f MB: a start alone %v; upsert %v; the older engine's command %v; apply of 10,000 %v",
		float64(info.Size())/1e6, empty, upsert, older, apply)
	faster, times := float64(olderUpsert)/float64(older.cpu), float64(apply.cpu)/float64(upsert.cpu)
	t.Logf("MEASURED ledger: by processor time the older engine's upsert is %.0f times faster (goal 15), apply takes %.1f upserts (goal at most 6)", faster, times)
	if faster < 15 {
		t.Errorf("an upsert takes %v, the goal is %v", older, olderUpsert/15)
	}
	if times > 6 {
		t.Errorf("apply takes %v, an upsert %v", apply, upsert)
	}
}
