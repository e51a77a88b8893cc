package main

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/open"
	"beeyard/spool"
)

// store is the root that holds the runs.
func (p *program) store(root string) (*spool.Root, error) {
	host, err := open.Host()
	if err != nil {
		return nil, err
	}
	return spool.OpenStore(root, spool.Options{Host: host, Warn: p.warn}, p.clock), nil
}

// runsUnder lists the runs under a root with their counts. ErrNotFound when
// there is no such folder.
func (p *program) runsUnder(ctx context.Context, root string) ([]beeyard.RunInfo, error) {
	s, err := p.store(root)
	if err != nil {
		return nil, err
	}
	infos, err := s.Runs(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return infos, nil
}
