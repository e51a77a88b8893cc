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
			a.status, a.body, a.state = statusExists, nil, ""
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

func refused(t *beeyard.Task, why string) error {
	return &beeyard.Error{Op: "enqueue", ID: t.ID, Err: beeyard.Because(beeyard.ErrUsage, why)}
}

// checkTask is the native door's check of a whole task.
func checkTask(t *beeyard.Task) error {
	if err := beeyard.CheckID("task", t.ID); err != nil {
		return err
	}
	if err := beeyard.CheckType(t.Type); err != nil {
		return err
	}
	for _, d := range t.DependsOn {
		if err := beeyard.CheckID("dependency", d); err != nil {
			return err
		}
	}
	if err := beeyard.CheckStoredID(t.RunID); err != nil {
		return err
	}
	text := append([]string{t.CreatedBy, t.TierHint, t.Deadline, t.Ext.UID}, t.Ext.Labels...)
	text = append(text, t.Ext.Refs...)
	if h := t.Ext.Hold; h != nil {
		text = append(text, h.By, h.Reason, h.At)
	}
	for _, s := range text {
		if !beeyard.ValidText(s) {
			return refused(t, "it holds text that is not UTF-8, or NUL: "+beeyard.Quote(s))
		}
	}
	for _, at := range []struct{ key, value string }{
		{"created_at", t.CreatedAt}, {"not_before", t.Ext.NotBefore}, {"deadline", deadlineOf(t)},
	} {
		if _, ok := beeyard.ParseTime(at.value); !ok && at.value != "" {
			return refused(t, at.key+" is not an RFC 3339 time: "+beeyard.Quote(at.value))
		}
	}
	switch e := t.Ext; {
	case e.OnDeadline != "" && e.OnDeadline != "fail":
		return refused(t, `on_deadline is "fail" or nothing`)
	case e.MaxAttempts < 0, e.MaxDeaths < 0, e.Timeout < 0, e.Backoff < 0:
		return refused(t, "limits and durations are not negative")
	}
	return nil
}

// deadlineOf is the deadline where something acts on it; elsewhere it is text
// for people.
func deadlineOf(t *beeyard.Task) string {
	if t.Ext.OnDeadline == "" {
		return ""
	}
	return t.Deadline
}
