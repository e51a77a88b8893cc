package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"beeyard"
	"beeyard/internal/durable"
)

// enqueueUnder leaves additions beside a claim, as x~next.<r>: its settle
// publishes them if it is done. On nil they are durable.
func (r *Run) enqueueUnder(ctx context.Context, adds []*addition, ref beeyard.Ref, ifAbsent bool) (err error) {
	dir, err := r.openClaimDir(ref.Token)
	if missing(err) {
		return claimLost(ref.TaskID)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := r.current(dir, ref.TaskID); err != nil {
		return err
	}
	if err := r.checkFollowUps(ctx, dir, ref.TaskID, adds, ifAbsent); err != nil {
		return err
	}
	var written []string
	for _, a := range adds {
		if a.status != statusNone {
			continue
		}
		name := tagged(ref.TaskID, tagNext, nonce(recordNonce))
		if err = leaveFollowUp(dir, name, a.body); err != nil {
			break
		}
		written = append(written, name)
	}
	if err == nil {
		err = dir.Sync()
	}
	if err == nil {
		// Only now is it sure that the settle, which reads after its decision, sees them.
		err = r.current(dir, ref.TaskID)
	}
	if err != nil {
		for _, name := range written {
			_ = dir.Remove(name) // with the claim lost its reaper keeps or drops it
		}
		return err
	}
	for _, a := range adds {
		if a.status == statusNone {
			a.status, a.body, a.state = statusFollowUp, nil, ""
		}
	}
	return nil
}

// current checks that a claim is still its owner's.
func (r *Run) current(dir durable.Dir, id string) error {
	ok, err := dir.Exists(bodyName(id))
	if err != nil {
		return fmt.Errorf("look for the claim: %w", err)
	}
	if !ok {
		return claimLost(id)
	}
	return nil
}

// checkFollowUps refuses early what the settle would have to leave out. It
// asks without the lock: the settle asks again, under it.
func (r *Run) checkFollowUps(ctx context.Context, dir durable.Dir, id string, adds []*addition, ifAbsent bool) error {
	rule := refuseUsed
	if ifAbsent {
		rule = skipUsed
	}
	staged, _, err := r.readFollowUps(dir, id)
	if err != nil {
		return err
	}
	byFold := make(map[string]string, len(staged))
	for _, t := range staged {
		byFold[beeyard.Fold(t.ID)] = t.ID
	}
	var no refusals
	for _, a := range adds {
		other, there := byFold[beeyard.Fold(a.task.ID)]
		switch {
		case !there || a.status != statusNone:
		case other != a.task.ID:
			no.add(foldClash(a.task.ID, other))
		case ifAbsent:
			a.status = statusExists
		default:
			no.add(&beeyard.Error{Op: "enqueue", ID: a.task.ID, Err: beeyard.Because(beeyard.ErrExists, "this claim has asked for it already"),
				Hint: "pass over it with --if-absent"})
		}
	}
	if no.n > 0 {
		return no.err()
	}
	return r.judge(ctx, adds, rule)
}

// leaveFollowUp makes a whole, flushed file appear under name in D.
func leaveFollowUp(dir durable.Dir, name string, body []byte) error {
	temp, err := durable.WriteTemp(dir, "next", body, fileMode)
	if err != nil {
		return fmt.Errorf("write follow-up: %w", err)
	}
	if err := dir.RenameExcl(temp, dir, name); err != nil {
		_ = dir.Remove(temp)
		return fmt.Errorf("leave follow-up: %w", err)
	}
	return nil
}

// readFollowUps reads what was enqueued under the claim of id in D, oldest
// first, and the names it lies under. What cannot be read as a task is left
// where it is and reported: a settle must not hang on it.
func (r *Run) readFollowUps(dir durable.Dir, id string) (tasks []*beeyard.Task, names []string, err error) {
	type next struct {
		name string
		task *beeyard.Task
	}
	var all []next
	err = dir.Each(func(e durable.Entry) bool {
		if i, tag, _ := parseEntry(e.Name); tag == tagNext && i == id {
			all = append(all, next{name: e.Name})
		}
		return true
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list follow-ups: %w", err)
	}
	for i := range all {
		data, _, err := dir.ReadFile(all[i].name, beeyard.MaxTaskBytes)
		if missing(err) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read follow-up: %w", err)
		}
		if all[i].task, err = parseAny(data); err != nil {
			r.note("follow-up %s of %s is no task and is left out: %v", all[i].name, beeyard.Quote(id), err)
		}
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].task, all[j].task
		if a == nil || b == nil {
			return b == nil && a != nil
		}
		if a.CreatedAt != b.CreatedAt {
			return a.CreatedAt < b.CreatedAt
		}
		return a.ID < b.ID
	})
	for _, n := range all {
		if n.task != nil {
			tasks, names = append(tasks, n.task), append(names, n.name)
		}
	}
	return tasks, names, nil
}

// parseAny reads a body whose id is not known from its name.
func parseAny(data []byte) (*beeyard.Task, error) {
	t, err := beeyard.DecodeTask(data)
	if err != nil {
		return nil, err
	}
	return parseTask(data, t.ID)
}

// publishFollowUps is step 1 of Finish: the bodies that a decided record
// carries are enqueued, under the lock; one whose id another task has is
// skipped. It may be run any number of times: a body that is here with the
// same life was published by an earlier finisher.
func (r *Run) publishFollowUps(ctx context.Context, bodies []json.RawMessage) (published, skipped []string, err error) {
	now := r.clk.Now()
	adds := make([]*addition, 0, len(bodies))
	for _, b := range bodies {
		t, err := parseAny(b)
		if err != nil {
			r.note("a follow-up is no task and is left out: %v", err)
			continue
		}
		adds = append(adds, &addition{task: t, body: b, place: startPlace(t, now)})
	}
	if err := r.admit(ctx, adds, followUps, nil); err != nil {
		return nil, nil, err
	}
	for _, a := range adds {
		if a.status == statusEnqueued {
			published = append(published, a.task.ID)
		} else {
			skipped = append(skipped, a.task.ID)
		}
	}
	return published, skipped, nil
}
