package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

func (w *worker) beatTime() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lastBeat
}

// touch beats in every directory of ours. The process that owns the handlers
// does it itself, so the beat dies with it.
func (w *worker) touch() error {
	w.mu.Lock()
	dirs := append([]*claimDir(nil), w.dirs...)
	w.mu.Unlock()
	now := w.run.clk.Now()
	for _, d := range dirs {
		if err := d.beat.Touch(); err != nil {
			return fmt.Errorf("beat: %w", err)
		}
	}
	w.mu.Lock()
	w.lastBeat = now
	w.mu.Unlock()
	return nil
}

// Beat proves that the worker lives and tells what changed under it.
func (w *worker) Beat(ctx context.Context, held []beeyard.Ref, note string) (beeyard.BeatReport, error) {
	last := w.beatTime()
	late := w.run.clk.Now().Sub(last)
	// Without the monotonic reading the difference counts time asleep too.
	if wall := w.run.clk.Now().Round(0).Sub(last.Round(0)); wall > late {
		late = wall
	}
	if err := w.touch(); err != nil {
		return beeyard.BeatReport{}, err
	}
	w.mu.Lock()
	dirs := append([]*claimDir(nil), w.dirs...)
	sync := map[*claimDir]bool{}
	for _, lc := range w.live {
		if !lc.synced {
			lc.synced = true
			sync[lc.dir] = true
		}
	}
	w.mu.Unlock()
	// From the first beat on a handler is a long one: its claim is put on the
	// disk, so that a task which takes the machine down costs an attempt too.
	for d := range sync {
		if err := d.dir.Sync(); err != nil {
			return beeyard.BeatReport{}, fmt.Errorf("sync claim: %w", err)
		}
	}
	if note != "" && len(dirs) > 0 {
		if err := writeNote(dirs[0].dir, note); err != nil {
			return beeyard.BeatReport{}, err
		}
	}
	rep, err := w.Check(ctx, held)
	if late > w.spec.StaleAfter {
		rep.Late = late
	}
	return rep, err
}

// Check looks for cancels and losses: one system call or two for each claim.
func (w *worker) Check(_ context.Context, held []beeyard.Ref) (beeyard.BeatReport, error) {
	var rep beeyard.BeatReport
	var errs []error
	for _, ref := range held {
		w.mu.Lock()
		lc := w.live[ref.TaskID]
		w.mu.Unlock()
		if lc == nil || lc.claim.Token != ref.Token {
			continue // settled by us meanwhile
		}
		there, err := lc.dir.dir.Exists(bodyName(ref.TaskID))
		if err != nil {
			errs = append(errs, fmt.Errorf("look at claim: %w", err))
			continue
		}
		if !there {
			w.mu.Lock()
			still := w.live[ref.TaskID] == lc
			w.mu.Unlock()
			if still {
				rep.Lost = append(rep.Lost, ref)
			}
			continue
		}
		cancel, err := lc.dir.dir.Exists(tagged(ref.TaskID, tagCancel, ""))
		if err != nil {
			errs = append(errs, fmt.Errorf("look for a cancel: %w", err))
		}
		if cancel {
			rep.Canceled = append(rep.Canceled, ref)
		}
	}
	return rep, errors.Join(errs...)
}

func writeNote(dir durable.Dir, note string) error {
	if len(note) > noteMax {
		note = note[:noteMax]
	}
	temp := tempName("note")
	if err := writeBody(dir, temp, []byte(note), false); err != nil {
		return fmt.Errorf("write beat note: %w", err)
	}
	if err := dir.Rename(temp, dir, fileBeatNote); err != nil {
		return errors.Join(fmt.Errorf("write beat note: %w", err), ignoreMissing(dir.Remove(temp)))
	}
	return nil
}

// Heartbeat proves the life of a single claim.
func (r *Run) Heartbeat(_ context.Context, ref beeyard.Ref, note string) error {
	if err := r.writable("heartbeat"); err != nil {
		return err
	}
	dir, err := r.openClaimDir(ref.Token)
	if missing(err) {
		return claimLost(ref.TaskID)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	t, _, err := readTask(dir, bodyName(ref.TaskID), ref.TaskID)
	if missing(err) || err == nil && t.Ext.Rev != ref.Token.Rev {
		return claimLost(ref.TaskID)
	}
	if err != nil {
		return fmt.Errorf("read claim: %w", err)
	}
	if err := dir.Touch(fileBeat); err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	if note != "" {
		return writeNote(dir, note)
	}
	return nil
}
