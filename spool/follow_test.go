package spool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"beeyard"
	"beeyard/internal/durable"
)

func enqBodies(t *testing.T, r *Run, ids ...string) []json.RawMessage {
	t.Helper()
	var tasks []*beeyard.Task
	for _, id := range ids {
		tasks = append(tasks, enqTask(id))
	}
	adds, err := r.additions(tasks, beeyard.EnqueueOptions{})
	enqMust(t, err)
	var bodies []json.RawMessage
	for _, a := range adds {
		bodies = append(bodies, a.body)
	}
	return bodies
}

func TestFollowUpsWaitForTheClaimsSuccess(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("p"))
	ref, dir := enqClaim(t, r, "p")
	got, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n2", "n1"), enqTask("n1")}, beeyard.EnqueueOptions{Under: &ref})
	enqMust(t, err)
	if len(got) != 2 || got[0].Status != statusFollowUp {
		t.Fatalf("answered %+v", got)
	}
	if names := enqNames(t, r, dirPending); len(names) != 0 {
		t.Fatalf("pending/ holds %v before the claim is done", names)
	}
	tasks, names, err := r.readFollowUps(dir, "p")
	enqMust(t, err)
	if len(tasks) != 2 || len(names) != 2 || tasks[0].ID != "n2" || tasks[1].ID != "n1" || tasks[0].Ext.UID == "" {
		t.Fatalf("follow-ups %+v %v", tasks, names)
	}
	// Asked for twice, or with another spelling, or in use, is refused at once.
	for _, id := range []string{"n1", "N1", "p"} {
		_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask(id)}, beeyard.EnqueueOptions{Under: &ref})
		enqIs(t, err, beeyard.ErrExists)
	}
	got, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n1")}, beeyard.EnqueueOptions{Under: &ref, IfAbsent: true})
	enqMust(t, err)
	if got[0].Status != statusExists {
		t.Errorf("answered %+v", got)
	}
	settled, err := r.Settle(enqContext(t), ref, beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	enqMust(t, err)
	slices.Sort(settled.Published)
	if !slices.Equal(settled.Published, []string{"n1", "n2"}) {
		t.Errorf("settled %+v", settled)
	}
	if names := enqNames(t, r, dirPending); !slices.Equal(names, []string{"n1.json", "n2.json"}) {
		t.Errorf("pending/ holds %v", names)
	}
}

func TestFollowUpUnderLostClaim(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("p"))
	ref, dir := enqClaim(t, r, "p")
	other := ref
	other.Token.Nonce = strings.Repeat("0", beeyard.NonceLen)
	_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n1")}, beeyard.EnqueueOptions{Under: &other})
	enqIs(t, err, beeyard.ErrClaimLost)
	enqMust(t, dir.Rename("p.json", dir, tagged("p", tagTaken, "abcdefgh")))
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n1")}, beeyard.EnqueueOptions{Under: &ref})
	enqIs(t, err, beeyard.ErrClaimLost)
	if _, names, err := r.readFollowUps(dir, "p"); err != nil || len(names) != 0 {
		t.Errorf("follow-ups %v, %v", names, err)
	}
}

// The claim is decided while a follow-up is being written: it is not answered
// as if it would be published.
func TestFollowUpDecidedMeanwhile(t *testing.T) {
	gate := newEnqGate(func(op durable.Op) bool {
		return op.Op == durable.OpRenameExcl && strings.Contains(op.NewName, "~"+tagNext+".")
	})
	r := enqRun(t, Options{Wrap: gate.wrap})
	enqueueOne(t, r, enqTask("p"))
	ref, dir := enqClaim(t, r, "p")
	done := make(chan error, 1)
	go func() {
		_, err := r.Enqueue(context.Background(), []*beeyard.Task{enqTask("n1")}, beeyard.EnqueueOptions{Under: &ref})
		done <- err
	}()
	enqHear(t, gate.reached, "the follow-up's name")
	enqMust(t, dir.Rename("p.json", dir, tagged("p", tagTaken, "abcdefgh")))
	close(gate.open)
	enqIs(t, <-done, beeyard.ErrClaimLost)
	if _, names, err := r.readFollowUps(dir, "p"); err != nil || len(names) != 0 {
		t.Errorf("follow-ups %v, %v", names, err)
	}
}

