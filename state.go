package beeyard

import (
	"time"
)

// State is what a task may do now. One function, Judge, computes it.
type State string

// The states. Canceled is a failed task whose outcome is "canceled".
const (
	StateBlocked     State = "blocked" // a dependency is not met
	StateReady       State = "ready"   // may be claimed
	StateWaiting     State = "waiting" // not before a time, or backing off
	StateHeld        State = "held"    // on a person's hold
	StateClaimed     State = "claimed" // somebody has it
	StateDone        State = "done"
	StateFailed      State = "failed"
	StateCanceled    State = "canceled"
	StateQuarantined State = "quarantined" // no task that can be read
)

// States lists all, in the order that people read them.
func States() []State {
	return []State{StateReady, StateClaimed, StateBlocked, StateWaiting, StateHeld,
		StateDone, StateFailed, StateCanceled, StateQuarantined}
}

// Finished reports whether the task has ended.
func (s State) Finished() bool {
	return s == StateDone || s == StateFailed || s == StateCanceled
}

// Place is where a store keeps a body.
type Place string

// The places; in a run directory they are folders.
const (
	PlacePending    Place = "pending"
	PlaceHeld       Place = "held"
	PlaceClaimed    Place = "claimed"
	PlaceDone       Place = "done"
	PlaceFailed     Place = "failed"
	PlaceQuarantine Place = "quarantine"
	PlaceArchive    Place = "archive"
)

// Ended reports whether bodies there have ended.
func (p Place) Ended() bool { return p == PlaceDone || p == PlaceFailed }

// Dep is what a store knows of one dependency.
type Dep struct {
	ID    string
	Met   bool     // in done/, in completed_tasks, or pruned after it was done
	Known bool     // there is, or was, such a task
	State State    // of that task; meaningful when Known and not Met
	Cycle []string // the path of a cycle that goes through it, when there is one
}

// Reason says why a task is not ready, in words and for programs.
type Reason struct {
	Kind    string   `json:"kind"` // dependency, cycle, time, hold, claimed, finished, unreadable
	Blocker string   `json:"blocker,omitempty"`
	State   State    `json:"blocker_state,omitempty"`
	Cycle   []string `json:"cycle,omitempty"`
	Until   string   `json:"until,omitempty"`
	Text    string   `json:"text"`
	// Stuck: nothing that runs by itself will ever change this.
	Stuck bool `json:"stuck,omitempty"`
}

// Verdict is a state and the reasons for it.
type Verdict struct {
	State   State
	Reasons []Reason
}

// Judge is the one function that decides what is ready and why not. Every
// command, the board, MCP and HTTP use it. dep answers for one id and is only
// asked for tasks that are pending or held.
func Judge(t *Task, at Place, now time.Time, dep func(id string) Dep) Verdict {
	switch at {
	case PlaceDone:
		return Verdict{State: StateDone}
	case PlaceFailed:
		if t.Ext.Outcome == OutcomeCanceled {
			return Verdict{StateCanceled, reason("finished", "canceled", t.Ext.Reason)}
		}
		return Verdict{StateFailed, reason("finished", "failed", t.Ext.Reason)}
	case PlaceArchive:
		return Verdict{State: ArchivedState(t)}
	case PlaceClaimed:
		return Verdict{StateClaimed, []Reason{{Kind: "claimed", Text: "a worker has it"}}}
	case PlaceQuarantine:
		return Verdict{StateQuarantined, []Reason{{Kind: "unreadable", Text: "it is not a task that can be read", Stuck: true}}}
	}
	var v Verdict
	v.State = StateReady
	for _, id := range t.DependsOn {
		if r, met := blockedBy(t.ID, dep(id)); !met {
			v.State = StateBlocked
			v.Reasons = append(v.Reasons, r)
		}
	}
	due, err := t.Due()
	switch {
	case t.Ext.Hold != nil:
		v.State = StateHeld
		r := Reason{Kind: "hold", Stuck: true, Text: "held"}
		if t.Ext.Hold.By != "" {
			r.Text += " by " + t.Ext.Hold.By
		}
		if t.Ext.Hold.Reason != "" {
			r.Text += ": " + t.Ext.Hold.Reason
		}
		v.Reasons = append([]Reason{r}, v.Reasons...)
	case err != nil:
		v.State = StateWaiting
		v.Reasons = append([]Reason{{Kind: "time", Stuck: true, Text: err.Error()}}, v.Reasons...)
	case due.After(now):
		v.State = StateWaiting
		r := Reason{Kind: "time", Until: FormatTime(due), Text: "not before " + FormatTime(due)}
		if t.Ext.RetryAt != "" {
			r.Text = "backing off until " + FormatTime(due)
		}
		v.Reasons = append([]Reason{r}, v.Reasons...)
	}
	return v
}

