package main

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

// benching is read before TestMain clears the environment for the scripts.
var benching = os.Getenv("BEEYARD_BENCH") == "1"

// TestLedgerBench measures whole processes: `make bench` sets BEEYARD_BENCH.
func TestLedgerBench(t *testing.T) {
	if !benching {
		t.Skip("SKIP: a measurement; make bench runs it")
	}
	bin, state := binary(t), filepath.Join(t.TempDir(), "state.yml")
	var cpu time.Duration // of the last process: what it costs, however busy the machine is
	run := func(stdin string, args ...string) time.Duration {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Stdin = strings.NewReader(stdin)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out.Bytes())
		}
		took := time.Since(start)
		cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		return took
	}
	least := func(n int, one func() time.Duration) time.Duration {
		best := time.Hour
		for range n {
			best = min(best, one())
		}
		return best
	}
	stream := func(from, to int) string {
		var b strings.Builder
		body := strings.Repeat("The export fails when the name has an umlaut. ", 4)
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, `{"op":"upsert","source":"gh","id":"%08d","item":{"status":"ingested","title":"Report %d","url":"https://example.org/%d","body":%q}}`+"\n", i, i, i, body)
		}
		return b.String()
	}
	run("", "ledger", "acquire", "--state", state, "--writer", "w")
	run(stream(0, 10_000), "ledger", "apply", "--state", state, "--writer", "w")
	info, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	upsert := least(15, func() time.Duration {
		n++
		return run(`{"status":"analyzed"}`, "ledger", "upsert", "--state", state, "--writer", "w", "--source", "gh", "--id", fmt.Sprint("new", n))
	})
	older := least(15, func() time.Duration {
		n++
		return run("", "compat", "sweep-state", "upsert-item", "--state", state, "--writer", "w", "--source", "gh", "--id", fmt.Sprint("new", n), "--json", `{"status":"analyzed"}`)
	})
	olderCPU := cpu
	operations := stream(5_000, 15_000)
	apply := least(5, func() time.Duration { return run(operations, "ledger", "apply", "--state", state, "--writer", "w") })
	empty := least(15, func() time.Duration { return run("", "version") })
	t.Logf("MEASURED ledger: %d items, %.1f MB: upsert %v, the older engine's command %v (processor %v), apply of 10,000 %v, a start alone %v",
		10_000, float64(info.Size())/1e6, upsert, older, olderCPU, apply, empty)
	t.Logf("MEASURED ledger: upsert %.0f times faster than the older engine (goal 15), apply %.1f times one upsert (goal at most 6)",
		float64(olderUpsert)/float64(older), float64(apply)/float64(upsert))
	if olderUpsert < 15*older {
		t.Errorf("upsert: %v, the goal is %v", older, olderUpsert/15)
	}
	if apply > 6*upsert {
		t.Errorf("apply: %v for one upsert of %v", apply, upsert)
	}
}
