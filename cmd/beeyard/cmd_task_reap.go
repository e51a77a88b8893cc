package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"beeyard"

	"github.com/spf13/cobra"
)

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
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
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
		defer closing(run, &err)
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
