package main

import (
	"fmt"
	"io"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addWhy(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "why TASK", Short: "Say why a task is not running", GroupID: groupLook,
		Long:    "Says why a task does not run: each thing it waits for, and whether that will\nchange by itself.",
		Example: "  beeyard why report",
		Args:    args(1, 1), ValidArgsFunction: p.completeTasks(openStates()...),
		RunE: func(cmd *cobra.Command, argv []string) (err error) {
			ctx := cmd.Context()
			run, err := p.readRun(ctx, "")
			if err != nil {
				return err
			}
			defer closing(run, &err)
			v, err := run.Get(ctx, argv[0])
			if err != nil {
				return err
			}
			out := struct {
				TaskID  string             `json:"task_id"`
				State   beeyard.State      `json:"state"`
				Reasons []beeyard.Reason   `json:"reasons"`
				Claim   *beeyard.ClaimInfo `json:"claim,omitempty"`
				Detail  string             `json:"detail,omitempty"`
			}{argv[0], v.State, orEmpty(v.Reasons), v.Claim, v.Detail}
			return p.show(out, func(w io.Writer) error { return p.whyText(w, argv[0], v) })
		},
	})
}

func (p *program) whyText(w io.Writer, id string, v *beeyard.View) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s\n", plain(id, 0), p.state(v.State))
	for _, r := range v.Reasons {
		fmt.Fprintf(&b, "  %s", plain(r.Text, 400))
		if r.Stuck {
			b.WriteString(" (this does not change by itself)")
		}
		b.WriteByte('\n')
		if next := nextStep(r); next != "" {
			fmt.Fprintf(&b, "    %s\n", plain(next, 400))
		}
	}
	if v.Claim != nil {
		fmt.Fprintf(&b, "  %s\n", plain(claimText(v.Claim), 400))
	}
	if v.Detail != "" {
		fmt.Fprintf(&b, "  %s\n", plain(v.Detail, 400))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// nextStep is what a person can do about a reason; nothing destructive.
func nextStep(r beeyard.Reason) string {
	switch {
	case r.Kind == "dependency" && (r.State == beeyard.StateFailed || r.State == beeyard.StateCanceled):
		return "beeyard logs " + r.Blocker + " shows its output; beeyard retry " + r.Blocker + " runs it again"
	case r.Kind == "dependency" && r.Stuck:
		return "enqueue " + r.Blocker + ", or change what the task depends on with beeyard enqueue --replace"
	case r.Kind == "cycle":
		return "change what one of them depends on with beeyard enqueue --replace"
	case r.Kind == "hold":
		return "beeyard unhold lets it run"
	case r.Kind == "finished":
		return "beeyard retry runs it again"
	}
	return ""
}
