package main

import (
	"fmt"
	"io"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addHeartbeat(root *cobra.Command) {
	var who claimFlags
	cmd := &cobra.Command{
		Use: "heartbeat --task ID --token TOKEN", Short: "Prove that a claim's worker lives", GroupID: groupTasks,
		Long: `Beats for a claim that beeyard claim made. A worker started by beeyard work beats
by itself. Exit 5: the claim is lost, stop working on it. cancel_requested says
that somebody wants the task ended.`,
		Example: "  beeyard heartbeat --task audit-1 --token TOKEN --note 'step 3 of 5'",
		Args:    args(0, 0),
	}
	who.add(cmd)
	note := cmd.Flags().String("note", "", "what is being done, for people")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		ref, err := who.ref(p, cmd)
		if err != nil {
			return err
		}
		if !beeyard.ValidText(*note) {
			return usageText(cmd, "the note is not UTF-8 text")
		}
		ctx := cmd.Context()
		run, err := p.openRun(ctx, "")
		if err != nil {
			return err
		}
		defer closing(run, &err)
		if err := run.Heartbeat(ctx, ref, *note); err != nil {
			return err
		}
		v, err := run.Get(ctx, ref.TaskID)
		if err != nil {
			return err
		}
		out := struct {
			TaskID   string `json:"task_id"`
			WorkerID string `json:"worker_id"`
			Canceled bool   `json:"cancel_requested"`
		}{ref.TaskID, ref.Token.Worker, v.Claim != nil && v.Claim.Canceled}
		return p.show(out, func(w io.Writer) error {
			text := "claimed"
			if out.Canceled {
				text = "cancel requested: end the work, then release or complete it"
			}
			_, err := fmt.Fprintln(w, out.TaskID, text)
			return err
		})
	}
	root.AddCommand(cmd)
}
