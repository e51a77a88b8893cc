package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

// Two ids that differ by case are one name on some file systems, so a new id
// may equal no existing one after folding. A folder cannot be asked for a name
// whatever its case; so each id with capitals leaves a mark under its
// lower-case form, which says how it is spelled.
const (
	dirFolded    = "folded"
	foldMarkSize = beeyard.MaxIDBytes
)

// foldedDir is .beeyard/folded, empty while no id with capitals was enqueued.
func (r *Run) foldedDir() (durable.Dir, error) {
	r.enq.mu.Lock()
	defer r.enq.mu.Unlock()
	return r.lazyDir(&r.enq.folded, dirFolded)
}

// lazyDir opens a folder under .beeyard once it is there. The caller holds r.enq.mu.
func (r *Run) lazyDir(at *durable.Dir, name string) (durable.Dir, error) {
	if *at != nil {
		return *at, nil
	}
	d, err := r.meta.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return absent{r.meta.Path() + "/" + name}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	*at = d
	return d, nil
}

// ensureDir is lazyDir that makes the folder.
func (r *Run) ensureDir(at *durable.Dir, name string) (durable.Dir, error) {
	r.enq.mu.Lock()
	defer r.enq.mu.Unlock()
	if *at != nil {
		return *at, nil
	}
	d, err := durable.EnsureDir(r.meta, name, folderMode)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	*at = d
	return d, nil
}

func (r *Run) ensureFolded() (durable.Dir, error) { return r.ensureDir(&r.enq.folded, dirFolded) }

// foldMarks finds which of the additions have a mark, theirs or another's.
func (r *Run) foldMarks(adds []*addition) (map[string]bool, error) {
	dir, err := r.foldedDir()
	if err != nil {
		return nil, err
	}
	if _, none := dir.(absent); none {
		return nil, nil
	}
	names := make(map[string]bool, len(adds))
	for _, a := range adds {
		if a.status == statusNone {
			names[beeyard.Fold(a.task.ID)] = true
		}
	}
	return present(dir, names)
}

// foldedElsewhere gives the other spelling of an id that is in use, or "".
// hits are the looks for the id's own spelling and its lower-case one. The
// caller holds .queue.lock.
func (r *Run) foldedElsewhere(ctx context.Context, id string, hits map[string]found, marks map[string]bool) (string, error) {
	f := beeyard.Fold(id)
	if _, used := hits[f]; used && f != id {
		return f, nil
	}
	if !marks[f] {
		return "", nil
	}
	dir, err := r.foldedDir()
	if err != nil {
		return "", err
	}
	data, _, err := dir.ReadFile(f, foldMarkSize)
	if missing(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read fold mark: %w", err)
	}
	other := string(data)
	if other == id || beeyard.Fold(other) != f {
		return "", nil
	}
	// The mark comes before the name it is for: a crash in between leaves one
	// that stands for nothing.
	_, used, err := r.inUse(ctx, other)
	if err != nil || !used {
		return "", err
	}
	return other, nil
}

// publishMarks names the fold marks of what is about to be published. They are
// durable first: a task whose mark a power cut took could be met by its double.
func (r *Run) publishMarks(adds []*addition) error {
	var dir durable.Dir
	for _, a := range adds {
		if a.status != statusNone || a.mark == "" {
			continue
		}
		var err error
		if dir, err = r.ensureFolded(); err != nil {
			return err
		}
		if err := dir.Rename(a.mark, dir, beeyard.Fold(a.task.ID)); err != nil {
			return fmt.Errorf("write fold mark: %w", err)
		}
		a.mark = ""
	}
	if dir == nil {
		return nil
	}
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync fold marks: %w", err)
	}
	return nil
}
