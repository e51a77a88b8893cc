package spool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"beeyard"
	"beeyard/internal/durable"
)

func enqCycle(t *testing.T, r *Run, path string, tasks ...*beeyard.Task) {
	t.Helper()
	got, err := r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{})
	enqIs(t, err, beeyard.ErrCycle)
	if !strings.Contains(err.Error(), path) {
		t.Errorf("the path %q is not in %q", path, err)
	}
	if len(got) != 0 {
		t.Errorf("answered %+v", got)
	}
}

func TestCycleIsRefusedWithItsPath(t *testing.T) {
	r := enqRun(t, Options{})
	enqCycle(t, r, "t1 → t1", enqTask("t1", "t1"))
	enqCycle(t, r, "a → c → b → a", enqTask("a", "c"), enqTask("b", "a"), enqTask("c", "b"))
	if names := enqNames(t, r, dirPending); len(names) != 0 {
		t.Fatalf("pending/ holds %v", names)
	}
	enqueueOne(t, r, enqTask("b", "a"))
	enqueueOne(t, r, enqTask("c", "b", "elsewhere"))
	enqCycle(t, r, "a → c → b → a", enqTask("a", "x", "c"))
	enqCycle(t, r, "a → d → c → b → a", enqTask("a", "d"), enqTask("d", "c"))
	enqueueOne(t, r, enqTask("a", "x"))
}

// The walk goes through tasks wherever they wait, and through failed ones,
// which may be retried; what is done ends a branch.
func TestCycleThroughEveryPlace(t *testing.T) {
	for name, move := range map[string]func(*testing.T, *Run){
		"pending": func(*testing.T, *Run) {},
		"held":    func(t *testing.T, r *Run) { enqMust(t, r.pending.Rename("b.json", r.held, "b.json")) },
		"claimed": func(t *testing.T, r *Run) { enqClaim(t, r, "b") },
		"decided": func(t *testing.T, r *Run) {
			_, d := enqClaim(t, r, "b")
			enqMust(t, d.Rename("b.json", d, tagged("b", tagTaken, "abcdefgh")))
		},
		"replace under way": func(t *testing.T, r *Run) {
			_, d := enqClaim(t, r, "b")
			enqMust(t, d.Rename("b.json", d, tagged("b", tagRecord, "abcdefgh")))
			body, err := enqTask("b").Encode()
			enqMust(t, err)
			enqMust(t, durable.WriteFile(d, "b.json", body, fileMode))
		},
		"failed": func(t *testing.T, r *Run) { enqFinish(t, r, "b", beeyard.PlaceFailed, beeyard.OutcomeFailed) },
	} {
		t.Run(name, func(t *testing.T) {
			r := enqRun(t, Options{})
			enqueueOne(t, r, enqTask("b", "a"))
			move(t, r)
			enqCycle(t, r, "a → b → a", enqTask("a", "b"))
		})
	}
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("b", "a"))
	enqFinish(t, r, "b", beeyard.PlaceDone, beeyard.OutcomeDone)
	enqueueOne(t, r, enqTask("a", "b"))
}

// A task that is claimed and done while the walk looks for it is not taken for
// one that does not exist.
func TestCycleWalkMeetsMovingTask(t *testing.T) {
	gate := newEnqGate(func(op durable.Op) bool {
		return op.Op == durable.OpReadFile && filepath.Base(op.Dir) == dirHeld && op.Name == "b.json"
	})
	r := enqRun(t, Options{Wrap: gate.wrap})
	enqueueOne(t, r, enqTask("b", "a"))
	enqMust(t, r.pending.Rename("b.json", r.held, "b.json"))
	done := make(chan error, 1)
	go func() {
		_, err := r.Enqueue(context.Background(), []*beeyard.Task{enqTask("a", "b")}, beeyard.EnqueueOptions{})
		done <- err
	}()
	enqHear(t, gate.reached, "the look into held/")
	other := enqOpen(t, r.path, Options{})
	d, err := other.newClaimDir(enqContext(t), "w1", beeyard.KindProcess)
	enqMust(t, err)
	defer func() { enqMust(t, d.close()) }()
	enqMust(t, other.held.Rename("b.json", d.dir, "b.json"))
	close(gate.open)
	enqIs(t, <-done, beeyard.ErrCycle)
}

// a → b → c → a added in parallel by three processes: one at least is refused,
// and what was accepted is no cycle.
func TestCycleByThreeProcesses(t *testing.T) {
	for round := range 10 {
		r := enqRun(t, Options{})
		answers := enqRace(t, [][]string{{r.path, "a", "p", "b"}, {r.path, "b", "p", "c"}, {r.path, "c", "p", "a"}})
		refused := 0
		for _, a := range answers {
			switch {
			case strings.HasPrefix(a, "cycle"):
				refused++
				if !strings.Contains(a, "→") {
					t.Errorf("no path in %q", a)
				}
			case a != "enqueued":
				t.Errorf("answered %q", a)
			}
		}
		if refused != 1 {
			t.Errorf("round %d: %d of three were refused: %q", round, refused, answers)
		}
		if names := enqNames(t, r, dirPending); len(names) != 2 {
			t.Errorf("pending/ holds %v", names)
		}
	}
}

// A cycle that was written directly into files is not walked for ever, and a
// new task that closes a longer one through it is still found.
func TestCycleWrittenByHand(t *testing.T) {
	r := enqRun(t, Options{})
	for _, x := range [][2]string{{"p", `"q", "v"`}, {"q", `"p"`}} {
		body := fmt.Sprintf(`{"task_id": %q, "task_type": "hand", "depends_on": [%s]}`, x[0], x[1])
		enqMust(t, os.WriteFile(filepath.Join(r.path, dirPending, x[0]+".json"), []byte(body), 0o600))
	}
	enqueueOne(t, r, enqTask("z", "p"))
	enqCycle(t, r, "v → q → p → v", enqTask("u", "p"), enqTask("v", "q"))
	enqueueOne(t, r, enqTask("v", "z0"))
}

// A chain is walked once for a whole batch, and each ancestor is read once.
func TestCycleLongChain(t *testing.T) {
	var counter *durable.Counter
	r := enqRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
		d, counter = durable.Counting(d)
		return d
	}})
	tasks := enqTasks("t", 2000)
	for i := range tasks[1:] {
		tasks[i+1].DependsOn = []string{tasks[i].ID}
	}
	counter.Reset()
	_, err := r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{})
	enqMust(t, err)
	if n := counter.Of(durable.OpReadFile); n > 10 {
		t.Errorf("a batch that depends on itself alone read %d files", n)
	}
	counter.Reset()
	enqueueOne(t, r, enqTask("last", tasks[len(tasks)-1].ID, tasks[0].ID))
	if n := counter.Of(durable.OpReadFile); n > len(tasks)+10 {
		t.Errorf("%d ancestors cost %d reads", len(tasks), n)
	}
}
