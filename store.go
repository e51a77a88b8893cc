package beeyard

import "context"

// RunInfo is one line of a list of runs.
type RunInfo struct {
	ID         string      `json:"run_id"`
	Location   string      `json:"location"`
	Counts     Counts      `json:"counts"`
	Checkpoint *Checkpoint `json:"-"`
	// Problem says why the run cannot be read in full; "" when it can.
	Problem string `json:"problem,omitempty"`
}

// Store holds the runs under one root.
type Store interface {
	// Location is the root's path or URL.
	Location() string
	// Runs lists them by id. A run that cannot be read is listed with its Problem.
	Runs(ctx context.Context) ([]RunInfo, error)
	// OpenRun opens by id. ErrNotFound.
	OpenRun(ctx context.Context, id string) (Run, error)
	// CreateRun makes one. ErrExists.
	CreateRun(ctx context.Context, id string, c Checkpoint) (Run, error)
	Close() error
}