func reason(kind, text, why string) []Reason {
	if why != "" {
		text += ": " + why
	}
	return []Reason{{Kind: kind, Text: text}}
}

// ArchivedState is the state in which an archived task ended.
func ArchivedState(t *Task) State {
	switch t.Ext.Outcome {
	case OutcomeCanceled:
		return StateCanceled
	case OutcomeFailed, OutcomeReaped:
		return StateFailed
	}
	return StateDone
}

func blockedBy(self string, d Dep) (Reason, bool) {
	r := Reason{Kind: "dependency", Blocker: d.ID, State: d.State}
	switch {
	case d.ID == self:
		r.Kind, r.Cycle, r.Stuck = "cycle", []string{self, self}, true
		r.Text = "it depends on itself"
	case d.Met:
		return Reason{}, true
	case len(d.Cycle) > 0:
		r.Kind, r.Cycle, r.Stuck = "cycle", d.Cycle, true
		r.Text = "it is part of a dependency cycle: " + joinPath(d.Cycle)
	case !d.Known:
		r.Stuck = true
		r.Text = "it waits for " + d.ID + ", which does not exist"
	case d.State == StateFailed, d.State == StateCanceled:
		r.Stuck = true
		r.Text = "it waits for " + d.ID + ", which " + map[State]string{StateFailed: "failed", StateCanceled: "was canceled"}[d.State]
	case d.State == StateQuarantined:
		r.Stuck = true
		r.Text = "it waits for " + d.ID + ", which is quarantined"
	default:
		r.Text = "it waits for " + d.ID + ", which is " + string(d.State)
	}
	return r, false
}

func joinPath(ids []string) string {
	s := ""
	for i, id := range ids {
		if i > 0 {
			s += " → "
		}
		s += id
	}
	return s
}

// Before is the order among ready tasks: priority (higher first), then
// created_at as an instant where both can be read and as text otherwise, then id.
func Before(a, b *Task) bool {
	if a.Ext.Priority != b.Ext.Priority {
		return a.Ext.Priority > b.Ext.Priority
	}
	if a.CreatedAt != b.CreatedAt {
		at, aok := a.Created()
		bt, bok := b.Created()
		if aok != bok {
			return aok
		}
		if !aok {
			return a.CreatedAt < b.CreatedAt
		}
		if !at.Equal(bt) {
			return at.Before(bt)
		}
	}
	return a.ID < b.ID
}

// FindCycle walks from start's dependencies through unfinished tasks and
// returns the first path that comes back to start, start at both ends, or nil.
// deps gives the dependencies of an unfinished task, and false for an id that
// ends a branch (done, or unknown). It is iterative: a chain of 100,000 costs
// no stack.
func FindCycle(start string, first []string, deps func(id string) ([]string, bool)) []string {
	parent := map[string]string{}
	var stack []string
	push := func(from string, ids []string) bool {
		for _, id := range ids {
			if id == start {
				parent[start+"\x00"] = from
				return true
			}
			if _, seen := parent[id]; !seen {
				parent[id] = from
				stack = append(stack, id)
			}
		}
		return false
	}
	found := push(start, first)
	for !found && len(stack) > 0 {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if next, open := deps(id); open {
			found = push(id, next)
		}
	}
	if !found {
		return nil
	}
	path := []string{start}
	for at := parent[start+"\x00"]; at != start; at = parent[at] {
		path = append(path, at)
	}
	path = append(path, start)
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}
