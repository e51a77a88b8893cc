package spool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"beeyard"
	"beeyard/internal/durable"
)

// checkpointPart is what a run remembers of status.json, and what it owes it.
type checkpointPart struct {
	mu     sync.Mutex
	last   *status      // the newest state that was read or written
	wrote  durable.Info // of the file that we wrote last
	unsure bool         // a write failed: what is on the disk is not known
	owed   debt
	fold   folder
	rec    reconciled
	ev     eventLog
}

func (r *Run) initCheckpoint() {
	r.chk.fold.init()
	// Registered first, so that it runs after all who may still owe something.
	r.onClose(func() error { return errors.Join(r.closeFold(), r.chk.ev.close()) })
}

// Checkpoint reads status.json and joins what is in done/ behind what it
// lists: the folder is the record, the list its cache. A damaged file is
// rebuilt first; a run that was opened for reading gets the rebuilt one without
// a write. Revision is that of the file, without what was joined.
func (r *Run) Checkpoint(ctx context.Context) (*beeyard.Checkpoint, error) {
	s, err := r.readStatus()
	if d := (*damage)(nil); errors.As(err, &d) {
		s, err = r.mend(ctx, d)
	}
	if err != nil {
		return nil, checkpointError("read checkpoint", r.id, err)
	}
	if s == nil {
		return nil, &beeyard.Error{Op: "read checkpoint", ID: r.id, Err: beeyard.Because(beeyard.ErrNotFound, "the run has no status.json"),
			Hint: "beeyard checkpoint init makes one"}
	}
	fresh, _, err := r.doneBeyond(s.completed())
	if err != nil {
		return nil, err
	}
	return s.copy(fresh), nil
}

// WriteCheckpoint changes what is named, and makes the file when there is
// none. On nil it is durable.
func (r *Run) WriteCheckpoint(ctx context.Context, e beeyard.CheckpointEdit) (*beeyard.Checkpoint, error) {
	if err := errors.Join(r.writable("write checkpoint"), checkEdit(e)); err != nil {
		return nil, err
	}
	s, err := r.editStatus(ctx, func(old *status) (*beeyard.Checkpoint, error) {
		if e.IfRevision != "" && e.IfRevision != old.revision() {
			return nil, &beeyard.Error{Op: "write checkpoint", ID: r.id,
				Err:  beeyard.Because(beeyard.ErrConflict, "it was changed since that revision was read"),
				Hint: "read the checkpoint again, and write with the revision that it has now"}
		}
		if old == nil {
			old = newStatus(nil, durable.Info{}, &beeyard.Checkpoint{RunID: r.id})
		}
		next := old.cp.Apply(e, r.clk.Now())
		fresh, err := r.joinDone(old.completed())
		if err != nil {
			return nil, err
		}
		next.CompletedTasks = appendIDs(next.CompletedTasks, fresh)
		return &next, nil
	})
	if err != nil {
		return nil, checkpointError("write checkpoint", r.id, err)
	}
	return s.copy(nil), nil
}

// InitCheckpoint makes the checkpoint. Of the completed tasks that c names
// those count which are in done/ (invariant 9).
func (r *Run) InitCheckpoint(ctx context.Context, c beeyard.Checkpoint) (*beeyard.Checkpoint, error) {
	if err := r.writable("init checkpoint"); err != nil {
		return nil, err
	}
	s, err := r.editStatus(ctx, func(old *status) (*beeyard.Checkpoint, error) {
		if old != nil {
			return nil, &beeyard.Error{Op: "init checkpoint", ID: r.id,
				Err:  beeyard.Because(beeyard.ErrExists, "the run has a status.json"),
				Hint: "beeyard checkpoint write changes it"}
		}
		fresh, err := r.joinDone(nil)
		if err != nil {
			return nil, err
		}
		there := setOf(fresh)
		c.CompletedTasks = appendIDs(nil, c.CompletedTasks)
		c.CompletedTasks = slices.DeleteFunc(c.CompletedTasks, func(id string) bool { return !there[id] })
		c.CompletedTasks = appendIDs(c.CompletedTasks, fresh)
		if c.RunID == "" {
			c.RunID = r.id
		}
		if c.Timestamp == "" {
			c.Timestamp = beeyard.FormatTime(r.clk.Now())
		}
		return &c, nil
	})
	if err != nil {
		return nil, checkpointError("init checkpoint", r.id, err)
	}
	return s.copy(nil), nil
}

// notes are the files that Note reads.
var notes = []string{"BACKLOG.md", "portrait.md"}

// Note returns a human's words; bytes that are not UTF-8 are replaced.
func (r *Run) Note(_ context.Context, name string) (string, error) {
	if !slices.Contains(notes, name) {
		return "", &beeyard.Error{Op: "read note", ID: name, Err: beeyard.Because(beeyard.ErrUsage, "a run has no such note"),
			Hint: "the notes of a run are " + strings.Join(notes, " and ")}
	}
	data, _, err := r.root.ReadFile(name, beeyard.MaxTaskBytes)
	switch {
	case missing(err):
		return "", nil
	case errors.Is(err, durable.ErrNotRegular):
		return "", &beeyard.Error{Op: "read note", ID: name, Err: beeyard.Because(beeyard.ErrNotAllowed, "it is not a regular file")}
	case err != nil:
		return "", fmt.Errorf("read note: %w", err)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

// status is one state of status.json. It is shared and never changed.
type status struct {
	raw  []byte // what was read or written
	info durable.Info
	cp   *beeyard.Checkpoint
	set  func() map[string]bool // of cp.CompletedTasks; both are made on first use
	rev  func() string
}

func newStatus(raw []byte, info durable.Info, cp *beeyard.Checkpoint) *status {
	return &status{raw: raw, info: info, cp: cp,
		set: sync.OnceValue(func() map[string]bool { return setOf(cp.CompletedTasks) }),
		rev: sync.OnceValue(func() string {
			sum := sha256.Sum256(raw)
			return hex.EncodeToString(sum[:])
		}),
	}
}

func setOf(ids []string) map[string]bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// completed is the set of ids that the state lists; nil of none.
func (s *status) completed() map[string]bool {
	if s == nil {
		return nil
	}
	return s.set()
}

// revision is what a compare-and-swap names: the digest of the file's bytes.
func (s *status) revision() string {
	if s == nil {
		return ""
	}
	return s.rev()
}

// copy is for the caller to keep and change.
func (s *status) copy(fresh []string) *beeyard.Checkpoint {
	c := *s.cp
	if c.CompletedTasks = slices.Concat(s.cp.CompletedTasks, fresh); len(s.completed()) < len(s.cp.CompletedTasks) {
		c.CompletedTasks = appendIDs(nil, c.CompletedTasks)
	}
	c.Metadata, c.Unknown, c.UnknownCheckpoint = maps.Clone(c.Metadata), maps.Clone(c.Unknown), maps.Clone(c.UnknownCheckpoint)
	c.Revision = s.revision()
	return &c
}

// appendIDs appends in a new array and drops what would be there twice.
func appendIDs(list, more []string) []string {
	seen := make(map[string]bool, len(list)+len(more))
	out := make([]string, 0, len(list)+len(more))
	for _, ids := range [][]string{list, more} {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
		}
	}
	return out
}
