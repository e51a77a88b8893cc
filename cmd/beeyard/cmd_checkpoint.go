package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addCheckpoint(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "checkpoint", Short: "Read and write where the workflow stands", GroupID: groupRuns,
		Long: "The checkpoint (status.json) says what was just finished and what to do next, for\nwhoever comes next.",
	}
	p.addCheckpointInit(cmd)
	p.addCheckpointShow(cmd)
	p.addCheckpointWrite(cmd)
	p.addCheckpointDone(cmd)
	root.AddCommand(cmd)
}

// checkpointJSON is status.json's shape with the revision beside it.
type checkpointJSON struct {
	SchemaVersion string                     `json:"schema_version"`
	RunID         string                     `json:"run_id"`
	Checkpoint    checkpointInner            `json:"checkpoint"`
	Metadata      map[string]json.RawMessage `json:"metadata"`
	Revision      string                     `json:"revision"`
}

type checkpointInner struct {
	Summary        string   `json:"summary"`
	NextStep       string   `json:"next_step"`
	NextTaskID     *string  `json:"next_task_id"`
	Risk           string   `json:"risk"`
	CompletedTasks []string `json:"completed_tasks"`
	CurrentWorker  *string  `json:"current_worker"`
	Timestamp      string   `json:"timestamp"`
	ResumeCommand  *string  `json:"resume_command"`
}

func shownCheckpoint(c *beeyard.Checkpoint) *checkpointJSON {
	out := &checkpointJSON{SchemaVersion: c.SchemaVersion, RunID: c.RunID, Metadata: c.Metadata, Revision: c.Revision,
		Checkpoint: checkpointInner{c.Summary, c.NextStep, c.NextTaskID, c.Risk, orEmpty(c.CompletedTasks), c.CurrentWorker, c.Timestamp, c.ResumeCommand}}
	if out.Metadata == nil {
		out.Metadata = map[string]json.RawMessage{}
	}
	return out
}

// checkpointText shows a checkpoint of a run with so many open tasks: without a
// next task the workflow is complete, or nobody has said what is next.
func checkpointText(b *strings.Builder, c *checkpointJSON, open int) {
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "  %-10s %s\n", name, plain(text, 0))
		}
	}
	k := &c.Checkpoint
	line("summary", k.Summary)
	line("next step", k.NextStep)
	switch {
	case k.NextTaskID != nil:
		line("next task", *k.NextTaskID)
	case open > 0:
		line("next task", fmt.Sprintf("none named; %d tasks are open", open))
	default:
		line("next task", "none: the workflow is complete")
	}
	line("risk", k.Risk)
	if k.CurrentWorker != nil {
		line("worker", *k.CurrentWorker)
	}
	if k.ResumeCommand != nil {
		// Shown as data; nothing here runs it.
		line("resume", *k.ResumeCommand)
	}
	line("completed", fmt.Sprintf("%d tasks", len(k.CompletedTasks)))
	for _, key := range slices.Sorted(maps.Keys(c.Metadata)) {
		line("metadata", key+" = "+plain(string(c.Metadata[key]), 200))
	}
	line("written", k.Timestamp)
	line("revision", c.Revision)
}

func (p *program) showCheckpoint(ctx context.Context, run beeyard.Run, c *beeyard.Checkpoint) error {
	out := shownCheckpoint(c)
	return p.show(out, func(w io.Writer) error {
		n, err := run.Counts(ctx)
		if err != nil {
			return err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "run %s\n", plain(out.RunID, 0))
		checkpointText(&b, out, n.Open())
		_, err = io.WriteString(w, b.String())
		return err
	})
}

