package spool

import (
	"context"
	"fmt"

	"beeyard"
	"beeyard/internal/durable"
)

// flushEach is how many files are flushed one by one; more are flushed by one
// sync of the file system.
const flushEach = 15

// stage writes the additions under temporary names, and flushes their data.
func (r *Run) stage(ctx context.Context, adds []*addition) error {
	n := 0
	for _, a := range adds {
		if a.status == statusNone {
			n++
			if beeyard.Fold(a.task.ID) != a.task.ID {
				n++
			}
		}
	}
	var late []durable.File
	write := func(dir durable.Dir, name string, data []byte) error {
		if n > flushEach {
			late = append(late, unflushed{dir: dir, name: name})
		}
		return writeBody(dir, name, data, n <= flushEach)
	}
	for _, a := range adds {
		if a.status != statusNone {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if beeyard.Fold(a.task.ID) != a.task.ID {
			dir, err := r.ensureFolded()
			if err != nil {
				return err
			}
			name := durable.TempName("fold")
			if err := write(dir, name, []byte(a.task.ID)); err != nil {
				return err
			}
			a.mark = name
		}
		name := durable.TempName(a.task.ID)
		if err := write(r.place(a.place), name, a.body); err != nil {
			return &beeyard.Error{Op: "enqueue", ID: a.task.ID, Err: err,
				Hint: "nothing was enqueued; make room or mend the disk, then repeat"}
		}
		a.temp, a.body = name, nil
	}
	if len(late) == 0 {
		return nil
	}
	if err := durable.SyncFiles(r.pending, late); err != nil {
		return fmt.Errorf("flush tasks: %w", err)
	}
	return nil
}

// dropTemps removes the temporary files of what was not published. What cannot
// be removed now is the janitor's.
func (r *Run) dropTemps(adds []*addition) {
	for _, a := range adds {
		if a.temp != "" {
			_ = r.place(a.place).Remove(a.temp)
			a.temp = ""
		}
		if a.mark != "" {
			r.enq.mu.Lock()
			folded := r.enq.folded
			r.enq.mu.Unlock()
			if folded != nil {
				_ = folded.Remove(a.mark)
			}
			a.mark = ""
		}
	}
}

// unflushed is a file that was written and closed. It is opened again only
// where files must be flushed one by one after all (kernels whose syncfs hides
// errors): keeping a large batch open would run out of descriptors.
type unflushed struct {
	durable.File
	dir  durable.Dir
	name string
}

func (u unflushed) Sync() error {
	f, err := u.dir.Open(u.name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
