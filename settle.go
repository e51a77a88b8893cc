package beeyard

import (
	"fmt"
	"math"
	"time"
)

// Outcome is how a claim ended.
type Outcome string

// The outcomes. Only OutcomeDone publishes the artifact and the follow-ups.
const (
	OutcomeDone     Outcome = "done"
	OutcomeFailed   Outcome = "failed"   // no more attempts, or the caller says it is final
	OutcomeRetry    Outcome = "retry"    // failed, attempts are left
	OutcomeEscalate Outcome = "escalate" // the same task on the next tier
	OutcomeRelease  Outcome = "release"  // given back, no attempt spent
	OutcomeCanceled Outcome = "canceled"
	OutcomeReaped   Outcome = "reaped" // its worker died
	OutcomeHold     Outcome = "hold"   // an operation put it on hold
	OutcomeUnhold   Outcome = "unhold"
	OutcomeReplace  Outcome = "replace" // an operation changed the body
	OutcomeRequeue  Outcome = "requeue" // a person's retry of a finished task
)

// Settlement is what the one who ends a claim says of it.
type Settlement struct {
	Outcome Outcome
	Reason  string
	// Final: a failed settlement does not retry even when attempts are left.
	Final bool
	// RetryAfter overrides the backoff of a retry, or delays a release.
	RetryAfter time.Duration
	// NoSpend: a retry that costs no attempt (rate limits, overload).
	NoSpend bool
	Tier    string // OutcomeEscalate: the next tier; empty when none is left
	Hold    *Hold  // OutcomeHold
	Replace *Task  // OutcomeReplace: the new body; id, life and history stay
	// Artifact is the staged output, measured; nil when there is none.
	Artifact *Artifact
	// FollowUps are bodies to enqueue if the outcome is done.
	FollowUps []*Task
	// Report is what is known of the handler's run; N, Token, EndedAt and
	// Outcome are filled in here.
	Report Attempt
	Limits Limits
}

// Limits are the worker's defaults; a task's own win.
type Limits struct {
	MaxAttempts int           // failed settles before the task fails; 3
	MaxDeaths   int           // deaths before the task fails; 3
	Backoff     time.Duration // first delay; 10 s
	MaxBackoff  time.Duration // 10 m
}

// DefaultLimits are the contract's.
func DefaultLimits() Limits {
	return Limits{MaxAttempts: 3, MaxDeaths: 3, Backoff: 10 * time.Second, MaxBackoff: 10 * time.Minute}
}

// For overlays the task's own limits and fills in defaults.
func (l Limits) For(t *Task) Limits {
	d := DefaultLimits()
	pick := func(task, worker, def int) int {
		if task > 0 {
			return task
		}
		if worker > 0 {
			return worker
		}
		return def
	}
	l.MaxAttempts = pick(t.Ext.MaxAttempts, l.MaxAttempts, d.MaxAttempts)
	l.MaxDeaths = pick(t.Ext.MaxDeaths, l.MaxDeaths, d.MaxDeaths)
	if t.Ext.Backoff > 0 {
		l.Backoff = time.Duration(t.Ext.Backoff)
	}
	if l.Backoff <= 0 {
		l.Backoff = d.Backoff
	}
	if l.MaxBackoff <= 0 {
		l.MaxBackoff = d.MaxBackoff
	}
	l.MaxBackoff = max(l.MaxBackoff, l.Backoff)
	return l
}

// Delay is the n-th backoff (n from 1): first doubled n-1 times up to the most,
// of which jitter in [0,1) takes up to half away, so that what failed together
// does not come back together.
func (l Limits) Delay(n int, jitter float64) time.Duration {
	d := float64(l.Backoff) * math.Pow(2, float64(min(max(n, 1)-1, 62)))
	d = min(d, float64(l.MaxBackoff))
	return time.Duration(d * (1 - jitter/2))
}

