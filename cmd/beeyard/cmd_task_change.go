package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"beeyard"

	"github.com/spf13/cobra"
)

// changed is what became of one task.
type changed struct {
	TaskID string `json:"task_id"`
	Status string `json:"status"`
	Worker string `json:"worker_id,omitempty"`
}

// changeTasks does one operation on each task that was named, in order, and
// stops at the first that fails.
func (p *program) changeTasks(ctx context.Context, ids []string, do func(beeyard.Run, string) (changed, error)) error {
	for _, id := range ids {
		if err := beeyard.CheckStoredID(id); err != nil {
			return err
		}
	}
	run, err := p.openRun(ctx, "")
	if err != nil {
		return err
	}
	defer run.Close()
	out := make([]changed, 0, len(ids))
	for _, id := range ids {
		c, err := do(run, id)
		if err != nil {
			if len(out) > 0 {
				var did []string
				for _, c := range out {
					did = append(did, c.TaskID)
				}
				p.notef("changed before this: %s", plain(strings.Join(did, " "), 1000))
			}
			return err
		}
		out = append(out, c)
	}
	return p.show(map[string]any{"tasks": out}, func(w io.Writer) error {
		for _, c := range out {
			line := plain(c.TaskID, 0) + " " + strings.ReplaceAll(c.Status, "_", " ")
			if c.Worker != "" {
				line += ": " + plain(c.Worker, 0) + " has it and will end it"
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *program) addRetry(root *cobra.Command) {
	var o beeyard.RetryOptions
	cmd := &cobra.Command{
		Use: "retry TASK…", Short: "Run finished tasks again", GroupID: groupTasks,
		Long:    "Runs failed, canceled or done tasks again; their history is kept and their\nattempts count anew. Exit 4 when one has not finished.",
		Example: "  beeyard retry audit-1 --tier opus",
		Args:    args(1, -1), ValidArgsFunction: p.completeTasks(beeyard.StateFailed, beeyard.StateCanceled, beeyard.StateDone),
	}
	cmd.Flags().StringVar(&o.Tier, "tier", "", "on this tier")
	cmd.Flags().DurationVar(&o.After, "after", 0, "not before so long")
	cmd.Flags().StringVar(&o.By, "by", "", "who wants it (default: this worker, or $USER)")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if o.After < 0 {
			return usageText(cmd, "--after is not negative")
		}
		if o.By == "" {
			o.By = p.me()
		}
		return p.changeTasks(cmd.Context(), ids, func(run beeyard.Run, id string) (changed, error) {
			return changed{id, "queued_again", ""}, run.Retry(cmd.Context(), id, o)
		})
	}
	root.AddCommand(cmd)
}

func (p *program) addCancel(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "cancel TASK…", Short: "End tasks for good", GroupID: groupTasks,
		Long: `Cancels open tasks. Of a running one the worker is asked to end its process
tree first; whoever settles first wins, so a task that got done meanwhile stays
done and the answer says so.`,
		Example: "  beeyard cancel audit-1 --reason 'not needed'",
		Args:    args(1, -1), ValidArgsFunction: p.completeTasks(openStates()...),
	}
	by := cmd.Flags().String("by", "", "who wants it (default: this worker, or $USER)")
	reason := cmd.Flags().String("reason", "", "why, for people")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if *by == "" {
			*by = p.me()
		}
		return p.changeTasks(cmd.Context(), ids, func(run beeyard.Run, id string) (changed, error) {
			r, err := run.Cancel(cmd.Context(), id, *by, *reason)
			return changed{id, r.Status, r.Worker}, err
		})
	}
	root.AddCommand(cmd)
}

func (p *program) addHold(root *cobra.Command) {
	hold := &cobra.Command{
		Use: "hold TASK…", Short: "Keep open tasks from running", GroupID: groupTasks,
		Long:    "Keeps open tasks from running until beeyard unhold. A running task cannot be\nheld (exit 4).",
		Example: "  beeyard hold deploy --reason 'wait for review'",
		Args:    args(1, -1), ValidArgsFunction: p.completeTasks(beeyard.StateReady, beeyard.StateBlocked, beeyard.StateWaiting),
	}
	var h beeyard.Hold
	hold.Flags().StringVar(&h.By, "by", "", "who wants it (default: this worker, or $USER)")
	hold.Flags().StringVar(&h.Reason, "reason", "", "why, for people")
	hold.RunE = func(cmd *cobra.Command, ids []string) error {
		if h.By == "" {
			h.By = p.me()
		}
		return p.changeTasks(cmd.Context(), ids, func(run beeyard.Run, id string) (changed, error) {
			return changed{id, "held", ""}, run.Hold(cmd.Context(), id, h)
		})
	}
	unhold := &cobra.Command{
		Use: "unhold TASK…", Short: "Let held or backing-off tasks run", GroupID: groupTasks,
		Long:    "Lets held tasks run again; a backoff ends with it.",
		Example: "  beeyard unhold deploy",
		Args:    args(1, -1), ValidArgsFunction: p.completeTasks(beeyard.StateHeld, beeyard.StateWaiting),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return p.changeTasks(cmd.Context(), ids, func(run beeyard.Run, id string) (changed, error) {
				return changed{id, "let_go", ""}, run.Unhold(cmd.Context(), id)
			})
		},
	}
	root.AddCommand(hold, unhold)
}

