package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"

	"github.com/spf13/cobra"
)

func (p *program) addEnqueue(root *cobra.Command) {
	var w wish
	cmd := &cobra.Command{
		Use: "enqueue (--id ID --type TYPE | -f FILE)", Short: "Add tasks to a run", GroupID: groupTasks,
		Long: `Adds one task, or many from a file with one JSON object a line whose keys are
the names of the flags (depends_on, not_before … with an underscore). An id is
used once in a run: enqueueing it again is refused (exit 4), passed over with
--if-absent, or changes a task that still waits with --replace.

Inside a handler (BEEYARD_CLAIM_TOKEN is set) the tasks are follow-ups: they
appear when the handler's own task is done, and never if it fails. --now adds
them at once.`,
		Example: `  beeyard enqueue --id audit-1 --type audit --payload '{"repo":"a"}' --tier haiku
  beeyard enqueue --id sum --type report --depends-on audit-1,audit-2
  printf '%s\n' '{"id":"a","type":"audit"}' '{"id":"b","type":"audit","depends_on":["a"]}' | beeyard enqueue -f -`,
		Args: args(0, 0),
	}
	f := cmd.Flags()
	f.StringVar(&w.ID, "id", "", "id: letters, digits, '.', '_' and '-', 128 at most")
	f.StringVar(&w.Type, "type", "", "what kind of task it is; workers filter by it")
	payload := f.String("payload", "", "JSON for the handler")
	payloadFile := f.String("payload-file", "", "file with that JSON; - is stdin")
	listVar(f, &w.DependsOn, "depends-on", "ids that must be done first")
	f.IntVar(&w.Priority, "priority", 0, "higher runs first")
	f.StringVar(&w.Tier, "tier", "", "class of model: haiku, sonnet, opus, local …")
	listVar(f, &w.Label, "label", "labels to filter by")
	f.StringArrayVar(&w.Ref, "ref", nil, "what it is about: URLs, paths, ids elsewhere")
	f.StringVar(&w.NotBefore, "not-before", "", "not to run before: RFC 3339, or a duration from now")
	timeout := f.Duration("timeout", 0, "its longest run; 0: the worker's")
	f.IntVar(&w.MaxAttempts, "max-attempts", 0, "failed settles before it fails for good; 0: the worker's")
	f.IntVar(&w.MaxDeaths, "max-deaths", 0, "worker deaths before it fails for good; 0: the worker's")
	backoff := f.Duration("backoff", 0, "first delay of a retry; 0: the worker's")
	f.StringVar(&w.Deadline, "deadline", "", "when it should be done; text, or RFC 3339 with --on-deadline")
	f.StringVar(&w.OnDeadline, "on-deadline", "", "fail: it fails when the deadline passes")
	f.StringVar(&w.CreatedBy, "created-by", "", "who wants it (default: this worker, or $USER)")
	f.BoolVar(&w.Hold, "hold", false, "keep it from running until beeyard unhold")
	file := f.StringP("file", "f", "", "file with one task a line as JSON; - is stdin")
	var o beeyard.EnqueueOptions
	f.BoolVar(&o.IfAbsent, "if-absent", false, "an id in use is no error, and nothing is changed")
	f.BoolVar(&o.Replace, "replace", false, "change the task while it waits to run")
	now := f.Bool("now", false, "inside a handler: at once, not when its task is done")
	cmd.MarkFlagsMutuallyExclusive("if-absent", "replace")
	cmd.MarkFlagsMutuallyExclusive("payload", "payload-file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w.Timeout, w.Backoff = beeyard.Duration(*timeout), beeyard.Duration(*backoff)
		var tasks []*beeyard.Task
		var err error
		if *file != "" {
			if err := onlyWithoutFile(cmd); err != nil {
				return err
			}
			tasks, err = p.taskLines(*file)
		} else {
			if w.ID == "" || w.Type == "" {
				return usageText(cmd, "it needs --id and --type, or -f FILE")
			}
			if w.Payload, err = p.payload(cmd, *payload, *payloadFile); err != nil {
				return err
			}
			tasks, err = p.wished(&w)
		}
		if err != nil {
			return err
		}
		return p.enqueue(cmd.Context(), tasks, o, *now)
	}
	root.AddCommand(cmd)
}

// onlyWithoutFile refuses flags that say what one task is beside a file that does.
func onlyWithoutFile(cmd *cobra.Command) error {
	for _, name := range []string{"id", "type", "payload", "payload-file", "depends-on", "priority", "tier", "label", "ref", "not-before",
		"timeout", "max-attempts", "max-deaths", "backoff", "deadline", "on-deadline", "created-by", "hold"} {
		if cmd.Flags().Changed(name) {
			return usageText(cmd, "--"+name+" does not go with -f: the file says it line by line")
		}
	}
	return nil
}

