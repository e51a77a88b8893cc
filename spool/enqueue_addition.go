package spool

import (
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/strict"

	"github.com/google/uuid"
)

// addition is one task on its way into the run.
type addition struct {
	task  *beeyard.Task // a copy, filled in
	body  []byte        // encoded; dropped once it is written
	place beeyard.Place // pending or held
	temp  string        // its temporary name in place, "" when it has none
	mark  string        // temporary name of its fold mark, "" when it has none

	// status is empty until the fate is known.
	status string
	state  beeyard.State
	found  found // where its id is in use
}

const (
	statusNone     = ""
	statusEnqueued = "enqueued"
	statusExists   = "exists"
	statusReplace  = "replace" // found waiting, not replaced yet
	statusFollowUp = "follow_up"
	statusSkipped  = "skipped" // a follow-up whose id another task has
)

// additions checks and completes what is to be enqueued. All is checked before
// anything is written; the error is of the first that fails. A second of one
// id is refused, or passed over where ids in use are.
func (r *Run) additions(tasks []*beeyard.Task, o beeyard.EnqueueOptions) ([]*addition, error) {
	now := r.clk.Now()
	adds := make([]*addition, 0, len(tasks))
	seen := make(map[string]string, len(tasks))
	for i, t := range tasks {
		if t == nil {
			return nil, &beeyard.Error{Op: "enqueue", Err: beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("task %d of the batch is nil", i+1))}
		}
		// Within a batch a microsecond apart: its order is the order of created_at.
		a, err := r.addition(t, now.Add(time.Duration(i)*time.Microsecond), now)
		if err != nil {
			return nil, err
		}
		fold := beeyard.Fold(t.ID)
		switch other, twice := seen[fold]; {
		case !twice:
			seen[fold] = t.ID
		case other != t.ID:
			return nil, foldClash(t.ID, other)
		case !o.IfAbsent:
			return nil, &beeyard.Error{Op: "enqueue", ID: t.ID, Err: beeyard.Because(beeyard.ErrExists, "it is in the batch twice"),
				Hint: "give each task an id of its own"}
		default:
			a.exists(found{})
		}
		adds = append(adds, a)
	}
	return adds, nil
}

// addition checks one task and fills in what enqueue owes it. Of beeyard's own
// fields only wishes are taken over: revision, attempts and outcome are what
// happened here, and nothing has yet.
func (r *Run) addition(in *beeyard.Task, created, now time.Time) (*addition, error) {
	t := *in
	w := in.Ext
	t.Ext = beeyard.Ext{UID: w.UID, Priority: w.Priority, NotBefore: w.NotBefore, Timeout: w.Timeout,
		MaxAttempts: w.MaxAttempts, MaxDeaths: w.MaxDeaths, Backoff: w.Backoff, Labels: w.Labels, Refs: w.Refs,
		OnDeadline: w.OnDeadline, Hold: w.Hold, Unknown: w.Unknown}
	if t.CreatedAt == "" {
		t.CreatedAt = beeyard.FormatTime(created)
	}
	if t.RunID == "" {
		t.RunID = r.id
	}
	if h := w.Hold; h != nil && h.At == "" {
		t.Ext.Hold = &beeyard.Hold{By: h.By, Reason: h.Reason, At: beeyard.FormatTime(now)}
	}
	if err := checkTask(&t); err != nil {
		return nil, err
	}
	if t.Ext.UID == "" {
		uid, err := r.newUID()
		if err != nil {
			return nil, err
		}
		t.Ext.UID = uid
	}
	a := &addition{task: &t, place: startPlace(&t, now), state: beeyard.StateReady}
	switch {
	case t.Ext.Hold != nil:
		a.state = beeyard.StateHeld
	case a.place == beeyard.PlaceHeld:
		a.state = beeyard.StateWaiting
	}
	body, err := t.Encode()
	if err != nil {
		return nil, refused(&t, "it cannot be written as JSON: "+err.Error())
	}
	// What every reader will ask of the file: a task that would be quarantined is no task.
	if err := strict.Check(body, strict.Options{MaxBytes: beeyard.MaxTaskBytes}); err != nil {
		return nil, refused(&t, err.Error())
	}
	a.body = body
	return a, nil
}

// exists gives an addition the fate of one whose id is in use. Its state is
// told where the place alone says it.
func (a *addition) exists(f found) {
	a.status, a.found, a.body, a.state = statusExists, f, nil, ""
	switch f.place {
	case beeyard.PlaceClaimed:
		a.state = beeyard.StateClaimed
	case beeyard.PlaceDone:
		a.state = beeyard.StateDone
	}
}

// startPlace: older workers look into pending/ alone, so what may not run yet is
// kept where they do not see it.
func startPlace(t *beeyard.Task, now time.Time) beeyard.Place {
	if due, err := t.Due(); t.Ext.Hold != nil || err != nil || due.After(now) {
		return beeyard.PlaceHeld
	}
	return beeyard.PlacePending
}

func (r *Run) newUID() (string, error) {
	r.enq.uidsMu.Lock()
	defer r.enq.uidsMu.Unlock()
	id, err := uuid.NewV7FromReader(r.enq.uids)
	if err != nil {
		return "", fmt.Errorf("make uid: %w", err)
	}
	return id.String(), nil
}