// Settle computes the next version of a claimed task: a pure function of the
// body, what its claimer says, the claim's token, the time and a random number
// in [0,1). The result's Ext.Target says where it goes. The error is ErrUsage.
//
// Invariants: Rev rises by exactly one. Attempt rises by one for done, failed,
// retry (unless NoSpend), escalate and reaped, and by nothing else; Deaths by
// one for reaped only. Life and CreatedAt stay.
func (t *Task) Settle(s Settlement, token string, now time.Time, jitter float64) (*Task, error) {
	n := *t
	e := &n.Ext
	e.Rev, e.Token = t.Ext.Rev+1, token
	e.Next, e.RetryAt, e.Reason = nil, "", s.Reason
	lim := s.Limits.For(t)
	wait := func(after time.Duration) {
		e.Target = PlacePending
		if after > 0 {
			e.RetryAt = FormatTime(now.Add(after))
			e.Target = PlaceHeld
		}
		// A not-before that is still ahead outlives the claim, and so does a
		// hold: it was put on while the task was an operation's.
		if due, err := n.Due(); err != nil || due.After(now) || e.Hold != nil {
			e.Target = PlaceHeld
		}
	}
	out := s.Outcome
	switch out {
	case OutcomeDone:
		e.Attempt++
		e.Target, e.Artifact = PlaceDone, s.Artifact
		e.Result = s.Report.Result
		for _, f := range s.FollowUps {
			body, err := f.Encode()
			if err != nil {
				return nil, fmt.Errorf("encode follow-up: %w", err)
			}
			e.Next = append(e.Next, body)
		}
	case OutcomeFailed, OutcomeRetry:
		if !s.NoSpend {
			e.Attempt++
		}
		failures := (e.Attempt - e.Deaths) - (e.AttemptBase - e.DeathsBase)
		if s.Final || !s.NoSpend && failures >= lim.MaxAttempts {
			out, e.Target = OutcomeFailed, PlaceFailed
			e.Result = s.Report.Result
			break
		}
		out = OutcomeRetry
		after := s.RetryAfter
		if after <= 0 {
			after = lim.Delay(failures, jitter)
		}
		wait(after)
	case OutcomeEscalate:
		e.Attempt++
		if s.Tier == "" {
			out, e.Target = OutcomeFailed, PlaceFailed
			break
		}
		n.TierHint = s.Tier
		e.AttemptBase, e.DeathsBase = e.Attempt, e.Deaths
		wait(s.RetryAfter)
	case OutcomeRelease:
		wait(s.RetryAfter)
	case OutcomeCanceled:
		e.Target = PlaceFailed
	case OutcomeReaped:
		e.Attempt++
		e.Deaths++
		if e.Deaths-e.DeathsBase >= lim.MaxDeaths {
			out, e.Target = OutcomeFailed, PlaceFailed
			e.Reason = fmt.Sprintf("worker died %d times", e.Deaths-e.DeathsBase)
			break
		}
		wait(s.RetryAfter)
	case OutcomeHold:
		e.Hold, e.Target = s.Hold, PlaceHeld
		if e.Hold == nil {
			e.Hold = &Hold{At: FormatTime(now)}
		}
	case OutcomeUnhold:
		e.Hold = nil
		e.NotBefore = notBeforeAhead(e.NotBefore, now)
		wait(0)
	case OutcomeReplace:
		if s.Replace == nil {
			return nil, Because(ErrUsage, "replace needs the new body")
		}
		replaceBody(&n, s.Replace)
		wait(0)
	case OutcomeRequeue:
		e.AttemptBase, e.DeathsBase = e.Attempt, e.Deaths
		e.Hold, e.Result, e.Artifact, e.NextIDs = nil, nil, nil, nil
		if s.Tier != "" {
			n.TierHint = s.Tier
		}
		e.NotBefore = ""
		wait(s.RetryAfter)
	default:
		return nil, Because(ErrUsage, "unknown outcome "+Quote(string(s.Outcome)))
	}
	e.Outcome = out
	recordAttempt(&n, s, token, now, out)
	return &n, nil
}

// notBeforeAhead drops a not-before that has passed; one that cannot be read
// is dropped too, since a person has just said that the task may run.
func notBeforeAhead(s string, now time.Time) string {
	if at, ok := ParseTime(s); ok && at.After(now) {
		return s
	}
	return ""
}

// replaceBody puts the new wishes into the task and keeps its life and history.
func replaceBody(n, with *Task) {
	old := n.Ext
	id, run, created := n.ID, n.RunID, n.CreatedAt
	*n = *with
	n.ID, n.RunID, n.CreatedAt = id, run, created
	w := with.Ext
	n.Ext = old
	n.Ext.Priority, n.Ext.NotBefore, n.Ext.Timeout = w.Priority, w.NotBefore, w.Timeout
	n.Ext.MaxAttempts, n.Ext.MaxDeaths, n.Ext.Backoff = w.MaxAttempts, w.MaxDeaths, w.Backoff
	n.Ext.Labels, n.Ext.Refs, n.Ext.OnDeadline = w.Labels, w.Refs, w.OnDeadline
}

func recordAttempt(n *Task, s Settlement, token string, now time.Time, out Outcome) {
	a := s.Report
	a.N, a.Token, a.EndedAt, a.Outcome = n.Ext.Attempt, token, FormatTime(now), out
	if a.Reason == "" {
		a.Reason = n.Ext.Reason
	}
	if a.Worker == "" {
		if tok, err := ParseToken(token); err == nil {
			a.Worker = tok.Worker
		}
	}
	old := n.Ext.Attempts
	if over := len(old) + 1 - MaxHistory; over > 0 {
		n.Ext.Dropped += over
		old = old[over:]
	}
	// A new array: the body this came from may still be read elsewhere.
	n.Ext.Attempts = append(append(make([]Attempt, 0, len(old)+1), old...), a)
}
