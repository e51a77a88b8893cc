package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/clock"

	"github.com/spf13/cobra"
)

// waitFlag is --wait, with or without a time.
type waitFlag struct {
	on   bool
	most time.Duration // 0: no limit
}

const forever = "forever"

func (w *waitFlag) Set(s string) error {
	w.on, w.most = true, 0
	if s == forever {
		return nil
	}
	if err := parseWait(s, &w.most); err != nil {
		return err
	}
	w.on = w.most > 0
	return nil
}

func (w *waitFlag) String() string {
	switch {
	case !w.on:
		return ""
	case w.most == 0:
		return forever
	}
	return w.most.String()
}

func (w *waitFlag) Type() string { return "duration" }

func (p *program) addClaim(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "claim [--wait [DURATION]]", Short: "Take the next ready task and print it", GroupID: groupTasks,
		Long: `Takes the best ready task and prints its JSON with a token: the proof of the
right to do it, needed to settle it. Nothing to take: exit 0 and no output (null
with --json). The claim lives while it beats: run beeyard heartbeat more often
than the stale limit (300s), or the task is given to somebody else.`,
		Example: "  beeyard claim --worker-id w1 --type audit > task.json\n  beeyard complete --task ID --token TOKEN --success --artifact report.md",
		Args:    args(0, 1),
	}
	f := cmd.Flags()
	f.String("worker-id", "", "who claims (default <host>-<pid>)")
	var filter beeyard.Filter
	listVar(f, &filter.Types, "type", "only tasks of these types")
	listVar(f, &filter.Tiers, "tier", "only tasks of these tiers")
	listVar(f, &filter.Labels, "label", "only tasks with all of these labels")
	f.BoolVar(&filter.Strict, "strict-order", false, "read every pending task, so that the order is exact")
	f.Duration("stale-after", 300*time.Second, "the limit that reapers use in this run")
	var wait waitFlag
	f.Var(&wait, "wait", "wait until there is one; --wait=5m: at most so long (then exit 8)")
	f.Lookup("wait").NoOptDefVal = forever
	exitEmpty := f.Bool("exit-empty", false, "exit 3 when there is nothing; with --wait: when nothing can come of itself")
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		if len(argv) > 0 {
			// A flag whose value may be missing takes none after a space.
			if !wait.on || wait.most > 0 {
				return args(0, 0)(cmd, argv)
			}
			if err := wait.Set(argv[0]); err != nil {
				return usage(cmd, err)
			}
		}
		c, err := p.conf()
		if err != nil {
			return err
		}
		spec := beeyard.WorkerSpec{ID: c.get("worker.id", cmd.Flags()).text, Kind: beeyard.KindSingle, Limits: beeyard.DefaultLimits()}
		if spec.ID == "" {
			spec.ID = defaultWorkerID()
		}
		if spec.StaleAfter, err = c.duration("worker.stale_after", cmd.Flags()); err != nil {
			return err
		}
		if err := beeyard.CheckID("worker", spec.ID); err != nil {
			return err
		}
		run, err := p.openRun(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer closing(run, &err)
		claim, err := p.claim(cmd.Context(), run, spec, filter, wait, *exitEmpty)
		if err != nil {
			return err
		}
		if claim == nil {
			if p.json && !*exitEmpty {
				return p.printJSON(nil)
			}
			if *exitEmpty {
				return &beeyard.Error{Op: "claim", Err: beeyard.Because(beeyard.ErrNotFound, "there is nothing to claim")}
			}
			return nil
		}
		if err := p.printJSON(claimed(claim, spec.ID)); err != nil {
			// Nobody heard the token, so nobody could ever settle.
			_, rerr := run.Settle(context.WithoutCancel(cmd.Context()), claim.Ref(),
				beeyard.Settlement{Outcome: beeyard.OutcomeRelease, Reason: "its claimer could not be told"})
			return errors.Join(err, rerr)
		}
		return nil
	}
	root.AddCommand(cmd)
}

// claim takes one task, waiting for it if asked to. nil when there is none.
func (p *program) claim(ctx context.Context, run beeyard.Run, spec beeyard.WorkerSpec, f beeyard.Filter, wait waitFlag, exitEmpty bool) (*beeyard.Claim, error) {
	if wait.most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait.most, beeyard.Because(beeyard.ErrTimeout, "nothing came within "+wait.most.String()))
		defer cancel()
	}
	var changed <-chan struct{}
	if wait.on {
		var err error
		if changed, err = run.Changed(ctx); err != nil {
			return nil, err
		}
	}
	w, err := run.Attach(ctx, spec)
	if err != nil {
		return nil, err
	}
	got, err := p.claimLoop(ctx, w, f, changed, exitEmpty)
	return got, errors.Join(err, w.Close(context.WithoutCancel(ctx)))
}

// claimPoll is the net under the hints of change; tasks also come due.
const claimPoll = 2 * time.Second

func (p *program) claimLoop(ctx context.Context, w beeyard.Worker, f beeyard.Filter, changed <-chan struct{}, exitEmpty bool) (*beeyard.Claim, error) {
	for {
		got, err := w.Claim(ctx, f)
		if err != nil || got != nil || changed == nil {
			return got, err
		}
		if exitEmpty {
			if empty, err := w.Drained(ctx, f); err != nil || empty {
				return nil, err
			}
		}
		if err := p.pause(ctx, changed, claimPoll); err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
	}
}

// pause returns at a hint of change, after most at the latest, and with ctx's
// cause when ctx ends.
func (p *program) pause(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	t := p.clock.NewTimer(most)
	defer t.Stop()
	select {
	case _, ok := <-changed:
		if !ok {
			return clock.Sleep(ctx, p.clock, most)
		}
	case <-t.C():
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

type claimJSON struct {
	taskJSON
	Payload      json.RawMessage `json:"payload"`
	Token        string          `json:"token"`
	WorkerID     string          `json:"worker_id"`
	Run          string          `json:"run"`
	ArtifactPath string          `json:"artifact_path"`
	ResultPath   string          `json:"result_path"`
	LogPath      string          `json:"log_path"`
}

func claimed(c *beeyard.Claim, worker string) claimJSON {
	v := &beeyard.View{Task: c.Task, Place: beeyard.PlaceClaimed, State: beeyard.StateClaimed}
	return claimJSON{taskJSON: shownTask(v), Payload: payloadOf(c.Task), Token: c.Token.String(), WorkerID: worker,
		Run: c.RunDir, ArtifactPath: c.ArtifactPath, ResultPath: c.ResultPath, LogPath: c.LogPath}
}
