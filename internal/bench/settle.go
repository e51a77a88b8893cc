package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/spool"
)

func claimAndSettle(ctx context.Context, w beeyard.Worker) error {
	c, err := w.Claim(ctx, beeyard.Filter{})
	if err != nil {
		return err
	}
	if c == nil {
		return errors.New("nothing to claim")
	}
	_, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	return err
}

func fill(ctx context.Context, r *spool.Run, prefix string, n int) error {
	tasks := make([]*beeyard.Task, n)
	for i := range n {
		tasks[i] = newTask(fmt.Sprintf("%s-%08d", prefix, i))
	}
	_, err := r.Enqueue(ctx, tasks, beeyard.EnqueueOptions{})
	return err
}

// benchSettle compares claim and settle in one process with a bare loop of
// exactly their calls.
func benchSettle(e *env) ([]result, error) {
	ctx := context.Background()
	n := max(400/e.n, 20)
	dir, bare := filepath.Join(e.folder("settle"), "run"), e.folder("bare")
	var t trace
	traced, err := openBench(dir, t.wrap)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, traced, "traced", 3); err != nil {
		return nil, err
	}
	tw, err := traced.Attach(ctx, beeyard.WorkerSpec{ID: "traced"})
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err := claimAndSettle(ctx, tw); err != nil {
			return nil, err
		}
	}
	if err := tw.Flush(ctx); err != nil {
		return nil, err
	}
	t.start()
	c, err := tw.Claim(ctx, beeyard.Filter{})
	if err != nil || c == nil {
		return nil, fmt.Errorf("claim: %v, %w", c, err)
	}
	if _, err := tw.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone}); err != nil {
		return nil, err
	}
	ops := steady(t.stop())
	body, err := os.ReadFile(filepath.Join(dir, "done", c.Task.ID+".json"))
	if err != nil {
		return nil, err
	}
	if err := traced.Close(); err != nil {
		return nil, err
	}
	r, err := openBench(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const rounds = 7
	if err := fill(ctx, r, "t", n*(rounds+1)); err != nil {
		return nil, err
	}
	w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "w"})
	if err != nil {
		return nil, err
	}
	play := newReplay(dir, bare, c.Task.ID, body)
	prepare := func(round int) error { // the bare loop's inputs are not its work
		for i := range n {
			if err := os.WriteFile(filepath.Join(bare, "pending", bareID(round, i)+".json"), body, 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Join(bare, "pending"), 0o700); err != nil {
		return nil, err
	}
	for round := range rounds + 1 {
		if err := prepare(round); err != nil {
			return nil, err
		}
	}
	ratio, took, err := pairs(rounds, func(int) error {
		for range n {
			if err := claimAndSettle(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}, func(round int) error {
		for i := range n {
			if err := play.play(ops, bareID(round, i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []result{{what: "claim and settle: bare loop's time / ours", got: ratio, goal: 0.7, least: true,
		note: fmt.Sprintf("%.0f/s; %s", float64(n)/took, calls(ops))}}, nil
}

func bareID(round, i int) string { return fmt.Sprintf("b%02d-%08d", round, i) }

// steady leaves out what a loop does now and then: the checkpoint's fold is
// not part of a claim and a settle.
func steady(ops []durable.Op) []durable.Op {
	var out []durable.Op
	for _, op := range ops {
		if op.Name == "status.json" || op.Name == ".status.lock" {
			continue
		}
		out = append(out, op)
	}
	return out
}