// Finish may be run any number of times: what an earlier one published counts
// as published, whatever became of it; another task's id is skipped.
func TestFollowUpsPublishedOnce(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("other"))
	enqueueOne(t, r, enqTask("Upper"))
	bodies := enqBodies(t, r, "n1", "n2", "n3", "other", "upper")
	for round := range 3 {
		published, skipped, err := r.publishFollowUps(enqContext(t), bodies)
		enqMust(t, err)
		if !slices.Equal(published, []string{"n1", "n2", "n3"}) || !slices.Equal(skipped, []string{"other", "upper"}) {
			t.Errorf("round %d: published %v, skipped %v", round, published, skipped)
		}
		switch round {
		case 0:
			enqFinish(t, r, "n1", beeyard.PlaceDone, beeyard.OutcomeDone)
			enqClaim(t, r, "n2")
		case 1:
			_, err := r.Prune(enqContext(t), beeyard.PruneOptions{})
			enqMust(t, err)
		}
	}
	if names := enqNames(t, r, dirPending); !slices.Equal(names, []string{"Upper.json", "n3.json", "other.json"}) {
		t.Errorf("pending/ holds %v", names)
	}
}

// Rule "follow-up looked for under the lock".
func TestFollowUpLookedForUnderTheLock(t *testing.T) {
	enqUnderTheLock(t, func(r *Run) error {
		published, _, err := r.publishFollowUps(context.Background(), enqBodies(t, r, "x"))
		if err == nil && len(published) != 1 {
			err = errors.New("the follow-up was not published")
		}
		return err
	})
}

func TestFollowUpDiskFull(t *testing.T) {
	log := &enqLog{}
	r := enqRun(t, Options{Wrap: log.wrap})
	enqueueOne(t, r, enqTask("p"))
	ref, dir := enqClaim(t, r, "p")
	log.failWith(func(op durable.Op) error {
		if op.Op == durable.OpSync || op.Op == durable.OpSyncDir {
			return syscall.ENOSPC
		}
		return nil
	})
	got, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n1")}, beeyard.EnqueueOptions{Under: &ref})
	enqIs(t, err, syscall.ENOSPC)
	log.failWith(nil)
	if _, names, err := r.readFollowUps(dir, "p"); err != nil || len(names) != 0 || len(got) != 0 {
		t.Errorf("follow-ups %v, answers %v, %v", names, got, err)
	}
}

// A follow-up that is no task does not keep a settle from going on.
func TestFollowUpUnreadable(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("p"))
	_, dir := enqClaim(t, r, "p")
	enqMust(t, durable.WriteFile(dir, tagged("p", tagNext, "abcdefgh"), []byte(`{`), fileMode))
	if tasks, _, err := r.readFollowUps(dir, "p"); err != nil || len(tasks) != 0 {
		t.Errorf("follow-ups %v, %v", tasks, err)
	}
	published, skipped, err := r.publishFollowUps(enqContext(t), append(enqBodies(t, r, "n1"), json.RawMessage(`{`)))
	if err != nil || len(published) != 1 || len(skipped) != 0 {
		t.Errorf("published %v, skipped %v, %v", published, skipped, err)
	}
}

// A follow-up that was acknowledged after the settle had read them, and before
// its decision, is published all the same.
func TestFollowUpBetweenReadAndDecision(t *testing.T) {
	gate := newEnqGate(func(op durable.Op) bool {
		return op.Op == durable.OpRename && op.Name == "p.json" && strings.Contains(op.NewName, "~"+tagTaken+".")
	})
	r := enqRun(t, Options{Wrap: gate.wrap})
	enqueueOne(t, r, enqTask("p"))
	ref, dir := enqClaim(t, r, "p")
	_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n1")}, beeyard.EnqueueOptions{Under: &ref})
	enqMust(t, err)
	type answer struct {
		settled beeyard.Settled
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		s, err := r.Settle(context.Background(), ref, beeyard.Settlement{Outcome: beeyard.OutcomeDone})
		done <- answer{s, err}
	}()
	enqHear(t, gate.reached, "the decision")
	_, err = r.Enqueue(enqContext(t), []*beeyard.Task{enqTask("n2")}, beeyard.EnqueueOptions{Under: &ref})
	enqMust(t, err)
	close(gate.open)
	got := <-done
	enqMust(t, got.err)
	if !slices.Equal(got.settled.Published, []string{"n1", "n2"}) {
		t.Errorf("settled %+v", got.settled)
	}
	if names := enqNames(t, r, dirPending); !slices.Equal(names, []string{"n1.json", "n2.json"}) {
		t.Errorf("pending/ holds %v", names)
	}
	if _, names, err := r.readFollowUps(dir, "p"); err != nil || len(names) != 0 {
		t.Errorf("%v are left beside the claim, %v", names, err)
	}
}
