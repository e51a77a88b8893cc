package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/open"
	"beeyard/spool"
)

// nightly says that the long versions are wanted.
func nightly() bool { return os.Getenv("BEEYARD_NIGHTLY") == "1" }

const testBound = 5 * time.Minute

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testBound)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func makeRun(t testing.TB, tasks ...*beeyard.Task) *spool.Run {
	t.Helper()
	r, err := open.CreateDir(testContext(t), filepath.Join(t.TempDir(), "run"), beeyard.Checkpoint{}, open.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	if len(tasks) > 0 {
		_, err = r.Enqueue(testContext(t), tasks, beeyard.EnqueueOptions{})
		must(t, err)
	}
	return r
}

func numbered(n int) []*beeyard.Task {
	var all []*beeyard.Task
	for i := range n {
		all = append(all, &beeyard.Task{ID: fmt.Sprintf("t%05d", i), Type: "t"})
	}
	return all
}

// TestFiftyProcessesRaceForOneTask: one winner each round; the others print
// nothing and exit 0.
func TestFiftyProcessesRaceForOneTask(t *testing.T) {
	rounds := 40
	if nightly() {
		rounds = 200
	}
	const racers = 50
	bin := binary(t)
	for round := range rounds {
		r := makeRun(t, numbered(1)...)
		var outs [racers]bytes.Buffer
		var gates [racers]io.WriteCloser
		var cmds [racers]*exec.Cmd
		for i := range racers {
			// A shell that waits at the gate and then becomes the claim.
			c := exec.CommandContext(testContext(t), "/bin/sh", "-c", `read _; exec "$0" "$@"`, bin,
				"claim", "--run", r.Location(), "--worker-id", fmt.Sprintf("w%d", i))
			c.Stdout, c.Stderr = &outs[i], &outs[i]
			in, err := c.StdinPipe()
			must(t, err)
			gates[i], cmds[i] = in, c
			must(t, c.Start())
		}
		for _, g := range gates {
			_, err := g.Write([]byte("\n"))
			must(t, err)
			must(t, g.Close())
		}
		winners := 0
		for i, c := range cmds {
			if err := c.Wait(); err != nil {
				t.Fatalf("round %d, racer %d: %v: %s", round, i, err, outs[i].String())
			}
			out := strings.TrimSpace(outs[i].String())
			if out == "" {
				continue
			}
			var task struct {
				ID string `json:"task_id"`
			}
			if err := json.Unmarshal([]byte(out), &task); err != nil || task.ID != "t00000" {
				t.Fatalf("round %d, racer %d printed %q", round, i, out)
			}
			winners++
		}
		if winners != 1 {
			t.Fatalf("round %d: %d winners", round, winners)
		}
	}
	t.Logf("MEASURED %d processes raced for one task in %d rounds: one winner each", racers, rounds)
}
