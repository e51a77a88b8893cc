package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

// swarmCLI is the older queue and checkpoint program.
func (p *program) swarmCLI() *cobra.Command {
	return olderTree("swarm-cli", "The older queue and checkpoint commands",
		p.olderEnqueue(), p.olderClaim(), p.olderComplete(), p.olderHeartbeat(), p.olderReap(),
		p.olderStatusInit(), p.olderStatusShow(), p.olderStatusWrite(), p.olderLs())
}

func (p *program) olderEnqueue() *cobra.Command {
	cmd := &cobra.Command{Use: "enqueue", Short: "Add a task, or replace a pending one, or run a finished one again", Args: args(0, 0)}
	f := olderFlags{cmd}
	run, id, typ := f.text("run-dir", "folder of the run, made if it is missing"), f.text("task-id", "id"), f.text("task-type", "what kind of task it is")
	payload := f.text("payload", "JSON for the handler; other text becomes a JSON string")
	deps := f.text("depends-on", "ids that must be done first, separated by commas")
	tier, by := f.text("tier-hint", "class of model"), f.text("created-by", "who wants it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir", "task-id", "task-type"); err != nil {
			return err
		}
		t := &beeyard.Task{ID: *id, Type: *typ, DependsOn: commaList(*deps), TierHint: *tier, CreatedBy: *by}
		if *payload != "" {
			t.Payload = olderPayload(*payload)
		}
		return p.withOlder(*run, olderMakes, func(r *spool.Run) error {
			under, err := p.followUp(r.Location())
			if err != nil {
				return err
			}
			return r.Compat().Enqueue(cmd.Context(), t, under)
		})
	}
	return cmd
}

// olderPayload: text that is no JSON is a string.
func olderPayload(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	b, err := json.Marshal(text)
	if err != nil {
		return nil // a string always can be
	}
	return b
}

func (p *program) olderClaim() *cobra.Command {
	cmd := &cobra.Command{Use: "claim", Short: "Take the first ready task; its JSON on one line, nothing when there is none", Args: args(0, 0)}
	f := olderFlags{cmd}
	run, worker := f.text("run-dir", "folder of the run"), f.text("worker-id", "who claims")
	types := f.text("task-type-filter", "only these types, separated by commas")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir", "worker-id"); err != nil {
			return err
		}
		err := p.withOlder(*run, olderChanges, func(r *spool.Run) error {
			c := r.Compat()
			t, err := c.Claim(cmd.Context(), *worker, commaList(*types))
			if err != nil || t == nil {
				return err
			}
			line, err := t.Nine()
			if err == nil {
				_, err = fmt.Fprintf(p.stdout, "%s\n", line)
			}
			if err != nil {
				// Nobody heard which task it is.
				return errors.Join(fmt.Errorf("write output: %w", err), c.GiveBack(context.WithoutCancel(cmd.Context()), *worker, t.ID))
			}
			return nil
		})
		if errors.Is(err, beeyard.ErrNotFound) {
			p.notef("there is no run at %s yet", plain(*run, 400))
			return nil
		}
		return err
	}
	return cmd
}

func (p *program) olderComplete() *cobra.Command {
	cmd := &cobra.Command{Use: "complete", Short: "End a claim", Args: args(0, 0)}
	f := olderFlags{cmd}
	run, worker, id := f.text("run-dir", "folder of the run"), f.text("worker-id", "who has the claim"), f.text("task-id", "the task")
	success := cmd.Flags().Bool("success", false, "it is done")
	failure := cmd.Flags().Bool("failure", false, "it failed, for good")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir", "worker-id", "task-id"); err != nil {
			return err
		}
		if *success == *failure {
			return usageText(cmd, "it needs either --success or --failure")
		}
		return p.withOlder(*run, olderChanges, func(r *spool.Run) error {
			c := r.Compat()
			ref, err := p.olderToken(r.Location(), *id)
			switch {
			case err != nil:
				return err
			case ref != nil:
				return c.CompleteWith(cmd.Context(), *worker, *ref, *success)
			}
			return c.Complete(cmd.Context(), *worker, *id, *success)
		})
	}
	return cmd
}

// olderToken is the token of the claim that this process works under, when that
// is one of this run and of this task. A token that is named without its task
// is taken to be of the task that is completed.
func (p *program) olderToken(location, id string) (*beeyard.Ref, error) {
	text := p.env("BEEYARD_CLAIM_TOKEN")
	if text == "" {
		return nil, nil
	}
	if run := p.env("BEEYARD_RUN"); run != "" && !sameRun(run, location) {
		return nil, nil
	}
	if task := p.env("BEEYARD_TASK_ID"); task != "" && task != id {
		return nil, nil
	}
	tok, err := beeyard.ParseToken(text)
	if err != nil {
		return nil, err
	}
	return &beeyard.Ref{TaskID: id, Token: tok}, nil
}

func (p *program) olderHeartbeat() *cobra.Command {
	cmd := &cobra.Command{Use: "heartbeat", Short: "Prove that a worker lives", Args: args(0, 0)}
	f := olderFlags{cmd}
	run, worker, note := f.text("run-dir", "folder of the run"), f.text("worker-id", "who"), f.text("note", "what is being done")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir", "worker-id"); err != nil {
			return err
		}
		return p.withOlder(*run, olderMakes, func(r *spool.Run) error {
			return r.Compat().Heartbeat(cmd.Context(), *worker, *note)
		})
	}
	return cmd
}

type olderReaped struct {
	WorkerID string  `json:"worker_id"`
	TaskID   string  `json:"task_id"`
	Age      float64 `json:"age_seconds"`
}

type olderReap struct {
	RunDir     string        `json:"run_dir"`
	StaleAfter float64       `json:"stale_after_seconds"`
	Count      int           `json:"reaped_count"`
	Reaped     []olderReaped `json:"reaped"`
	Skipped    []string      `json:"skipped_live"`
}

func (p *program) olderReap() *cobra.Command {
	cmd := &cobra.Command{Use: "reap", Short: "Put the claims of silent workers back", Args: args(0, 0)}
	f := olderFlags{cmd}
	run := f.text("run-dir", "folder of the run")
	stale := cmd.Flags().String("stale-after", "300", "seconds without a beat after which a worker counts as dead")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir"); err != nil {
			return err
		}
		limit, err := seconds(cmd, "stale-after", *stale, 0)
		if err != nil {
			return err
		}
		var rep spool.OlderReap
		err = p.withOlder(*run, olderChanges, func(r *spool.Run) (err error) {
			rep, err = r.Compat().Reap(cmd.Context(), limit)
			return err
		})
		if err != nil && !errors.Is(err, beeyard.ErrNotFound) {
			return err
		}
		out := olderReap{RunDir: *run, StaleAfter: limit.Seconds(), Count: len(rep.Reaped), Reaped: []olderReaped{}, Skipped: orEmpty(rep.Skipped)}
		for _, r := range rep.Reaped {
			out.Reaped = append(out.Reaped, olderReaped{r.Worker, r.TaskID, r.Age})
		}
		return p.indented(out)
	}
	return cmd
}

// indented prints JSON as the older programs do, by two.
func (p *program) indented(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
