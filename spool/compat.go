package spool

import (
	"fmt"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Compat is a run as the compatibility commands use it: the claims of
// claimed/<worker>/ that have no token, the enqueue that overwrites. It is as
// safe as the older programs are, and the locks that those do not know keep it
// from ever harming a claim that has a token. See "With older programs in the
// run" in ADR 0002.
type Compat struct{ r *Run }

// Compat gives that view of the run.
func (r *Run) Compat() *Compat { return &Compat{r} }

// OpenOlder opens a run for a command that makes what is missing, as the older
// ones do: the folder and all folders in it, but no status.json.
func OpenOlder(path string, o Options, clk clock.Clock) (*Run, error) {
	dir, err := durable.MkdirAll(path, folderMode)
	if err != nil {
		return nil, &beeyard.Error{Op: "open run", ID: path, Err: fmt.Errorf("make run folder: %w", err),
			Hint: "name a folder that this user may write to"}
	}
	if err := dir.Close(); err != nil {
		return nil, fmt.Errorf("close run folder: %w", err)
	}
	return openRun(path, o, clk, true)
}

// CheckOlderWorker accepts the worker ids that older programs accept, but for
// those whose folder would read as the folder of a claim with a token. The
// error is ErrUsage.
func CheckOlderWorker(id string) error {
	if err := beeyard.CheckStoredID(id); err != nil {
		return err
	}
	if _, _, ours := beeyard.ParseClaimDir(id); ours {
		return &beeyard.Error{Op: "check worker id", ID: id,
			Err:  beeyard.Because(beeyard.ErrUsage, "it has the form of a claim with a token"),
			Hint: "choose an id without '~'"}
	}
	return nil
}

// noClaim is the answer to a worker that does not have, or no longer has, a claim.
func noClaim(worker, id string) error {
	return &beeyard.Error{Op: "complete", ID: id,
		Err:  beeyard.Because(beeyard.ErrClaimLost, "worker "+beeyard.Quote(worker)+" has no claim of this task"),
		Hint: "it was never claimed, was completed before, or was taken back; nothing was changed"}
}

// older opens claimed/<worker>/.
func (c *Compat) older(worker string) (durable.Dir, error) {
	d, err := c.r.claimed.OpenDir(worker)
	if err != nil {
		return nil, fmt.Errorf("open claims of worker: %w", err)
	}
	return d, nil
}

// ensureOlder makes it. Nothing of it need survive a power cut: a claim that
// does not is back in pending/.
func (c *Compat) ensureOlder(worker string) (durable.Dir, error) {
	d, err := c.older(worker)
	if !missing(err) {
		return d, err
	}
	if err := c.r.claimed.Mkdir(worker, folderMode); err != nil && !exists(err) {
		return nil, fmt.Errorf("make folder of worker: %w", err)
	}
	return c.older(worker)
}
