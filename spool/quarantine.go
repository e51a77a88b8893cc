package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// How long a file that is no task must have been left alone before it is set
// aside. A foreign producer may write straight into pending/, slowly.
const (
	strangeAge        = 10 * time.Second
	strangeAgePending = 60 * time.Second
)

const reasonMax = 4096

// reasonName is the name beside a quarantined file that says why it is there.
func reasonName(name string) string { return name + ".reason" }

// quarantineFile moves what is no task out of dir to quarantine/, its reason
// beside it, and reports it once. It looks first: what is a task by now, what
// was changed a short while ago and what may not be read stay where they are,
// with a nil error, to be met again. After the move it looks once more, and
// puts back what became a task in between. The caller does not hold
// .queue.lock; it is taken here, so that no enqueue looks while the id is away.
func (r *Run) quarantineFile(ctx context.Context, dir durable.Dir, name, why string) error {
	id, isBody := taskIDOf(name)
	settled, err := r.leftAlone(dir, name)
	if err != nil || !settled {
		return err
	}
	if isBody {
		_, _, err := readTask(dir, name, id)
		switch {
		case err == nil, missing(err):
			return nil
		case errors.Is(err, fs.ErrPermission):
			r.note("%s cannot be read and is passed over: its owner, or root, can give it to this user", beeyard.Quote(dir.Path()+"/"+name))
			return nil
		case !errors.Is(err, beeyard.ErrNotTask):
			return err
		}
		why = err.Error()
	}
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	away, err := r.moveAside(dir, name)
	if err != nil || away == "" {
		return err
	}
	if isBody {
		if _, _, err := readTask(r.quarantine, away, id); err == nil {
			return r.bringBack(dir, name, away)
		}
	}
	return r.explainAside(dir, name, away, why)
}

// leftAlone reports whether nobody changed the file for long enough, by the
// file server's clock. The change time, which no program can set, is asked: an
// unpacked or copied file may carry any modification time.
func (r *Run) leftAlone(dir durable.Dir, name string) (bool, error) {
	info, err := dir.Stat(name)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", beeyard.Quote(name), err)
	}
	now, err := r.serverNow()
	if err != nil {
		return false, err
	}
	limit := strangeAge
	if dir == r.pending {
		limit = strangeAgePending
	}
	return now.Sub(info.ChangeTime) > limit, nil
}

// serverNow is our clock as the file server would show it. The difference is
// measured once: the limits that it serves are generous.
func (r *Run) serverNow() (time.Time, error) {
	r.enq.skewOnce.Do(func() {
		at, err := durable.ServerNow(r.meta, "clock")
		r.enq.skew, r.enq.skewErr = at.Sub(r.clk.Now()), err
	})
	if r.enq.skewErr != nil {
		return time.Time{}, fmt.Errorf("ask the file server's clock: %w", r.enq.skewErr)
	}
	return r.clk.Now().Add(r.enq.skew), nil
}

// moveAside renames into quarantine/ under the file's own name, or with a
// suffix when another has that; "" when it is gone.
func (r *Run) moveAside(dir durable.Dir, name string) (string, error) {
	away := name
	for range 3 {
		err := dir.RenameExcl(name, r.quarantine, away)
		switch {
		case err == nil:
			return away, nil
		case missing(err):
			return "", nil
		case !errors.Is(err, fs.ErrExist):
			return "", fmt.Errorf("quarantine %s: %w", beeyard.Quote(name), err)
		}
		away = asideName(name)
	}
	return "", fmt.Errorf("quarantine %s: %w: every name is taken", beeyard.Quote(name), beeyard.ErrConflict)
}

// asideName keeps the task's id recognizable and stays, with ".reason", within 255 bytes.
func asideName(name string) string {
	id, isBody := taskIDOf(name)
	end := ""
	if isBody {
		name, end = id, ".json"
	}
	if most := 255 - len("~.json.reason") - recordNonce; len(name) > most {
		name = name[:most]
	}
	return name + "~" + nonce(recordNonce) + end
}

// bringBack returns a task that its producer finished writing meanwhile.
func (r *Run) bringBack(dir durable.Dir, name, away string) error {
	err := r.quarantine.RenameExcl(away, dir, name)
	switch {
	case err == nil, missing(err):
		return nil
	case errors.Is(err, fs.ErrExist):
		return r.explainAside(dir, name, away, "another file took its name while it was looked at")
	}
	return fmt.Errorf("put %s back: %w", beeyard.Quote(name), err)
}

func (r *Run) explainAside(dir durable.Dir, name, away, why string) error {
	from := dir.Path() + "/" + name
	id, _ := taskIDOf(name)
	r.note("%s was no task and was moved to quarantine/%s: %s", beeyard.Quote(from), away, why)
	r.event("quarantined", &beeyard.Task{ID: id}, "", why)
	if len(why) > reasonMax {
		why = why[:reasonMax]
	}
	// Replacing: a reason left by an earlier file of that name is not this one's.
	if err := durable.WriteFile(r.quarantine, reasonName(away), []byte(why+"\n"), fileMode); err != nil {
		return fmt.Errorf("write quarantine reason: %w", err)
	}
	return nil
}
