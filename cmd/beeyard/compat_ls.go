package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

// olderListed is one run as the older program lists it.
type olderListed struct {
	RunDir         string         `json:"run_dir"`
	RunID          string         `json:"run_id"`
	Exists         bool           `json:"exists"`
	Pending        int            `json:"pending"`
	Claimed        map[string]int `json:"claimed_by_worker"`
	Done           int            `json:"done"`
	Failed         int            `json:"failed"`
	NextStep       *string        `json:"next_step"`
	NextTaskID     *string        `json:"next_task_id"`
	LastCompleted  *string        `json:"last_completed"`
	CurrentWorker  *string        `json:"current_worker"`
	CompletedCount int            `json:"completed_count"`
}

func (p *program) olderLs() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List one run, or those below a folder", Args: args(0, 0)}
	f := olderFlags{cmd}
	run, root := f.text("run-dir", "this run only"), f.text("root", "folder that holds the runs (default ~/.swarm)")
	asJSON := cmd.Flags().Bool("json", false, "print a JSON array")
	plainText := cmd.Flags().Bool("no-color", false, "no colour")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p.json, p.noColor = *asJSON, *plainText
		paths := []string{*run}
		if *run == "" {
			var err error
			if paths, err = p.olderPaths(cmd.Context(), *root); err != nil {
				return p.olderLsError(err)
			}
		}
		list := make([]olderListed, 0, len(paths))
		for _, path := range paths {
			l, err := p.olderListedRun(cmd.Context(), path)
			if err != nil {
				return p.olderLsError(err)
			}
			list = append(list, l)
		}
		if *asJSON {
			return p.indented(list)
		}
		for _, l := range list {
			p.writeListed(p.stdout, l)
		}
		if len(list) == 0 {
			fmt.Fprintln(p.stdout, "no runs")
		}
		return nil
	}
	return cmd
}

func (p *program) olderPaths(ctx context.Context, root string) ([]string, error) {
	if root == "" {
		home := p.env("HOME")
		if home == "" {
			return nil, &beeyard.Error{Op: "find root", Err: beeyard.Because(beeyard.ErrNotFound, "HOME is not set"), Hint: "name a root with --root"}
		}
		root = filepath.Join(home, spool.RootName)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("resolve root: %w", err)
	}
	s, err := p.store(abs)
	if err != nil {
		return nil, err
	}
	paths, err := s.Paths(ctx)
	return paths, errors.Join(err, s.Close())
}

// olderLsError answers with error and hint, on stdout with --json, and ends with 1.
func (p *program) olderLsError(err error) error {
	if !p.json {
		return &exitError{code: exitFailed, err: err}
	}
	out := struct {
		Error string `json:"error"`
		Hint  string `json:"hint"`
	}{err.Error(), beeyard.HintOf(err)}
	if err := p.indented(out); err != nil {
		return err
	}
	return silent(exitFailed)
}

func (p *program) olderListedRun(ctx context.Context, path string) (olderListed, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return olderListed{}, fmt.Errorf("resolve run: %w", err)
	}
	l := olderListed{RunDir: abs, RunID: filepath.Base(abs), Exists: durable.IsFolder(abs), Claimed: map[string]int{}}
	err = p.withOlder(abs, olderLooks, func(r *spool.Run) error {
		c := r.Compat()
		l.RunID = r.ID()
		n, err := c.Counts(ctx)
		if err != nil {
			return err
		}
		l.Pending, l.Claimed, l.Done, l.Failed = n.Pending, n.Claimed, n.Done, n.Failed
		s, err := c.Status(ctx)
		switch {
		case errors.Is(err, beeyard.ErrNotFound):
			return nil
		case errors.Is(err, beeyard.ErrCorrupt):
			p.notef("%s: %v", plain(abs, 400), err) // the others are listed all the same
			return nil
		case err != nil:
			return err
		}
		l.NextStep, l.NextTaskID, l.CurrentWorker = &s.NextStep, s.NextTaskID, s.CurrentWorker
		if l.CompletedCount = len(s.CompletedTasks); l.CompletedCount > 0 {
			l.LastCompleted = &s.CompletedTasks[l.CompletedCount-1]
		}
		return nil
	})
	if errors.Is(err, beeyard.ErrNotFound) {
		err = nil
	}
	return l, err
}

func (p *program) writeListed(w io.Writer, l olderListed) {
	fmt.Fprintf(w, "%s  %s\n", p.paint("1", plain(l.RunID, 100)), plain(l.RunDir, 0))
	if !l.Exists {
		fmt.Fprintln(w, "  there is no such folder")
		return
	}
	var workers []string
	claimed := 0
	for id, n := range l.Claimed {
		claimed += n
		workers = append(workers, fmt.Sprintf("%s %d", plain(id, 60), n))
	}
	slices.Sort(workers)
	by := ""
	if claimed > 0 {
		by = " (" + strings.Join(workers, ", ") + ")"
	}
	failed := fmt.Sprintf("failed %d", l.Failed)
	if l.Failed > 0 {
		failed = p.paint("31", failed)
	}
	fmt.Fprintf(w, "  pending %d  claimed %d%s  done %d  %s\n", l.Pending, claimed, by, l.Done, failed)
	for _, f := range []struct {
		name string
		text *string
	}{{"next step", l.NextStep}, {"next task", l.NextTaskID}, {"last completed", l.LastCompleted}, {"worker", l.CurrentWorker}} {
		if f.text != nil && *f.text != "" {
			fmt.Fprintf(w, "  %s: %s\n", f.name, plain(*f.text, 200))
		}
	}
}
