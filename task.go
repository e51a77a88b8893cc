package beeyard

import (
	"encoding/json"
	"time"
)

// MaxTaskBytes bounds one task's text at every door and on disk.
const MaxTaskBytes = 16 << 20

// Task is one unit of work. The nine fields before Ext are the format that
// older programs share; what beeyard adds is in Ext, under the one key
// "beeyard", so that they pass it by.
type Task struct {
	ID        string
	Type      string
	RunID     string
	CreatedAt string // RFC 3339 as it was written; see Life
	CreatedBy string // free text
	DependsOn []string
	// Payload is the JSON text as it came in, byte for byte; nil is null.
	Payload  json.RawMessage
	TierHint string // which class of model; empty is null
	Deadline string // informational unless Ext.OnDeadline says "fail"
	Ext      Ext
	// Unknown holds top-level keys of other programs. They are kept.
	Unknown map[string]json.RawMessage
}

// Ext is what beeyard keeps with a task.
type Ext struct {
	// UID names the life of the task if enqueue wrote one. Invariant: never
	// added or changed later.
	UID string `json:"uid,omitempty"`
	// Rev rises by one with each settle, and at nothing else; so a token never repeats.
	Rev int64 `json:"rev,omitempty"`
	// Token is that of the claim which settled the task into this revision.
	Token string `json:"token,omitempty"`

	Priority    int      `json:"priority,omitempty"` // higher first; 0 is normal
	NotBefore   string   `json:"not_before,omitempty"`
	RetryAt     string   `json:"retry_at,omitempty"` // end of a backoff
	Timeout     Duration `json:"timeout,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"` // 0: the worker's
	MaxDeaths   int      `json:"max_deaths,omitempty"`
	Backoff     Duration `json:"backoff,omitempty"` // first delay, doubled each time
	Labels      []string `json:"labels,omitempty"`
	Refs        []string `json:"refs,omitempty"`
	OnDeadline  string   `json:"on_deadline,omitempty"`
	Hold        *Hold    `json:"hold,omitempty"`

	// Attempt counts claims that ended and count; Deaths those of them that a
	// reap or a take-back ended. Each is counted by whoever ends the claim.
	Attempt int `json:"attempt,omitempty"`
	Deaths  int `json:"deaths,omitempty"`
	// AttemptBase and DeathsBase are the counts at the last retry by a person
	// or move to another tier: limits are counted from there.
	AttemptBase int `json:"attempt_base,omitempty"`
	DeathsBase  int `json:"deaths_base,omitempty"`

	Outcome  Outcome   `json:"outcome,omitempty"` // how the last claim ended
	Reason   string    `json:"reason,omitempty"`
	Result   *Result   `json:"result,omitempty"`
	Artifact *Artifact `json:"artifact,omitempty"`
	// Target is where a prepared record goes once it is decided.
	Target Place `json:"target,omitempty"`
	// Next holds the bodies of follow-ups while the record is prepared; after
	// the settle, NextIDs names what was published.
	Next    []json.RawMessage `json:"next,omitempty"`
	NextIDs []string          `json:"next_ids,omitempty"`
	// Attempts is the history, oldest first, at most MaxHistory entries;
	// Dropped counts the ones beyond.
	Attempts []Attempt `json:"attempts,omitempty"`
	Dropped  int       `json:"attempts_dropped,omitempty"`

	Unknown map[string]json.RawMessage `json:"-"`
}

// MaxHistory bounds Ext.Attempts: a task released for ever must not grow for ever.
const MaxHistory = 200

// Hold is a person's wish that a task not run.
type Hold struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	At     string `json:"at,omitempty"`
}

// Artifact says what the deciding claim put under artifacts/.
type Artifact struct {
	Name   string `json:"name,omitempty"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Result is what a handler says of its own work, beside its exit code.
type Result struct {
	Verdict    string           `json:"verdict,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	RetryAfter Duration         `json:"retry_after,omitempty"`
	Spend      *bool            `json:"spend,omitempty"` // false: no attempt spent
	Tokens     map[string]int64 `json:"tokens,omitempty"`
	Cost       float64          `json:"cost,omitempty"` // in the currency of the operator's choice
}

// Attempt is one claim that ended.
type Attempt struct {
	N          int     `json:"n"` // Ext.Attempt after it ended
	Token      string  `json:"token,omitempty"`
	Worker     string  `json:"worker,omitempty"`
	Tier       string  `json:"tier,omitempty"`
	StartedAt  string  `json:"started_at,omitempty"`
	EndedAt    string  `json:"ended_at"`
	Outcome    Outcome `json:"outcome"`
	Reason     string  `json:"reason,omitempty"`
	ExitCode   *int    `json:"exit_code,omitempty"`
	Signal     string  `json:"signal,omitempty"`
	TimedOut   bool    `json:"timed_out,omitempty"`
	OOM        bool    `json:"oom,omitempty"`
	DurationMS int64   `json:"duration_ms,omitempty"`
	PeakBytes  int64   `json:"peak_memory_bytes,omitempty"`
	StderrTail string  `json:"stderr_tail,omitempty"`
	Result     *Result `json:"result,omitempty"`
	Late       bool    `json:"late,omitempty"` // the worker had slept past its beat
}

// Life names one life of the task: the uid if enqueue wrote one, else
// created_at. Two bodies of one id with different lives are different tasks.
func (t *Task) Life() string {
	if t.Ext.UID != "" {
		return t.Ext.UID
	}
	return t.CreatedAt
}

// Created is CreatedAt as an instant; false when it cannot be read.
func (t *Task) Created() (time.Time, bool) { return ParseTime(t.CreatedAt) }

// Due is when a waiting task may run: the later of not_before and retry_at.
// The zero time when neither is set. A time that cannot be read counts as set
// by a person in error: the task does not run early, it never comes due, and
// Judge says why.
func (t *Task) Due() (due time.Time, err error) {
	for _, s := range []string{t.Ext.NotBefore, t.Ext.RetryAt} {
		if s == "" {
			continue
		}
		at, ok := ParseTime(s)
		if !ok {
			return time.Time{}, Because(ErrCorrupt, "not_before or retry_at is not a time: "+Quote(s))
		}
		if at.After(due) {
			due = at
		}
	}
	return due, nil
}

// ParseTime reads RFC 3339 with any offset, 0 to 9 decimals and either case.
func ParseTime(s string) (time.Time, bool) {
	if len(s) < 20 || len(s) > 40 {
		return time.Time{}, false
	}
	b := []byte(s)
	for i, c := range b {
		if c == 't' || c == 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	return t, err == nil
}

// FormatTime writes an instant in UTC with Z, to the microsecond.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// Duration is a time.Duration that JSON shows in Go's form ("90s").
type Duration time.Duration

// MarshalText writes Go's form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads Go's form. The error is ErrUsage.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return Because(ErrUsage, "not a duration like 90s or 5m: "+Quote(string(b)))
	}
	*d = Duration(v)
	return nil
}