func (p *program) addCheckpointInit(parent *cobra.Command) {
	var c checkpointFlags
	cmd := &cobra.Command{
		Use: "init", Short: "Make the checkpoint of a run that has none",
		Long:    "Makes the checkpoint of a run that has none. Exit 4 when there is one: beeyard\ncheckpoint write changes it.",
		Example: "  beeyard checkpoint init --run audit --next-step 'claim audit-1'",
		Args:    args(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.add(cmd, "Initialized")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		check, err := c.checkpoint()
		if err != nil {
			return err
		}
		run, err := p.openRun(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer closing(run, &err)
		check.RunID = run.ID()
		made, err := run.InitCheckpoint(cmd.Context(), check)
		if err != nil {
			return err
		}
		return p.showCheckpoint(cmd.Context(), run, made)
	}
	parent.AddCommand(cmd)
}

func (p *program) addCheckpointShow(parent *cobra.Command) {
	parent.AddCommand(&cobra.Command{
		Use: "show", Short: "Print the checkpoint",
		Long:    "Prints the checkpoint, completed_tasks joined with what is done, and its revision.",
		Example: "  beeyard checkpoint show --run audit --json | jq -r .checkpoint.next_step",
		Args:    args(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			run, err := p.readRun(cmd.Context(), "")
			if err != nil {
				return err
			}
			defer closing(run, &err)
			c, err := run.Checkpoint(cmd.Context())
			if err != nil {
				return err
			}
			return p.showCheckpoint(cmd.Context(), run, c)
		},
	})
}

func (p *program) addCheckpointWrite(parent *cobra.Command) {
	cmd := &cobra.Command{
		Use: "write", Short: "Change the checkpoint",
		Long: `Changes what is named and keeps the rest. metadata is merged: keys that are not
named stay. --if-revision refuses (exit 4) when somebody else has written since
that revision was read.`,
		Example: "  beeyard checkpoint write --summary 'audited 12 of 40' --next-step 'claim the next audit' --next-task-id audit-13",
		Args:    args(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	texts := map[string]*string{}
	for _, t := range []struct{ name, doc string }{
		{"summary", "what was just finished"}, {"next-step", "what to do next, for whoever comes"},
		{"next-task-id", "the task to claim next"}, {"risk", "known blockers"},
		{"current-worker", "who is at it"}, {"resume-command", "a command that an operator's allowlist knows; never run by beeyard"},
	} {
		texts[t.name] = f.String(t.name, "", t.doc)
	}
	var e beeyard.CheckpointEdit
	f.BoolVar(&e.Complete, "complete", false, "the workflow is complete: no next task")
	meta := f.String("metadata", "", "JSON object to merge")
	f.StringVar(&e.IfRevision, "if-revision", "", "only if this is still the revision")
	cmd.MarkFlagsMutuallyExclusive("complete", "next-task-id")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := func(name string) *string {
			if !cmd.Flags().Changed(name) {
				return nil
			}
			return texts[name]
		}
		for name, s := range texts {
			if err := checkText(name, *s); err != nil {
				return err
			}
		}
		e.Summary, e.NextStep, e.Risk = given("summary"), given("next-step"), given("risk")
		e.NextTaskID, e.CurrentWorker, e.ResumeCommand = given("next-task-id"), given("current-worker"), given("resume-command")
		if e.NextTaskID != nil {
			if *e.NextTaskID == "" {
				return usageText(cmd, "--next-task-id is empty: --complete says that there is none")
			}
			if err := beeyard.CheckStoredID(*e.NextTaskID); err != nil {
				return err
			}
		}
		var err error
		if e.Metadata, err = metadata(*meta); err != nil {
			return err
		}
		return p.writeCheckpoint(cmd, e)
	}
	parent.AddCommand(cmd)
}

func (p *program) writeCheckpoint(cmd *cobra.Command, e beeyard.CheckpointEdit) (err error) {
	run, err := p.openRun(cmd.Context(), "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
	c, err := run.WriteCheckpoint(cmd.Context(), e)
	if err != nil {
		return err
	}
	if e.Complete {
		if n, err := run.Counts(cmd.Context()); err == nil && n.Open() > 0 {
			p.notef("%d tasks of the run are still open", n.Open())
		}
	}
	return p.showCheckpoint(cmd.Context(), run, c)
}

func (p *program) addCheckpointDone(parent *cobra.Command) {
	cmd := &cobra.Command{
		Use: "done", Short: "Say that the workflow is complete",
		Long:    "Writes a checkpoint without a next task: the workflow is complete. Tasks that are\nstill open are named on stderr.",
		Example: "  beeyard checkpoint done --summary 'all 40 audited, report in artifacts/report.md'",
		Args:    args(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	summary := cmd.Flags().String("summary", "", "what was finished; kept as it is when not named")
	rev := cmd.Flags().String("if-revision", "", "only if this is still the revision")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		none := ""
		e := beeyard.CheckpointEdit{Complete: true, NextStep: &none, IfRevision: *rev}
		if cmd.Flags().Changed("summary") {
			if err := checkText("summary", *summary); err != nil {
				return err
			}
			e.Summary = summary
		}
		return p.writeCheckpoint(cmd, e)
	}
	parent.AddCommand(cmd)
}
