package spool

import (
	"context"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// claimInfo says who has a task. dir is the open claim directory.
func (r *Run) claimInfo(ctx context.Context, f *found, id string, dir durable.Dir) (*beeyard.ClaimInfo, error) {
	l, err := r.liveness(ctx, f.claim, dir)
	if err != nil {
		return nil, fmt.Errorf("look at claimer: %w", err)
	}
	c := &beeyard.ClaimInfo{Worker: workerOf(f.claim), Alive: string(l.State), Note: l.Note,
		Host: l.Beat.Host, PID: l.Beat.PID, Older: l.Older, BeatAge: -1}
	if !l.BeatAt.IsZero() {
		c.BeatAge = max(0, r.clk.Now().Sub(l.BeatAt).Seconds())
	}
	if _, n, ours := beeyard.ParseClaimDir(f.claim); ours && f.task != nil {
		c.Token = beeyard.Token{Rev: f.task.Ext.Rev, Worker: c.Worker, Nonce: n}.String()
	}
	// A rename changes the status of what it moves, so the change time of the
	// claim is when it was made; its modification time is when it was written.
	info, err := dir.Stat(f.name)
	if ignoreMissing(err) != nil {
		return nil, fmt.Errorf("look at claim: %w", err)
	}
	if err == nil {
		c.Since = beeyard.FormatTime(info.ChangeTime)
	}
	if c.Canceled, err = dir.Exists(tagged(id, tagCancel, "")); err != nil {
		return nil, fmt.Errorf("look for a cancel request: %w", err)
	}
	return c, nil
}

// workerOf is the worker that a claim directory belongs to: "" for an operation's.
func workerOf(claimDir string) string {
	if worker, _, ours := beeyard.ParseClaimDir(claimDir); ours {
		return worker
	}
	return claimDir
}
