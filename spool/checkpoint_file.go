package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
)

// maxStatusBytes bounds status.json: half a million ids of the longest kind.
const maxStatusBytes = 128 << 20

// damage is a status.json that is no checkpoint. It is ErrCorrupt, and the one
// kind of it that is mended.
type damage struct {
	why  string
	data []byte
}

func (d *damage) Error() string { return "status.json is damaged: " + d.why }
func (d *damage) Unwrap() error { return beeyard.ErrCorrupt }

// readStatus reads status.json: nil when there is none, *damage when it can be
// rebuilt, another error when it can not. The text is compared, not its times
// and inode: those may be equal for two texts written in one tick of the clock,
// and a change is based on what is read here.
func (r *Run) readStatus() (*status, error) {
	data, info, err := r.root.ReadFile(fileStatus, maxStatusBytes)
	switch {
	case missing(err):
		return nil, nil
	case errors.Is(err, durable.ErrNotRegular):
		return nil, fmt.Errorf("%w: status.json is not a regular file", beeyard.ErrNotAllowed)
	case errors.Is(err, durable.ErrTooLarge):
		return nil, beeyard.Because(beeyard.ErrCorrupt, "status.json is larger than 128 MiB")
	case err != nil:
		return nil, fmt.Errorf("read status.json: %w", err)
	}
	r.chk.mu.Lock()
	last := r.chk.last
	r.chk.mu.Unlock()
	if last != nil && bytes.Equal(last.raw, data) {
		if !sameFile(last.info, info) {
			same := *last
			same.info = info
			last = &same
			r.remember(last)
		}
		return last, nil
	}
	cp, err := parseStatus(data, r.id)
	if err != nil {
		return nil, err
	}
	s := newStatus(data, info, cp)
	r.remember(s)
	return s, nil
}

func (r *Run) remember(s *status) {
	r.chk.mu.Lock()
	defer r.chk.mu.Unlock()
	r.chk.last = s
}

// parseStatus reads the text. The schema is asked first: a newer program's
// file may be anything to us, and is not ours to rebuild.
func parseStatus(data []byte, run string) (*beeyard.Checkpoint, error) {
	cp, err := beeyard.DecodeCheckpoint(data, run)
	if errors.Is(err, beeyard.ErrSchema) {
		return nil, err
	}
	if len(data) == 0 {
		return nil, &damage{"it is empty", data}
	}
	// Older writers leave halves of surrogate pairs; all else that readers could
	// take in two ways is damage.
	if serr := strict.Check(data, strict.Options{MaxBytes: maxStatusBytes, LoneSurrogates: true}); serr != nil {
		return nil, &damage{serr.Error(), data}
	}
	if err != nil {
		return nil, &damage{err.Error(), data}
	}
	return cp, nil
}

// lockStatus takes .status.lock, which older programs take too: held for every
// read-change-write.
func (r *Run) lockStatus(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, errors.New(fileStatusLock+" was not free for "+lockWait.String()))
	defer cancel()
	unlock, err := r.root.Lock(ctx, fileStatusLock)
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", beeyard.ErrLocked, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock status.json: %w", err)
	}
	return unlock, nil
}

// editStatus is the one way in which status.json changes: lock, read again,
// change, and replace it by one rename of a whole, flushed file. change gets
// nil when there is none, and returns nil to leave it as it is; on nil the
// result is durable. A damaged file is rebuilt before change sees it.
//
// Lock order: nobody takes .queue.lock while he holds .status.lock.
func (r *Run) editStatus(ctx context.Context, change func(old *status) (*beeyard.Checkpoint, error)) (*status, error) {
	s, d, err := r.editOnce(ctx, change, nil)
	if d == nil {
		return s, err
	}
	// What comes next is looked up without the lock: it reads many files.
	plan, err := r.planRebuild(ctx, d)
	if err != nil {
		return nil, err
	}
	s, _, err = r.editOnce(ctx, change, plan)
	return s, err
}

