package main

import (
	"encoding/json"

	"beeyard"
)

// taskJSON is a task as every command shows it. Keys are stable; lists are
// arrays, never null. The payload is left out of lists: it may be large.
type taskJSON struct {
	TaskID    string           `json:"task_id"`
	TaskType  string           `json:"task_type"`
	RunID     string           `json:"run_id"`
	State     beeyard.State    `json:"state"`
	Reasons   []beeyard.Reason `json:"reasons"`
	CreatedAt string           `json:"created_at"`
	CreatedBy string           `json:"created_by"`
	DependsOn []string         `json:"depends_on"`
	TierHint  *string          `json:"tier_hint"`
	Deadline  *string          `json:"deadline"`
	Payload   json.RawMessage  `json:"payload,omitempty"`

	Priority    int                `json:"priority"`
	Labels      []string           `json:"labels"`
	Refs        []string           `json:"refs"`
	NotBefore   string             `json:"not_before,omitempty"`
	RetryAt     string             `json:"retry_at,omitempty"`
	Timeout     *beeyard.Duration  `json:"timeout"` // null: no timeout
	MaxAttempts int                `json:"max_attempts,omitempty"`
	MaxDeaths   int                `json:"max_deaths,omitempty"`
	Backoff     *beeyard.Duration  `json:"backoff,omitempty"`
	OnDeadline  string             `json:"on_deadline,omitempty"`
	Hold        *beeyard.Hold      `json:"hold,omitempty"`
	Attempt     int                `json:"attempt"` // claims that ended and count
	Deaths      int                `json:"deaths"`
	Outcome     beeyard.Outcome    `json:"outcome,omitempty"`
	Reason      string             `json:"reason,omitempty"`
	Result      *beeyard.Result    `json:"result,omitempty"`
	Artifact    *beeyard.Artifact  `json:"artifact,omitempty"`
	NextIDs     []string           `json:"next_ids,omitempty"`
	Claim       *beeyard.ClaimInfo `json:"claim,omitempty"`
	Detail      string             `json:"detail,omitempty"`
}

// shownTask gives v its shape, without the payload.
func shownTask(v *beeyard.View) taskJSON {
	t := v.Task
	if t == nil {
		t = &beeyard.Task{}
	}
	e := &t.Ext
	out := taskJSON{
		TaskID: t.ID, TaskType: t.Type, RunID: t.RunID, State: v.State, Reasons: v.Reasons,
		CreatedAt: t.CreatedAt, CreatedBy: t.CreatedBy, DependsOn: t.DependsOn,
		TierHint: textOrNil(t.TierHint), Deadline: textOrNil(t.Deadline),
		Priority: e.Priority, Labels: e.Labels, Refs: e.Refs, NotBefore: e.NotBefore, RetryAt: e.RetryAt,
		Timeout: durationOrNil(e.Timeout), MaxAttempts: e.MaxAttempts, MaxDeaths: e.MaxDeaths, Backoff: durationOrNil(e.Backoff),
		OnDeadline: e.OnDeadline, Hold: e.Hold, Attempt: e.Attempt, Deaths: e.Deaths, Outcome: e.Outcome,
		Reason: e.Reason, Result: e.Result, Artifact: e.Artifact, NextIDs: e.NextIDs, Claim: v.Claim, Detail: v.Detail,
	}
	if out.Reasons == nil {
		out.Reasons = []beeyard.Reason{}
	}
	for _, list := range []*[]string{&out.DependsOn, &out.Labels, &out.Refs} {
		if *list == nil {
			*list = []string{}
		}
	}
	return out
}

// payloadOf is the payload as a program wants it: null where there is none.
func payloadOf(t *beeyard.Task) json.RawMessage {
	if t == nil || len(t.Payload) == 0 {
		return json.RawMessage("null")
	}
	return t.Payload
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func durationOrNil(d beeyard.Duration) *beeyard.Duration {
	if d == 0 {
		return nil
	}
	return &d
}

// orEmpty makes a list that JSON shows as [].
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
