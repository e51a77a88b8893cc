package main

import (
	"context"
	"fmt"
	"io"
	"strings"

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
func (p *program) changeTasks(ctx context.Context, ids []string, do func(beeyard.Run, string) (changed, error)) (err error) {
	for _, id := range ids {
		if err := beeyard.CheckStoredID(id); err != nil {
			return err
		}
	}
	run, err := p.openRun(ctx, "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
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