// editOnce gives back the damage when it has no plan for it.
func (r *Run) editOnce(ctx context.Context, change func(*status) (*beeyard.Checkpoint, error), plan *rebuild) (*status, *damage, error) {
	unlock, err := r.lockStatus(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	old, err := r.readStatus()
	if d := (*damage)(nil); errors.As(err, &d) {
		if plan == nil {
			return nil, d, nil
		}
		plan.damage = d
		if old, err = r.rebuilt(plan); err != nil {
			return nil, nil, err
		}
	} else {
		plan = nil // another has mended it
	}
	if err != nil {
		return nil, nil, err
	}
	next, err := change(old)
	if err != nil {
		return nil, nil, err
	}
	if next == nil {
		if old == nil || plan == nil && !r.isUnsure() {
			return old, nil, nil
		}
		next = old.cp
	}
	if plan != nil {
		if err := r.keepDamaged(plan); err != nil {
			return nil, nil, err
		}
	}
	s, err := r.writeStatus(next, old)
	return s, nil, err
}

func (r *Run) isUnsure() bool {
	r.chk.mu.Lock()
	defer r.chk.mu.Unlock()
	return r.chk.unsure
}

// writeStatus replaces the file; the caller holds the lock.
func (r *Run) writeStatus(cp *beeyard.Checkpoint, old *status) (*status, error) {
	data, err := cp.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	if len(data) > maxStatusBytes {
		return nil, beeyard.Because(beeyard.ErrUsage, "the checkpoint would be larger than 128 MiB")
	}
	if err = r.replaceStatus(data, old); err == nil {
		var info durable.Info
		if info, err = r.root.Stat(fileStatus); err == nil {
			cp.SchemaVersion = beeyard.SchemaVersion
			s := newStatus(data, info, cp)
			r.chk.mu.Lock()
			defer r.chk.mu.Unlock()
			if old != nil && !sameFile(old.info, r.chk.wrote) {
				r.chk.rec.seen = false // somebody else wrote it before: his list may lack some of done/
			}
			r.chk.last, r.chk.wrote, r.chk.unsure = s, info, false
			return s, nil
		}
	}
	r.chk.mu.Lock()
	r.chk.unsure = true
	r.chk.mu.Unlock()
	return nil, fmt.Errorf("write status.json: %w", err)
}

// replaceStatus keeps mode and group: a dashboard that could read the file must
// go on reading it. Another owner's file is replaced only where others may read
// it, as its owner then still can.
func (r *Run) replaceStatus(data []byte, old *status) error {
	if old != nil && old.info.Mode.Perm()&0o044 != 0 {
		err := durable.ReplaceFile(r.root, fileStatus, data, fileMode)
		if errors.Is(err, durable.ErrUnsafe) {
			err = durable.WriteFile(r.root, fileStatus, data, old.info.Mode.Perm())
		}
		return err
	}
	return durable.ReplaceFile(r.root, fileStatus, data, fileMode)
}

func sameFile(a, b durable.Info) bool {
	return a.Ino == b.Ino && a.Dev == b.Dev && a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.ChangeTime.Equal(b.ChangeTime)
}

// completedSet is completed_tasks as the file lists it, for the caller to read
// only. A damaged file lists nothing: done/ is asked first by all who ask here,
// which also makes an answer that is one tick of the clock old harmless.
func (r *Run) completedSet() (map[string]bool, error) {
	info, err := r.root.Stat(fileStatus)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at status.json: %w", err)
	}
	r.chk.mu.Lock()
	last := r.chk.last
	r.chk.mu.Unlock()
	if last != nil && sameFile(last.info, info) {
		return last.completed(), nil
	}
	s, err := r.readStatus()
	if d := (*damage)(nil); errors.As(err, &d) {
		r.note("%v; it is rebuilt when the checkpoint is next read or written", d)
		return nil, nil
	}
	if err != nil {
		return nil, checkpointError("read checkpoint", r.id, err)
	}
	return s.completed(), nil
}

// checkpointError names the file and a next step for one that is refused.
func checkpointError(op, run string, err error) error {
	e := &beeyard.Error{Op: op, ID: run, Err: err}
	switch {
	case errors.As(err, new(*beeyard.Error)):
		return err
	case errors.Is(err, beeyard.ErrSchema):
		e.Err = fmt.Errorf("status.json: %w", err)
		e.Hint = "a newer program wrote it: use that one, or a newer beeyard; nothing was changed"
	case errors.Is(err, beeyard.ErrCorrupt):
		e.Hint = "beeyard doctor says what is wrong with the file"
	case errors.Is(err, beeyard.ErrNotAllowed):
		e.Hint = "status.json must be a file of this run and not a link"
	}
	return e
}
