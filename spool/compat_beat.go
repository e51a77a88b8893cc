package spool

import (
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// Heartbeat touches a worker's beat and leaves a note if there is one. Older
// reapers take the claims of a worker without a fresh beat at once.
func (c *Compat) Heartbeat(_ context.Context, worker, note string) (err error) {
	if err := errors.Join(c.r.writable("heartbeat"), CheckOlderWorker(worker)); err != nil {
		return err
	}
	if !beeyard.ValidText(note) {
		return &beeyard.Error{Op: "heartbeat", ID: worker, Err: beeyard.Because(beeyard.ErrUsage, "the note is not UTF-8 text, or holds a NUL")}
	}
	dir, err := c.ensureOlder(worker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if note != "" {
		if err := writeNote(dir, note); err != nil {
			return err
		}
	}
	f, err := dir.Append(fileBeat, fileMode)
	if err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	if err := errors.Join(f.Touch(), f.Close()); err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	return nil
}

// Leave removes a worker's beat and note at its clean end. While the folder
// holds a claim they stay: it is that of a second worker of the same id, which
// is not refused, and would be stale at once. The folder stays in any case: an
// older reaper ends with an error if one vanishes while it lists.
func (c *Compat) Leave(_ context.Context, worker string) (err error) {
	dir, err := c.older(worker)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	busy := false
	err = dir.Each(func(e durable.Entry) bool {
		_, busy = taskIDOf(e.Name)
		return !busy
	})
	if err != nil {
		return fmt.Errorf("list claims of worker: %w", err)
	}
	if busy {
		return nil
	}
	return errors.Join(ignoreMissing(dir.Remove(fileBeat)), ignoreMissing(dir.Remove(fileBeatNote)))
}

// Log truncates artifacts/<task>.log for a handler that writes it itself.
func (c *Compat) Log(_ context.Context, id string) error {
	f, err := c.r.artifacts.Append(id+".log", fileMode)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if err := errors.Join(f.Truncate(0), f.Close()); err != nil {
		return fmt.Errorf("truncate log: %w", err)
	}
	return nil
}
