package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"beeyard"
	"beeyard/internal/strict"

	"github.com/spf13/cobra"
)

// claimFlags name the claim that a command acts on.
type claimFlags struct{ task, token string }

func (c *claimFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.task, "task", "", "the task [BEEYARD_TASK_ID]")
	f.StringVar(&c.token, "token", "", "the claim's token, as claim printed it [BEEYARD_CLAIM_TOKEN]")
}

func (c *claimFlags) ref(p *program, cmd *cobra.Command) (beeyard.Ref, error) {
	if c.task == "" {
		c.task = p.env("BEEYARD_TASK_ID")
	}
	if c.token == "" {
		c.token = p.env("BEEYARD_CLAIM_TOKEN")
	}
	if c.task == "" || c.token == "" {
		return beeyard.Ref{}, usageText(cmd, "it needs --task and --token, or BEEYARD_TASK_ID and BEEYARD_CLAIM_TOKEN")
	}
	if err := beeyard.CheckStoredID(c.task); err != nil {
		return beeyard.Ref{}, err
	}
	tok, err := beeyard.ParseToken(c.token)
	return beeyard.Ref{TaskID: c.task, Token: tok}, err
}

func (p *program) addComplete(root *cobra.Command) {
	var who claimFlags
	var s beeyard.Settlement
	cmd := &cobra.Command{
		Use: "complete --task ID --token TOKEN [--success | --failure]", Short: "Settle a claim: done or failed", GroupID: groupTasks,
		Long: `Ends a claim. --success (the default) publishes the artifact and the follow-ups;
--failure retries after a backoff while attempts are left, then fails. A token
that is no longer current is refused with exit 5 and changes nothing: somebody
else has the task.`,
		Example: "  beeyard complete --task audit-1 --token TOKEN --artifact report.md\n  beeyard complete --task audit-1 --token TOKEN --failure --reason 'rate limited' --retry-after 10m",
		Args:    args(0, 0),
	}
	who.add(cmd)
	f := cmd.Flags()
	f.Bool("success", false, "the task is done")
	failure := f.Bool("failure", false, "it failed: retried while attempts are left")
	f.StringVar(&s.Reason, "reason", "", "why, for people")
	f.BoolVar(&s.Final, "final", false, "with --failure: no retry")
	f.DurationVar(&s.RetryAfter, "retry-after", 0, "with --failure: delay of the retry instead of the backoff")
	result := f.String("result", "", "file with a result as JSON: verdict, reason, retry_after, spend, tokens, cost; - is stdin")
	artifact := f.String("artifact", "", "file that becomes the task's output; - is stdin")
	cmd.MarkFlagsMutuallyExclusive("success", "failure")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkSettle(cmd, *failure, s.RetryAfter, *result, *artifact); err != nil {
			return err
		}
		ref, err := who.ref(p, cmd)
		if err != nil {
			return err
		}
		s.Outcome = beeyard.OutcomeDone
		if *failure {
			s.Outcome = beeyard.OutcomeRetry
		}
		if s.Limits, err = p.limits(); err != nil {
			return err
		}
		if *result != "" {
			if err := p.readResult(*result, &s); err != nil {
				return err
			}
		}
		return p.settle(cmd.Context(), ref, s, *artifact)
	}
	root.AddCommand(cmd)
}

func checkSettle(cmd *cobra.Command, failure bool, after time.Duration, result, artifact string) error {
	f := cmd.Flags()
	switch {
	case f.Changed("success") && f.Lookup("success").Value.String() == "false" && !failure:
		return usageText(cmd, "it needs --success or --failure")
	case !failure && (f.Changed("final") || f.Changed("retry-after")):
		return usageText(cmd, "--final and --retry-after go with --failure")
	case failure && artifact != "":
		return usageText(cmd, "--artifact goes with --success: only a task that is done has an output")
	case after < 0:
		return usageText(cmd, "--retry-after is not negative")
	case result == "-" && artifact == "-":
		return usageText(cmd, "stdin is either the result or the artifact")
	}
	return nil
}

const resultMost = 1 << 20

