package spool

import (
	"context"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

// OlderCounts are the files in a run's folders, as older programs count them:
// what waits in held/ is not theirs to see.
type OlderCounts struct {
	Pending, Done, Failed int
	Claimed               map[string]int // by worker id; never nil
}

// Counts counts names; no body is read.
func (c *Compat) Counts(ctx context.Context) (OlderCounts, error) {
	out := OlderCounts{Claimed: map[string]int{}}
	for _, f := range []struct {
		dir durable.Dir
		to  *int
	}{{c.r.pending, &out.Pending}, {c.r.done, &out.Done}, {c.r.failed, &out.Failed}} {
		err := durable.EachName(f.dir, func(name []byte, _ uint64, _ fs.FileMode) bool {
			if _, ok := idOfName(name); ok {
				*f.to++
			}
			return true
		})
		if err != nil {
			return out, fmt.Errorf("count tasks: %w", err)
		}
	}
	err := c.r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		e, err := listEntries(dir)
		if err != nil {
			return false, err
		}
		worker, _, ours := beeyard.ParseClaimDir(name)
		if !ours {
			worker = name
		}
		// A decided claim that is not published yet is claimed still.
		if n := len(e.claims) + len(e.taken); n > 0 && (!ours || worker != "") {
			out.Claimed[worker] += n
		}
		return true, nil
	})
	return out, err
}

// Paths lists the folders below the root that are runs, in order. ErrNotFound
// when there is no such root.
func (s *Root) Paths(ctx context.Context) ([]string, error) {
	var paths []string
	err := s.eachRun(ctx, func(f foundRun) bool {
		paths = append(paths, f.path)
		return true
	})
	return paths, err
}
