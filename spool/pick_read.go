package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
)

// listed is one name of pending/ or held/ that stands for an id.
type listed struct {
	id   string
	ino  uint64 // 0 when it was not listed but heard of
	full bool   // parse all of it
}

// notTask is a name that is no task, and why.
type notTask struct {
	name string
	ino  uint64
	why  string
}

// strange hands a name that is no task to quarantine, which moves it once it is
// old enough; there is false when it is gone. One file that cannot be moved
// must not stop the queue.
func (r *Run) strange(ctx context.Context, dir durable.Dir, f notTask) (there bool, err error) {
	if r.ro {
		return true, nil
	}
	if err := r.quarantineFile(ctx, dir, f.name, f.why); err != nil {
		if ctx.Err() != nil {
			return true, err
		}
		r.note("%s/%s is no task (%s) and could not be moved to quarantine/: %v", dir.Path(), beeyard.Quote(f.name), f.why, err)
	}
	return dir.Exists(f.name)
}

// readings is what became of some listed names. Names that are gone are in
// neither list, nor are files of others that may not be read.
type readings struct {
	good []*candidate
	bad  []notTask
	read int // bodies that had to be read
	// err is what kept some from being read: the disk's doing, not theirs. The
	// rest are good all the same, for one bad sector must not stop a queue.
	err error
}

// readCandidates reads bodies of a folder, from many goroutines when they are
// many.
func (r *Run) readCandidates(ctx context.Context, dir durable.Dir, names []listed) (readings, error) {
	out := readings{read: len(names)}
	good, errs := make([]*candidate, len(names)), make([]error, len(names))
	err := parallel(ctx, len(names), func(i int) error {
		good[i], errs[i] = r.readCandidate(dir, names[i])
		return nil
	})
	if err != nil {
		return out, err
	}
	for i, c := range good {
		switch err := errs[i]; {
		case errors.Is(err, beeyard.ErrNotTask):
			out.bad = append(out.bad, notTask{bodyName(names[i].id), names[i].ino, err.Error()})
		case err != nil:
			if out.err == nil { // of many, the first tells enough
				out.err = err
			}
		case c != nil:
			out.good = append(out.good, c)
		}
	}
	return out, nil
}

// readCandidate reads one; nil, nil when it is gone or may not be read.
// ErrNotTask when it is no task.
func (r *Run) readCandidate(dir durable.Dir, l listed) (*candidate, error) {
	data, info, err := readBody(dir, bodyName(l.id))
	switch {
	case missing(err):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		r.note("%s/%s belongs to somebody else and cannot be read: it is passed over", dir.Path(), bodyName(l.id))
		return nil, nil
	case err != nil:
		return nil, err
	}
	parse := peekTask
	if l.full {
		parse = parseTask
	}
	t, err := parse(data, l.id)
	if err != nil {
		return nil, err
	}
	if l.ino == 0 {
		l.ino = info.Ino
	}
	return newCandidate(t, l.ino, info), nil
}

// loadCandidates is readCandidates that asks the index first when that is
// likely to be quicker. What the index says is checked against the files'
// times: they stay in a list for long.
func (r *Run) loadCandidates(ctx context.Context, dir durable.Dir, names []listed) (readings, error) {
	const few = 64
	if len(names) < few {
		return r.readCandidates(ctx, dir, names)
	}
	x := r.openIndex()
	defer x.close()
	at := make([]int32, len(names))
	err := parallel(ctx, len(names), func(i int) error {
		at[i] = -1
		if names[i].full || x == nil {
			return nil
		}
		pos := x.find([]byte(names[i].id), names[i].ino)
		if pos < 0 {
			return nil
		}
		info, err := dir.Stat(bodyName(names[i].id))
		if missing(err) {
			return nil // the read finds that too
		}
		if err != nil {
			return fmt.Errorf("look at task: %w", err)
		}
		if x.fresh(pos, info) {
			at[i] = int32(pos)
		}
		return nil
	})
	if err != nil {
		return readings{}, err
	}
	rest, good := names[:0], x.take(at)
	for i, l := range names {
		if at[i] < 0 {
			rest = append(rest, l)
		}
	}
	out, err := r.readCandidates(ctx, dir, rest)
	out.good = append(good, out.good...)
	return out, err
}

// peeked is the part of a body that choosing needs.
type peeked struct {
	ID        *string  `json:"task_id"`
	Type      *string  `json:"task_type"`
	CreatedAt string   `json:"created_at"`
	DependsOn []string `json:"depends_on"`
	Tier      string   `json:"tier_hint"`
	Ext       struct {
		Priority  int           `json:"priority"`
		NotBefore string        `json:"not_before"`
		RetryAt   string        `json:"retry_at"`
		Labels    []string      `json:"labels"`
		Hold      *beeyard.Hold `json:"hold"`
	} `json:"beeyard"`
}

// peekTask is parseTask for choosing among many, at a third of its memory: the
// fields that it passes over are looked at when the task is claimed. What it
// does not take for a plain task is read in full, so it refuses nothing itself.
func peekTask(data []byte, id string) (*beeyard.Task, error) {
	var p peeked
	err := strict.Unmarshal(data, &p, strict.Options{MaxBytes: beeyard.MaxTaskBytes})
	plain := err == nil && p.ID != nil && *p.ID == id && p.Type != nil
	for _, d := range p.DependsOn {
		plain = plain && beeyard.CheckStoredID(d) == nil
	}
	if !plain {
		return parseTask(data, id)
	}
	t := &beeyard.Task{ID: id, Type: *p.Type, CreatedAt: p.CreatedAt, DependsOn: p.DependsOn, TierHint: p.Tier}
	t.Ext.Priority, t.Ext.NotBefore, t.Ext.RetryAt = p.Ext.Priority, p.Ext.NotBefore, p.Ext.RetryAt
	t.Ext.Labels, t.Ext.Hold = p.Ext.Labels, p.Ext.Hold
	return t, nil
}
