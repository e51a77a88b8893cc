package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
	"beeyard/internal/proc"
)

// Exit codes that mean something (sysexits' EX_TEMPFAIL and EX_NOPERM, as the
// contract uses them).
const (
	exitTryLater = 75
	exitEscalate = 77
)

// verdict says how the claim ends, from how the handler's run went. nil means
// that the claim is not ours any more and nothing may be settled.
func (w *Worker) verdict(j *job, d Done, err error) *beeyard.Settlement {
	s := &beeyard.Settlement{Limits: w.cfg.Limits, Report: beeyard.Attempt{
		Worker: w.cfg.ID, Tier: j.claim.Task.TierHint, StartedAt: beeyard.FormatTime(j.claim.At),
		Signal: d.Signal, TimedOut: d.TimedOut, OOM: d.OOM, DurationMS: d.Duration.Milliseconds(),
		PeakBytes: d.Peak, StderrTail: d.Stderr, Late: j.late,
	}}
	if d.Signal == "" && err == nil {
		code := d.ExitCode
		s.Report.ExitCode = &code
	}
	cause := context.Cause(j.ctx)
	switch {
	case errors.Is(cause, errLost):
		return nil
	case errors.Is(cause, errCanceled):
		s.Outcome, s.Reason = beeyard.OutcomeCanceled, "canceled while it ran"
		return s
	case errors.Is(err, proc.ErrUnusable):
		// The handler's fault, not the task's: no task is spent on it.
		w.stopFor(&beeyard.Error{Op: "run handler", Err: fmt.Errorf("%w: %w", beeyard.ErrUnusable, err),
			Hint: "mend the handler, then start the worker again; no task was spent"})
		s.Outcome, s.Reason = beeyard.OutcomeRelease, "the handler cannot run"
		return s
	case errors.Is(cause, errDrain):
		s.Outcome, s.Reason = beeyard.OutcomeRelease, "its worker was stopped"
		return s
	case err != nil:
		w.tell(Event{Kind: "note", TaskID: j.claim.Task.ID, Text: "run handler: " + err.Error()})
		s.Outcome, s.Reason, s.RetryAfter = beeyard.OutcomeRelease, "its worker was short of something", 5*time.Second
		return s
	}
	w.judge(j, d, s)
	w.noteInstant(d, s.Outcome == beeyard.OutcomeDone)
	return s
}

// judge reads what the handler says: exit code, then its result.
func (w *Worker) judge(j *job, d Done, s *beeyard.Settlement) {
	ctx := context.WithoutCancel(j.ctx)
	res := d.Result
	if res == nil {
		var err error
		if res, err = w.att.Result(ctx, j.claim); err != nil && !errors.Is(err, beeyard.ErrClaimLost) {
			w.tell(Event{Kind: "note", TaskID: j.claim.Task.ID, Text: "its result cannot be read and is passed over: " + err.Error()})
		}
	}
	s.Report.Result = res
	if res != nil {
		s.Reason, s.RetryAfter = res.Reason, time.Duration(res.RetryAfter)
		s.NoSpend = res.Spend != nil && !*res.Spend
	}
	say := func(text string) {
		if s.Reason == "" {
			s.Reason = text
		}
	}
	switch {
	case d.TimedOut:
		s.Outcome, s.NoSpend = beeyard.OutcomeRetry, false
		s.Reason = fmt.Sprintf("timed out after %s", d.Duration.Round(time.Millisecond))
	case d.Signal != "":
		s.Outcome, s.NoSpend = beeyard.OutcomeRetry, false
		say("ended by " + d.Signal)
		if d.OOM {
			s.Reason += ", out of memory"
		}
	case d.ExitCode == 0:
		w.success(ctx, j, s)
	case d.ExitCode == exitTryLater:
		s.Outcome = beeyard.OutcomeRetry
		say("exit 75: try again later")
	case d.ExitCode == exitEscalate:
		s.Outcome, s.NoSpend = beeyard.OutcomeEscalate, false
		s.Tier = nextTier(w.cfg.Tiers, j.claim.Task.TierHint)
		say("exit 77: for the next tier")
		if s.Tier == "" {
			s.Reason += "; there is none"
		}
	default:
		s.Outcome, s.NoSpend = beeyard.OutcomeRetry, false
		if d.Error != "" {
			say(d.Error)
		}
		say(fmt.Sprintf("exit %d", d.ExitCode))
	}
}

// success collects what becomes visible with the settle.
func (w *Worker) success(ctx context.Context, j *job, s *beeyard.Settlement) {
	s.Outcome, s.NoSpend = beeyard.OutcomeDone, false
	var err error
	if s.Artifact, err = w.att.StagedArtifact(ctx, j.claim); err == nil {
		s.FollowUps, err = w.att.FollowUps(ctx, j.claim)
	}
	if err == nil || errors.Is(err, beeyard.ErrClaimLost) {
		return // a lost claim is met at the settle, which keeps the output aside
	}
	// Its output or follow-ups cannot be read: not done. Full disks are nobody's fault.
	s.Outcome, s.Artifact, s.FollowUps = beeyard.OutcomeRetry, nil, nil
	s.Reason, s.NoSpend = "its output cannot be taken over: "+err.Error(), durable.NoSpace(err)
	w.tell(Event{Kind: "note", TaskID: j.claim.Task.ID, Text: s.Reason})
}

// nextTier is the tier after t; a task without one counts as being on the
// first. "" when none is left, also for a tier that is not listed.
func nextTier(tiers []string, t string) string {
	if t == "" && len(tiers) > 1 {
		return tiers[1]
	}
	for i, have := range tiers {
		if have == t && i+1 < len(tiers) {
			return tiers[i+1]
		}
	}
	return ""
}

func (w *Worker) stopFor(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = err
	}
}

const (
	instantRun   = 100 * time.Millisecond
	instantMost  = 10
	instantPause = time.Second
	instantLimit = time.Minute
)

// noteInstant counts failures that came at once: a handler whose own
// surroundings are broken would burn the whole queue in seconds.
func (w *Worker) noteInstant(d Done, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case ok || d.Duration > instantRun || d.ExitCode == exitTryLater || d.ExitCode == exitEscalate:
		w.instant = 0
	default:
		w.instant++
	}
}

// pause holds the worker up after many instant failures in a row, with one
// clear line each time it doubles. It returns the context's cause when it ends.
func (w *Worker) pause(ctx context.Context) error {
	w.mu.Lock()
	n := w.instant
	w.mu.Unlock()
	if n < instantMost {
		return nil
	}
	wait := instantLimit
	if over := n - instantMost; over < 6 {
		wait = min(instantPause<<over, instantLimit)
	}
	w.tell(Event{Kind: "paused", Text: fmt.Sprintf("%d handler failures in a row, each within %s: pausing %s; look at the last log", n, instantRun, wait)})
	return clock.Sleep(ctx, w.clk, wait)
}