func (p *program) payload(cmd *cobra.Command, text, file string) ([]byte, error) {
	data := []byte(text)
	if file != "" {
		var err error
		if data, err = p.readInput("payload", file, beeyard.MaxTaskBytes); err != nil {
			return nil, err
		}
	} else if !cmd.Flags().Changed("payload") {
		return nil, nil
	}
	if err := strict.Check(data, strict.Options{MaxBytes: beeyard.MaxTaskBytes}); err != nil {
		return nil, &beeyard.Error{Op: "read payload", ID: file, Err: fmt.Errorf("%w: %w", beeyard.ErrUsage, err),
			Hint: `it must be JSON; plain text is written in quotes: --payload '"text"'`}
	}
	return data, nil
}

// readInput reads a file that the user names whole; "-" is stdin.
func (p *program) readInput(what, file string, most int64) ([]byte, error) {
	fail := func(sentinel, err error) error {
		return &beeyard.Error{Op: "read " + what, ID: file, Err: fmt.Errorf("%w: %w", sentinel, err)}
	}
	if file == "-" {
		data, err := io.ReadAll(io.LimitReader(p.stdin, most+1))
		if err != nil {
			return nil, fmt.Errorf("read stdin: %w", err)
		}
		if int64(len(data)) > most {
			return nil, fail(beeyard.ErrUsage, fmt.Errorf("more than %d bytes", most))
		}
		return data, nil
	}
	data, err := durable.ReadNamed(file, most)
	switch {
	case errors.Is(err, durable.ErrTooLarge):
		return nil, fail(beeyard.ErrUsage, err)
	case err != nil:
		return nil, namedError("read "+what, file, err)
	}
	return data, nil
}

type enqueueResult struct {
	Run      string             `json:"run"`
	Enqueued int                `json:"enqueued"`
	Existing int                `json:"existing"`
	Tasks    []beeyard.Enqueued `json:"tasks"`
}

func (p *program) enqueue(ctx context.Context, tasks []*beeyard.Task, o beeyard.EnqueueOptions, now bool) (err error) {
	run, err := p.openRun(ctx, "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
	if !now {
		if o.Under, err = p.followUp(run.Location()); err != nil {
			return err
		}
	}
	bar := p.newBar(len(tasks))
	bar.on = bar.on && len(tasks) > 1000
	o.OnEach = func(done int) { bar.set(done, 0) }
	answers, err := run.Enqueue(ctx, tasks, o)
	bar.end()
	res := enqueueResult{Run: run.Location(), Tasks: orEmpty(answers)}
	for _, a := range answers {
		if a.Status == "exists" {
			res.Existing++
		} else {
			res.Enqueued++
		}
	}
	if err != nil {
		if res.Enqueued > 0 {
			p.notef("%d of %d tasks were enqueued before this; the same command with --if-absent adds the rest", res.Enqueued, len(tasks))
		}
		return err
	}
	return p.show(res, func(w io.Writer) error {
		if len(answers) > 20 {
			_, err := fmt.Fprintf(w, "%d enqueued, %d there already\n", res.Enqueued, res.Existing)
			return err
		}
		for _, a := range answers {
			line := a.TaskID + " " + strings.ReplaceAll(a.Status, "_", "-")
			if a.State != "" {
				line += ", " + string(a.State)
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// followUp is the claim that this process works under, when that is one of the
// run at location: what it enqueues then waits for the claim's success.
func (p *program) followUp(location string) (*beeyard.Ref, error) {
	text := p.env("BEEYARD_CLAIM_TOKEN")
	if text == "" {
		return nil, nil
	}
	if under := p.env("BEEYARD_RUN"); under != "" && !sameRun(under, location) {
		return nil, nil
	}
	tok, err := beeyard.ParseToken(text)
	if err != nil {
		return nil, err
	}
	id := p.env("BEEYARD_TASK_ID")
	if id == "" {
		return nil, &beeyard.Error{Op: "enqueue", Err: beeyard.Because(beeyard.ErrUsage, "BEEYARD_CLAIM_TOKEN is set and BEEYARD_TASK_ID is not"),
			Hint: "set both to enqueue follow-ups of a claim, or use --now"}
	}
	return &beeyard.Ref{TaskID: id, Token: tok}, nil
}

// sameRun compares two locations; links are followed, since a follow-up that
// is taken for an ordinary task would run too early.
func sameRun(a, b string) bool {
	real := func(s string) string {
		if strings.Contains(s, "://") {
			return s
		}
		if r, err := filepath.EvalSymlinks(s); err == nil {
			s = r
		}
		if abs, err := filepath.Abs(s); err == nil {
			s = abs
		}
		return s
	}
	return a == b || real(a) == real(b)
}
