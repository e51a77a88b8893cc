package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"beeyard"
	"beeyard/internal/durable"
)

// Claim takes the first ready task in the order of file names into
// claimed/<worker>/, and returns nil, nil when there is none. There is no
// token: whoever completes in the worker's name completes it. The body is the
// one that was taken, whatever an enqueue wrote meanwhile.
func (c *Compat) Claim(ctx context.Context, worker string, types []string) (_ *beeyard.Task, err error) {
	r := c.r
	if err := errors.Join(r.writable("claim"), CheckOlderWorker(worker)); err != nil {
		return nil, err
	}
	if _, err := r.promoteDue(ctx); err != nil {
		return nil, err
	}
	names, err := c.pendingNames()
	if err != nil {
		return nil, err
	}
	var dir durable.Dir
	defer func() {
		if dir != nil {
			err = errors.Join(err, dir.Close())
		}
	}()
	f := beeyard.Filter{Types: types}
	deps := r.newDeps(ctx)
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		id, ok := taskIDOf(name)
		if !ok {
			continue // beeyard workers report and quarantine it
		}
		t, err := c.candidate(ctx, name, id)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		if ok, err := r.mayRun(t, &f, deps); err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue
		}
		if dir == nil {
			if dir, err = c.ensureOlder(worker); err != nil {
				return nil, err
			}
		}
		won, err := c.take(ctx, dir, id, &f)
		if err != nil || won != nil {
			return won, err
		}
	}
	return nil, nil
}

func (c *Compat) pendingNames() ([]string, error) {
	var names []string
	err := durable.EachName(c.r.pending, func(name []byte, _ uint64, _ fs.FileMode) bool {
		if _, ok := idOfName(name); ok {
			names = append(names, string(name))
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list pending: %w", err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// candidate reads a pending task; nil for what is none, which never stops the queue.
func (c *Compat) candidate(ctx context.Context, name, id string) (*beeyard.Task, error) {
	t, _, err := readTask(c.r.pending, name, id)
	switch {
	case missing(err):
		return nil, nil
	case errors.Is(err, beeyard.ErrNotTask), errors.Is(err, fs.ErrPermission):
		return nil, c.r.quarantineFile(ctx, c.r.pending, name, err.Error())
	}
	return t, err
}

// mayRun asks the one function, with nothing but whether dependencies are met.
func (r *Run) mayRun(t *beeyard.Task, f *beeyard.Filter, deps *deps) (bool, error) {
	if !f.Match(t) {
		return false, nil
	}
	var failed error
	v := beeyard.Judge(t, beeyard.PlacePending, r.clk.Now(), func(id string) beeyard.Dep {
		met, err := deps.met(id)
		failed = errors.Join(failed, err)
		return beeyard.Dep{ID: id, Met: met, Known: true}
	})
	return failed == nil && v.State == beeyard.StateReady, failed
}

// take renames and reads; nil when there was nothing to have.
func (c *Compat) take(ctx context.Context, dir durable.Dir, id string, f *beeyard.Filter) (*beeyard.Task, error) {
	r, name := c.r, bodyName(id)
	if won, err := c.rename(dir, name); err != nil || !won {
		return nil, err
	}
	t, _, err := readTask(dir, name, id)
	switch {
	case missing(err):
		return nil, nil // reaped between the two calls
	case errors.Is(err, beeyard.ErrNotTask):
		if err := c.giveBack(ctx, dir, id); err != nil {
			return nil, err
		}
		return nil, r.quarantineFile(ctx, r.pending, name, err.Error())
	case err != nil:
		return nil, errors.Join(err, c.giveBack(ctx, dir, id))
	}
	left, err := r.leftover(t)
	if err != nil {
		return nil, errors.Join(err, c.giveBack(ctx, dir, id))
	}
	if left != "" {
		r.note("%s was in pending/ though this very task is in %s/: the leftover was dropped", beeyard.Quote(id), left)
		r.event("leftover", t, "", string(left))
		return nil, ignoreMissing(dir.Remove(name))
	}
	if ok, err := r.mayRun(t, f, r.newDeps(ctx)); err != nil || !ok {
		return nil, errors.Join(err, c.giveBack(ctx, dir, id))
	}
	r.event("claimed", t, "", "by an older command")
	return t, nil
}

// rename is the claim. A life of the id that this worker still has is not
// replaced: the task waits until it is completed.
func (c *Compat) rename(dir durable.Dir, name string) (won bool, err error) {
	if c.r.networked() {
		// Without a rename that replaces nothing, link and unlink would let two
		// claimers have one task; what is left to chance is two claims of one
		// worker at once.
		there, err := dir.Exists(name)
		if err != nil {
			return false, fmt.Errorf("look for an earlier claim: %w", err)
		}
		if there {
			return false, nil
		}
		err = c.r.pending.Rename(name, dir, name)
		if err != nil && !missing(err) {
			// The answer of a rename that was done may have been lost.
			there, lookErr := dir.Exists(name)
			if lookErr != nil || !there {
				return false, errors.Join(fmt.Errorf("claim: %w", err), lookErr)
			}
			err = nil
		}
		return err == nil, nil
	}
	err = c.r.pending.RenameExcl(name, dir, name)
	switch {
	case err == nil:
		return true, nil
	case missing(err), exists(err):
		return false, nil
	}
	return false, fmt.Errorf("claim: %w", err)
}

// GiveBack returns a claim as it was: its handler could not be started.
func (c *Compat) GiveBack(ctx context.Context, worker, id string) error {
	dir, err := c.older(worker)
	if err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(c.giveBack(ctx, dir, id), dir.Close())
}

// giveBack renames back, never over a newer life of the id.
func (c *Compat) giveBack(ctx context.Context, dir durable.Dir, id string) error {
	r, name := c.r, bodyName(id)
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	err = dir.RenameExcl(name, r.pending, name)
	switch {
	case err == nil:
		r.pickHint(id, beeyard.PlacePending)
		return nil
	case missing(err):
		return nil
	case exists(err):
		r.note("%s has two lives: the one that was given back is kept in quarantine/", beeyard.Quote(id))
		return r.setAside(dir, name, id, nonce(recordNonce))
	}
	return fmt.Errorf("give %s back: %w", beeyard.Quote(id), err)
}
