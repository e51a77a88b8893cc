package main

import (
	"fmt"
	"io"

	"beeyard"

	"github.com/spf13/cobra"
)

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
	cmd.RunE = func(cmd *cobra.Command, ids []string) (err error) {
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
		defer closing(run, &err)
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
