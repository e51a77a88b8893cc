package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addLs(root *cobra.Command) {
	var q beeyard.Query
	cmd := &cobra.Command{
		Use: "ls [RUN]", Short: "List runs, or the tasks of one", GroupID: groupLook,
		Long: `Without a run: the runs under the root. With one (an argument, --run or
BEEYARD_RUN): its counts and tasks, open ones in the order of the queue, then
finished ones, newest first. A task that waits says what for.`,
		Example: "  beeyard ls\n  beeyard ls audit --state blocked,failed",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
	}
	states := taskFilter(cmd, &q)
	f := cmd.Flags()
	f.IntVar(&q.Limit, "limit", 200, "tasks at most")
	f.StringVar(&q.Cursor, "cursor", "", "go on where a page before ended")
	cmd.RunE = func(cmd *cobra.Command, argv []string) error {
		arg := ""
		if len(argv) > 0 {
			arg = argv[0]
		}
		name, err := p.runName(arg)
		if err != nil {
			return err
		}
		filtered := false
		for _, n := range []string{"state", "type", "tier", "label", "text", "limit", "cursor"} {
			filtered = filtered || cmd.Flags().Changed(n)
		}
		if name == "" && !filtered {
			return p.listRuns(cmd.Context())
		}
		if q.Limit <= 0 {
			return usageText(cmd, "--limit must be more than 0")
		}
		q.States = statesOf(*states)
		return p.listTasks(cmd.Context(), arg, q)
	}
	root.AddCommand(cmd)
}

// taskFilter adds the flags that choose tasks.
func taskFilter(cmd *cobra.Command, q *beeyard.Query) *[]string {
	f := cmd.Flags()
	states := list(f, "state", "only these states: "+strings.Join(stateNames(), ", "))
	listVar(f, &q.Types, "type", "only these types")
	listVar(f, &q.Tiers, "tier", "only these tiers")
	listVar(f, &q.Labels, "label", "only those with all of these labels")
	f.StringVar(&q.Text, "text", "", "only those with this text in id, type or payload")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	return states
}

func stateNames() []string {
	var names []string
	for _, s := range beeyard.States() {
		names = append(names, string(s))
	}
	return names
}

func statesOf(names []string) []beeyard.State {
	var states []beeyard.State
	for _, n := range names {
		states = append(states, beeyard.State(n))
	}
	return states
}

// runJSON is a run in a list.
type runJSON struct {
	beeyard.RunInfo
	Summary    string  `json:"summary"`
	NextStep   string  `json:"next_step"`
	NextTaskID *string `json:"next_task_id"`
	Risk       string  `json:"risk"`
}

func (p *program) listRuns(ctx context.Context) error {
	root, err := p.rootPath()
	if err != nil {
		return err
	}
	infos, err := p.runsUnder(ctx, root)
	if err != nil {
		return err
	}
	runs := make([]runJSON, len(infos))
	for i, info := range infos {
		runs[i].RunInfo = info
		if c := info.Checkpoint; c != nil {
			runs[i].Summary, runs[i].NextStep, runs[i].NextTaskID, runs[i].Risk = c.Summary, c.NextStep, c.NextTaskID, c.Risk
		}
	}
	return p.show(map[string]any{"root": root, "runs": runs}, func(w io.Writer) error {
		if len(runs) == 0 {
			p.notef("there are no runs under %s; beeyard run new ID makes one", root)
			return nil
		}
		return table(w, func(w io.Writer) {
			fmt.Fprintln(w, "RUN\tREADY\tCLAIMED\tBLOCKED\tWAITING\tDONE\tFAILED\tNEXT")
			for _, r := range runs {
				n := r.Counts.ByState
				next := plain(r.NextStep, 60)
				if r.Problem != "" {
					next = "! " + plain(r.Problem, 60)
				}
				fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", runTitle(r.RunInfo), n[beeyard.StateReady], n[beeyard.StateClaimed], n[beeyard.StateBlocked],
					n[beeyard.StateWaiting]+n[beeyard.StateHeld], n[beeyard.StateDone], n[beeyard.StateFailed]+n[beeyard.StateCanceled], next)
			}
		})
	})
}

// runTitle is a run's id; an imported run may lie in a folder of another name.
func runTitle(r beeyard.RunInfo) string {
	title := plain(r.ID, 60)
	if base := filepath.Base(r.Location); base != r.ID && !strings.Contains(r.Location, "://") {
		title += " (" + plain(base, 60) + ")"
	}
	return title
}

type tasksJSON struct {
	RunID    string         `json:"run_id"`
	Location string         `json:"location"`
	Counts   beeyard.Counts `json:"counts"`
	Tasks    []taskJSON     `json:"tasks"`
	Total    int            `json:"total"` // matching, all pages
	Next     string         `json:"next"`  // cursor of the next page; "" at the end
}

func (p *program) listTasks(ctx context.Context, arg string, q beeyard.Query) (err error) {
	run, err := p.readRun(ctx, arg)
	if err != nil {
		return err
	}
	defer closing(run, &err)
	counts, err := run.Counts(ctx)
	if err != nil {
		return err
	}
	page, err := run.List(ctx, q)
	if err != nil {
		return err
	}
	out := tasksJSON{RunID: run.ID(), Location: run.Location(), Counts: counts, Tasks: make([]taskJSON, len(page.Tasks)), Total: page.Total, Next: page.Next}
	for i, v := range page.Tasks {
		out.Tasks[i] = shownTask(v)
	}
	return p.show(out, func(w io.Writer) error {
		fmt.Fprintf(w, "%s: %s\n", plain(out.RunID, 0), countsLine(counts))
		err := table(w, func(w io.Writer) {
			for _, v := range page.Tasks {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", plain(v.Task.ID, 60), p.state(v.State), plain(v.Task.Type, 30), plain(v.Task.TierHint, 20), p.about(v))
			}
		})
		if page.Next != "" {
			p.notef("%d more match; go on with --cursor %s", page.Total-len(page.Tasks), page.Next)
		}
		return err
	})
}

// countsLine is "3 ready, 1 claimed, 12 done"; states without tasks are left out.
func countsLine(c beeyard.Counts) string {
	var parts []string
	for _, s := range beeyard.States() {
		if n := c.ByState[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "no tasks"
	}
	return strings.Join(parts, ", ")
}

// about is the one thing that a list says of a task beyond its state.
func (p *program) about(v *beeyard.View) string {
	switch {
	case v.Claim != nil:
		s := plain(v.Claim.Worker, 40)
		if v.Claim.Alive == "no" {
			s += ", which is gone"
		}
		if v.Claim.Canceled {
			s += ", cancel requested"
		}
		if v.Claim.Note != "" {
			s += ": " + plain(v.Claim.Note, 60)
		}
		return s
	case v.Detail != "":
		return plain(v.Detail, 100)
	case len(v.Reasons) > 0:
		s := plain(v.Reasons[0].Text, 100)
		if n := len(v.Reasons) - 1; n > 0 {
			s += fmt.Sprintf(" (and %d more)", n)
		}
		return s
	}
	return ""
}

func (p *program) state(s beeyard.State) string {
	code := ""
	switch s {
	case beeyard.StateReady:
		code = "36"
	case beeyard.StateClaimed:
		code = "33"
	case beeyard.StateDone:
		code = "32"
	case beeyard.StateFailed, beeyard.StateCanceled, beeyard.StateQuarantined:
		code = "31"
	default:
		return string(s)
	}
	return p.paint(code, string(s))
}