func openStates() []beeyard.State {
	return []beeyard.State{beeyard.StateReady, beeyard.StateClaimed, beeyard.StateBlocked, beeyard.StateWaiting, beeyard.StateHeld}
}

func (p *program) addPrune(root *cobra.Command) {
	var o beeyard.PruneOptions
	cmd := &cobra.Command{
		Use: "prune [TASK…]", Short: "Move finished tasks out of the way", GroupID: groupTasks,
		Long: `Moves finished tasks into the run's archive: all that are done, or those named.
Their ids stay used, and who depends on a task that was done is not held up.
--delete removes their bodies instead. Artifacts and logs stay.`,
		Example: "  beeyard prune --older-than 720h --dry-run",
		Args:    args(0, -1), ValidArgsFunction: p.completeTasks(beeyard.StateDone, beeyard.StateFailed, beeyard.StateCanceled),
	}
	f := cmd.Flags()
	f.DurationVar(&o.OlderThan, "older-than", 0, "only those that ended so long ago")
	states := list(f, "state", "done (default), failed, canceled")
	f.BoolVar(&o.Delete, "delete", false, "remove the bodies, keep the ids")
	f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be pruned")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"done", "failed", "canceled"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if o.OlderThan < 0 {
			return usageText(cmd, "--older-than is not negative")
		}
		for _, s := range *states {
			o.States = append(o.States, beeyard.State(s))
		}
		if len(ids) > 0 && len(o.States) == 0 {
			// Who names a task means it, however it ended.
			o.States = []beeyard.State{beeyard.StateDone, beeyard.StateFailed, beeyard.StateCanceled}
		}
		o.IDs = ids
		open := p.openRun
		if o.DryRun {
			open = p.readRun
		}
		run, err := open(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer run.Close()
		rep, err := run.Prune(cmd.Context(), o)
		if err != nil {
			if len(rep.Pruned) > 0 {
				p.notef("%d tasks were pruned before this", len(rep.Pruned))
			}
			return err
		}
		rep.Pruned = orEmpty(rep.Pruned)
		return p.show(rep, func(w io.Writer) error {
			verb := "pruned"
			if o.DryRun {
				verb = "would be pruned"
			}
			for _, id := range rep.Pruned[:min(len(rep.Pruned), 50)] {
				if _, err := fmt.Fprintln(w, plain(id, 0)); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(w, "%d tasks %s\n", len(rep.Pruned), verb)
			return err
		})
	}
	root.AddCommand(cmd)
}

func (p *program) addReap(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "reap", Short: "End the claims of workers that died", GroupID: groupTasks,
		Long: `Ends claims whose worker is dead, finishes what was decided, and puts the tasks
back (or fails them after too many deaths). Workers do the same by themselves; a
timer may do it where none runs. A stopped process keeps its claims, unless
--kill-stopped ends it first.`,
		Example: "  beeyard reap --stale-after 10m --dry-run",
		Args:    args(0, 0),
	}
	f := cmd.Flags()
	f.Duration("stale-after", 300*time.Second, "silence after which a claim whose death cannot be proven is taken")
	var o beeyard.ReapOptions
	f.BoolVar(&o.KillStopped, "kill-stopped", false, "end stopped (SIGSTOP) workers of this host, then take their claims")
	f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
	// Not the setting worker.id: a reap is for every worker unless told otherwise.
	f.StringVar(&o.Worker, "worker-id", "", "only claims of this worker")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := p.conf()
		if err != nil {
			return err
		}
		if o.StaleAfter, err = c.duration("worker.stale_after", cmd.Flags()); err != nil {
			return err
		}
		if o.StaleAfter <= 0 {
			return usageText(cmd, "--stale-after must be more than 0")
		}
		if o.Worker != "" {
			if err := beeyard.CheckStoredID(o.Worker); err != nil {
				return err
			}
		}
		if o.Limits, err = p.limits(); err != nil {
			return err
		}
		run, err := p.openRun(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer run.Close()
		rep, err := run.Reap(cmd.Context(), o)
		if err != nil {
			return err
		}
		rep.Reaped, rep.Skipped = orEmpty(rep.Reaped), orEmpty(rep.Skipped)
		return p.show(rep, func(w io.Writer) error { return reapText(w, rep, o.DryRun) })
	}
	root.AddCommand(cmd)
}

func reapText(w io.Writer, rep beeyard.ReapReport, dry bool) error {
	var b strings.Builder
	say := func(r beeyard.Reaped, what string) {
		fmt.Fprintf(&b, "%s of %s: %s", plain(r.TaskID, 0), plain(r.Worker, 0), what)
		if r.Age >= 0 {
			fmt.Fprintf(&b, ", silent for %s", time.Duration(r.Age*float64(time.Second)).Round(time.Second))
		}
		if r.Detail != "" {
			b.WriteString(", " + plain(r.Detail, 300))
		}
		b.WriteByte('\n')
	}
	for _, r := range rep.Reaped {
		say(r, r.Action)
	}
	for _, r := range rep.Skipped {
		say(r, "alive")
	}
	for _, n := range rep.Notes {
		b.WriteString(plain(n, 500) + "\n")
	}
	verb := "reaped"
	if dry {
		verb = "would be reaped"
	}
	fmt.Fprintf(&b, "%d claims %s, %d alive\n", len(rep.Reaped), verb, len(rep.Skipped))
	_, err := io.WriteString(w, b.String())
	return err
}