// readResult reads what the worker says of its work; flags win over it.
func (p *program) readResult(file string, s *beeyard.Settlement) error {
	data, err := p.readInput("result", file, resultMost)
	if err != nil {
		return err
	}
	var res beeyard.Result
	if err := strict.Unmarshal(data, &res, strict.Options{MaxBytes: resultMost}); err != nil {
		return &beeyard.Error{Op: "read result", ID: file, Err: fmt.Errorf("%w: %w", beeyard.ErrUsage, err),
			Hint: "it is one JSON object with verdict, reason, retry_after, spend, tokens or cost"}
	}
	if !beeyard.ValidText(res.Verdict) || !beeyard.ValidText(res.Reason) {
		return &beeyard.Error{Op: "read result", ID: file, Err: beeyard.Because(beeyard.ErrUsage, "it holds a NUL")}
	}
	s.Report.Result = &res
	if s.Reason == "" {
		s.Reason = res.Reason
	}
	if s.Outcome != beeyard.OutcomeDone {
		if s.RetryAfter == 0 {
			s.RetryAfter = time.Duration(res.RetryAfter)
		}
		s.NoSpend = res.Spend != nil && !*res.Spend
	}
	return nil
}

// limits are the configured ones: a task's own win over them.
func (p *program) limits() (beeyard.Limits, error) {
	var l beeyard.Limits
	c, err := p.conf()
	if err != nil {
		return l, err
	}
	var errs [4]error
	l.MaxAttempts, errs[0] = c.int("worker.max_attempts", nil)
	l.MaxDeaths, errs[1] = c.int("worker.max_deaths", nil)
	l.Backoff, errs[2] = c.duration("worker.backoff", nil)
	l.MaxBackoff, errs[3] = c.duration("worker.max_backoff", nil)
	return l, errors.Join(errs[:]...)
}

func (p *program) settle(ctx context.Context, ref beeyard.Ref, s beeyard.Settlement, artifact string) (err error) {
	run, err := p.openRun(ctx, "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
	if artifact != "" {
		if s.Artifact, err = p.stage(ctx, run, ref, artifact); err != nil {
			return err
		}
	}
	out, err := run.Settle(ctx, ref, s)
	if err != nil {
		return err
	}
	return p.show(out, func(w io.Writer) error {
		line := out.TaskID + " " + string(out.Outcome)
		switch {
		case out.State == beeyard.StateWaiting && out.RetryAt != "":
			line += ", again at " + out.RetryAt
		case !out.State.Finished():
			line += ", " + string(out.State)
		}
		if n := len(out.Published); n > 0 {
			line += fmt.Sprintf(", %d follow-ups enqueued", n)
		}
		if n := len(out.Skipped); n > 0 {
			line += fmt.Sprintf(", %d follow-ups left out since their ids are in use", n)
		}
		_, err := fmt.Fprintln(w, line)
		return err
	})
}

func (p *program) stage(ctx context.Context, run beeyard.Run, ref beeyard.Ref, file string) (_ *beeyard.Artifact, err error) {
	in, err := p.openInput("read artifact", file)
	if err != nil {
		return nil, err
	}
	defer closing(in, &err)
	return run.StageArtifact(ctx, ref, in)
}

func (p *program) addRelease(root *cobra.Command) {
	var who claimFlags
	s := beeyard.Settlement{Outcome: beeyard.OutcomeRelease}
	cmd := &cobra.Command{
		Use: "release --task ID --token TOKEN", Short: "Give a claim back; no attempt is spent", GroupID: groupTasks,
		Long:    "Gives a claimed task back to the queue as it was. No attempt is spent.",
		Example: "  beeyard release --task audit-1 --token TOKEN --retry-after 5m",
		Args:    args(0, 0),
	}
	who.add(cmd)
	cmd.Flags().StringVar(&s.Reason, "reason", "", "why, for people")
	cmd.Flags().DurationVar(&s.RetryAfter, "retry-after", 0, "not to be claimed before so long")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ref, err := who.ref(p, cmd)
		if err != nil {
			return err
		}
		if s.RetryAfter < 0 {
			return usageText(cmd, "--retry-after is not negative")
		}
		return p.settle(cmd.Context(), ref, s, "")
	}
	root.AddCommand(cmd)
}
