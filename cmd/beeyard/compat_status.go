package main

import (
	"encoding/json"
	"errors"

	"beeyard"
	"beeyard/internal/strict"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

// olderStatusFlags are the flags that init and write share.
func olderStatusFlags(cmd *cobra.Command) (run *string, status func() (spool.OlderStatus, error)) {
	f := olderFlags{cmd}
	run = f.text("run-dir", "folder of the run, made if it is missing")
	summary, next := f.text("summary", "what was just finished"), f.text("next-step", "what to do next")
	task, meta := f.text("next-task-id", "the task to claim next"), f.text("metadata", "a JSON object")
	return run, func() (spool.OlderStatus, error) {
		s := spool.OlderStatus{Summary: *summary, NextStep: *next, NextTaskID: given(task)}
		if *meta == "" {
			return s, nil
		}
		data := []byte(*meta)
		err := strict.Check(data, strict.Options{})
		if err == nil {
			err = json.Unmarshal(data, &s.Metadata)
		}
		if err != nil || s.Metadata == nil {
			return s, usageText(cmd, "--metadata is not a JSON object: "+beeyard.Quote(*meta))
		}
		return s, nil
	}
}

func (p *program) olderStatusInit() *cobra.Command {
	cmd := &cobra.Command{Use: "status-init", Short: "Make the checkpoint, or make it anew", Args: args(0, 0)}
	run, status := olderStatusFlags(cmd)
	id := olderFlags{cmd}.text("run-id", "the run's id")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir", "run-id"); err != nil {
			return err
		}
		s, err := status()
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("summary") {
			s.Summary = "Initialized"
		}
		return statusError(p.withOlder(*run, olderMakes, func(r *spool.Run) error {
			return r.Compat().InitStatus(cmd.Context(), *id, s)
		}))
	}
	return cmd
}

func (p *program) olderStatusWrite() *cobra.Command {
	cmd := &cobra.Command{Use: "status-write", Short: "Change the checkpoint; what is left out becomes null", Args: args(0, 0)}
	run, status := olderStatusFlags(cmd)
	f := olderFlags{cmd}
	risk, worker := f.text("risk", "known blockers"), f.text("current-worker", "who works now")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir"); err != nil {
			return err
		}
		for _, name := range []string{"summary", "next-step"} {
			if !cmd.Flags().Changed(name) {
				return usageText(cmd, "it needs --"+name)
			}
		}
		s, err := status()
		if err != nil {
			return err
		}
		s.Risk, s.CurrentWorker = *risk, given(worker)
		return statusError(p.withOlder(*run, olderMakes, func(r *spool.Run) error {
			return r.Compat().WriteStatus(cmd.Context(), s)
		}))
	}
	return cmd
}

// olderStatus is status.json as the older program shows it.
type olderStatus struct {
	SchemaVersion string `json:"schema_version"`
	RunID         string `json:"run_id"`
	Checkpoint    struct {
		Summary        string   `json:"summary"`
		NextStep       string   `json:"next_step"`
		NextTaskID     *string  `json:"next_task_id"`
		Risk           string   `json:"risk"`
		CompletedTasks []string `json:"completed_tasks"`
		CurrentWorker  *string  `json:"current_worker"`
		Timestamp      string   `json:"timestamp"`
		ResumeCommand  *string  `json:"resume_command"`
	} `json:"checkpoint"`
	Metadata map[string]json.RawMessage `json:"metadata"`
}

func (p *program) olderStatusShow() *cobra.Command {
	cmd := &cobra.Command{Use: "status-show", Short: "Show the checkpoint as JSON", Args: args(0, 0)}
	run := olderFlags{cmd}.text("run-dir", "folder of the run")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir"); err != nil {
			return err
		}
		return statusError(p.withOlder(*run, olderLooks, func(r *spool.Run) error {
			c, err := r.Compat().Status(cmd.Context())
			if err != nil {
				return err
			}
			out := olderStatus{SchemaVersion: c.SchemaVersion, RunID: c.RunID, Metadata: c.Metadata}
			k := &out.Checkpoint
			k.Summary, k.NextStep, k.NextTaskID, k.Risk = c.Summary, c.NextStep, c.NextTaskID, c.Risk
			k.CompletedTasks, k.CurrentWorker, k.Timestamp, k.ResumeCommand = orEmpty(c.CompletedTasks), c.CurrentWorker, c.Timestamp, c.ResumeCommand
			if out.Metadata == nil {
				out.Metadata = map[string]json.RawMessage{}
			}
			return p.indented(out)
		}))
	}
	return cmd
}

// statusError: a status.json that cannot be read is 2.
func statusError(err error) error {
	if errors.Is(err, beeyard.ErrCorrupt) {
		return &exitError{code: 2, err: err}
	}
	return err
}
