package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"beeyard"
	"beeyard/internal/strict"
	"beeyard/open"

	"github.com/spf13/cobra"
)

func (p *program) addRun(root *cobra.Command) {
	run := &cobra.Command{
		Use: "run", Short: "Make, resume, move and pack runs", GroupID: groupRuns,
		Long: "A run is one workflow: its tasks, its checkpoint, its artifacts.",
	}
	p.addRunNew(run)
	p.addRunLs(run)
	p.addRunResume(run)
	p.addRunExport(run)
	p.addRunImport(run)
	p.addRunArchive(run)
	root.AddCommand(run)
}

// checkpointFlags are what a checkpoint is made with.
type checkpointFlags struct {
	summary, nextStep, nextTask, metadata string
}

func (c *checkpointFlags) add(cmd *cobra.Command, summary string) {
	f := cmd.Flags()
	f.StringVar(&c.summary, "summary", summary, "what was just finished")
	f.StringVar(&c.nextStep, "next-step", "", "what to do next, for whoever comes")
	f.StringVar(&c.nextTask, "next-task-id", "", "the task to claim next")
	f.StringVar(&c.metadata, "metadata", "", "the consumer's own JSON object")
}

func (c *checkpointFlags) checkpoint() (beeyard.Checkpoint, error) {
	out := beeyard.Checkpoint{Summary: c.summary, NextStep: c.nextStep}
	if c.nextTask != "" {
		if err := beeyard.CheckStoredID(c.nextTask); err != nil {
			return out, err
		}
		out.NextTaskID = &c.nextTask
	}
	var err error
	out.Metadata, err = metadata(c.metadata)
	return out, errors.Join(err, checkText("summary", c.summary), checkText("next-step", c.nextStep))
}

func checkText(flag, s string) error {
	if beeyard.ValidText(s) {
		return nil
	}
	return &beeyard.Error{Op: "read --" + flag, Err: beeyard.Because(beeyard.ErrUsage, "it is not UTF-8 text")}
}

// metadata reads a JSON object; "" is nothing.
func metadata(text string) (map[string]json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	var m map[string]json.RawMessage
	err := strict.Unmarshal([]byte(text), &m, strict.Options{})
	if err == nil && m == nil {
		err = errors.New("null is no object")
	}
	if err != nil {
		return nil, &beeyard.Error{Op: "read --metadata", Err: fmt.Errorf("%w: %w", beeyard.ErrUsage, err), Hint: `it is a JSON object: {"key":"value"}`}
	}
	return m, nil
}

func (p *program) addRunNew(parent *cobra.Command) {
	var c checkpointFlags
	cmd := &cobra.Command{
		Use: "new ID", Short: "Make a run",
		Long:    "Makes a run with its checkpoint, under the root or in the folder of --at.",
		Example: "  beeyard run new audit --next-step 'enqueue a task for each repository'\n  beeyard run new audit --at ./work/audit",
		Args:    args(1, 1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.add(cmd, "Initialized")
	folder := cmd.Flags().String("at", "", "the run's own folder, anywhere")
	cmd.RunE = func(cmd *cobra.Command, argv []string) error {
		check, err := c.checkpoint()
		if err != nil {
			return err
		}
		run, err := p.newRun(cmd.Context(), argv[0], *folder, check)
		if err != nil {
			return err
		}
		out := map[string]string{"run_id": argv[0], "location": run.Location()}
		if err := run.Close(); err != nil {
			return err
		}
		return p.show(out, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, out["location"])
			return err
		})
	}
	parent.AddCommand(cmd)
}

// newRun makes a run under the root, or in the folder that was named. An id is
// never taken for a path: it may come from somebody else.
func (p *program) newRun(ctx context.Context, id, folder string, c beeyard.Checkpoint) (beeyard.Run, error) {
	if err := beeyard.CheckID("run", id); err != nil {
		return nil, err
	}
	if folder != "" {
		path, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("resolve %s: %w", folder, err)
		}
		c.RunID = id
		return open.CreateDir(ctx, path, c, open.Options{Warn: p.warn, Clock: p.clock})
	}
	root, err := p.rootPath()
	if err != nil {
		return nil, err
	}
	s, err := p.store(root)
	if err != nil {
		return nil, err
	}
	run, err := s.CreateRun(ctx, id, c)
	return run, errors.Join(err, s.Close())
}

func (p *program) addRunLs(parent *cobra.Command) {
	parent.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the runs under the root",
		Long: "Lists the runs under the root, whatever run is named by the environment.",
		Args: args(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.listRuns(cmd.Context()) },
	})
}
