package spool

import (
	"os"
	"testing"

	"beeyard"
)

// chkBig is a run with 100,000 done tasks, all listed. Bodies are empty: only
// their names are looked at.
func chkBig(b *testing.B) *Run {
	b.Helper()
	r := chkRun(b, Options{})
	ids := chkIDs("task-with-a-usual-name-", 100_000)
	for _, id := range ids {
		chkMust(b, os.WriteFile(r.path+"/done/"+id+".json", nil, 0o600))
	}
	chkMust(b, r.reconcile(chkContext(b)))
	return r
}

func BenchmarkCheckpointOf100000(b *testing.B) {
	r := chkBig(b)
	ctx := chkContext(b)
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			c, err := r.Checkpoint(ctx)
			chkMust(b, err)
			if len(c.CompletedTasks) != 100_000 {
				b.Fatalf("%d ids", len(c.CompletedTasks))
			}
		}
	})
	b.Run("fold", func(b *testing.B) {
		for b.Loop() {
			chkMust(b, r.failureRisk(ctx, "f", "exit 1"))
			chkMust(b, r.flushOwed(ctx))
		}
	})
	b.Run("reconcile unchanged", func(b *testing.B) {
		chkMust(b, r.reconcile(ctx))
		for b.Loop() {
			chkMust(b, r.reconcile(ctx))
		}
	})
	b.Run("parse after another's write", func(b *testing.B) {
		data, err := os.ReadFile(chkStatusPath(r))
		chkMust(b, err)
		for b.Loop() {
			if _, err := parseStatus(data, "r"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("run id", func(b *testing.B) {
		for b.Loop() {
			if r.readRunID() != "named" {
				b.Fatal(r.readRunID())
			}
		}
	})
}

func BenchmarkEvent(b *testing.B) {
	r := chkRun(b, Options{})
	task := &beeyard.Task{ID: "task-with-a-usual-name"}
	for b.Loop() {
		r.event("claimed", task, "2:w1~aaaaaaaaaaaaaaaa", "w1")
	}
}
