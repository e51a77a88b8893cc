package spool

import (
	"fmt"
	"testing"

	"beeyard"
)

// Same id enqueued twice: 20 processes at once, one wins, and the body is the
// winner's.
func TestEnqueueSameIDFromManyProcesses(t *testing.T) {
	r := enqRun(t, Options{})
	const n = 20
	var calls [][]string
	for i := range n {
		calls = append(calls, []string{r.path, "t1", fmt.Sprintf("p%d", i)})
	}
	winner := -1
	for i, answer := range enqRace(t, calls) {
		switch {
		case answer == "enqueued" && winner < 0:
			winner = i
		case answer != "exists":
			t.Errorf("process %d answered %q", i, answer)
		}
	}
	got, _, err := readTask(r.pending, "t1.json", "t1")
	enqMust(t, err)
	if got.CreatedBy != fmt.Sprintf("p%d", winner) {
		t.Errorf("the body is of %s, the winner is %d", got.CreatedBy, winner)
	}
	if names := enqNames(t, r, dirPending); len(names) != 1 {
		t.Errorf("pending/ holds %v", names)
	}
}

// Same id enqueued twice: while it is pending, held, claimed, decided, after
// done, after failed, archived, deleted, and when only completed_tasks has it.
func TestEnqueueRefusesIDInUse(t *testing.T) {
	for name, arrange := range map[string]func(t *testing.T, r *Run){
		"pending": func(*testing.T, *Run) {},
		"held": func(t *testing.T, r *Run) {
			enqMust(t, r.pending.Rename("t1.json", r.held, "t1.json"))
		},
		"claimed": func(t *testing.T, r *Run) { enqClaim(t, r, "t1") },
		"decided": func(t *testing.T, r *Run) {
			_, d := enqClaim(t, r, "t1")
			enqMust(t, d.Rename("t1.json", d, tagged("t1", tagTaken, "abcdefgh")))
		},
		"older claim": func(t *testing.T, r *Run) {
			enqMust(t, r.claimed.Mkdir("w9", folderMode))
			d, err := r.claimed.OpenDir("w9")
			enqMust(t, err)
			enqMust(t, r.pending.Rename("t1.json", d, "t1.json"))
			enqMust(t, d.Close())
		},
		"done": func(t *testing.T, r *Run) {
			enqFinish(t, r, "t1", beeyard.PlaceDone, beeyard.OutcomeDone)
		},
		"failed": func(t *testing.T, r *Run) {
			enqFinish(t, r, "t1", beeyard.PlaceFailed, beeyard.OutcomeFailed)
		},
		"archived": func(t *testing.T, r *Run) {
			enqFinish(t, r, "t1", beeyard.PlaceDone, beeyard.OutcomeDone)
			_, err := r.Prune(enqContext(t), beeyard.PruneOptions{})
			enqMust(t, err)
		},
		"deleted": func(t *testing.T, r *Run) {
			enqFinish(t, r, "t1", beeyard.PlaceFailed, beeyard.OutcomeFailed)
			_, err := r.Prune(enqContext(t), beeyard.PruneOptions{Delete: true, States: []beeyard.State{beeyard.StateFailed}})
			enqMust(t, err)
		},
		"completed elsewhere": func(t *testing.T, r *Run) {
			enqFinish(t, r, "t1", beeyard.PlaceDone, beeyard.OutcomeDone)
			enqMust(t, r.completedNow(enqContext(t), "t1"))
			enqMust(t, r.done.Remove("t1.json"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := enqRun(t, Options{})
			enqueueOne(t, r, enqTask("t1"))
			arrange(t, r)
			again := func(o beeyard.EnqueueOptions, ids ...string) ([]beeyard.Enqueued, error) {
				var tasks []*beeyard.Task
				for _, id := range ids {
					tasks = append(tasks, enqTask(id))
				}
				return r.Enqueue(enqContext(t), tasks, o)
			}
			_, err := again(beeyard.EnqueueOptions{}, "t1")
			enqIs(t, err, beeyard.ErrExists)
			// A batch is refused as a whole.
			_, err = again(beeyard.EnqueueOptions{}, "t0", "t1", "t2")
			enqIs(t, err, beeyard.ErrExists)
			if found, _, err := r.inUse(enqContext(t), "t0"); err != nil || found.place != "" {
				t.Fatalf("a part of a refused batch is in %s (%v)", found.place, err)
			}
			got, err := again(beeyard.EnqueueOptions{IfAbsent: true}, "t1")
			enqMust(t, err)
			states := map[string]beeyard.State{"claimed": beeyard.StateClaimed, "decided": beeyard.StateClaimed,
				"older claim": beeyard.StateClaimed, "done": beeyard.StateDone, "completed elsewhere": beeyard.StateDone}
			if len(got) != 1 || got[0].Status != statusExists || got[0].State != states[name] {
				t.Errorf("if-absent answered %+v", got)
			}
			// Many ids are looked for by listing.
			var many []string
			for i := range 40 {
				many = append(many, fmt.Sprintf("m%d", i))
			}
			got, err = again(beeyard.EnqueueOptions{IfAbsent: true}, append(many, "t1")...)
			enqMust(t, err)
			if len(got) != 41 || got[40].Status != statusExists || got[0].Status != statusEnqueued {
				t.Errorf("if-absent answered %+v", got)
			}
			enqNames(t, r, dirPending)
		})
	}
}

func TestEnqueueSameIDTwiceInOneBatch(t *testing.T) {
	r := enqRun(t, Options{})
	twice := []*beeyard.Task{enqTask("a"), enqTask("b"), enqTask("a")}
	_, err := r.Enqueue(enqContext(t), twice, beeyard.EnqueueOptions{})
	enqIs(t, err, beeyard.ErrExists)
	got, err := r.Enqueue(enqContext(t), twice, beeyard.EnqueueOptions{IfAbsent: true})
	enqMust(t, err)
	if len(got) != 3 || got[0].Status != statusEnqueued || got[1].Status != statusEnqueued || got[2].Status != statusExists {
		t.Errorf("answered %+v", got)
	}
}

// --replace works only while the task waits to run.
func TestEnqueueReplace(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("t1"))
	before, _, err := readTask(r.pending, "t1.json", "t1")
	enqMust(t, err)
	with := enqTask("t1", "other")
	with.CreatedBy = "second"
	got, err := r.Enqueue(enqContext(t), []*beeyard.Task{with, enqTask("t2")}, beeyard.EnqueueOptions{Replace: true})
	enqMust(t, err)
	if len(got) != 2 || got[0].Status != "replaced" || got[1].Status != statusEnqueued {
		t.Fatalf("answered %+v", got)
	}
	after, _, err := readTask(r.pending, "t1.json", "t1")
	enqMust(t, err)
	if after.CreatedBy != "second" || after.Life() != before.Life() || after.Ext.Rev != before.Ext.Rev+1 {
		t.Errorf("replaced by %+v", after)
	}
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("other", "t1")}, beeyard.EnqueueOptions{})
	enqIs(t, err, beeyard.ErrCycle)
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("t2", "t2")}, beeyard.EnqueueOptions{Replace: true})
	enqIs(t, err, beeyard.ErrCycle)
	enqClaim(t, r, "t1")
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{with}, beeyard.EnqueueOptions{Replace: true})
	enqIs(t, err, beeyard.ErrConflict)
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{with}, beeyard.EnqueueOptions{Replace: true, IfAbsent: true})
	enqIs(t, err, beeyard.ErrUsage)
}
