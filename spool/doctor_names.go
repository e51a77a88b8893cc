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

// oldTempAge is when a temporary file is surely nobody's: writing one takes
// seconds, and a suspended laptop an hour at most between two of them.
const oldTempAge = time.Hour

// names finds what lies where it has no business: links, folders and files
// that are no tasks among the tasks, strange names at the top.
func (d *doctor) names(ctx context.Context) error {
	for _, p := range []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld, beeyard.PlaceFailed, beeyard.PlaceDone} {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := d.r.place(p).Each(func(e durable.Entry) bool {
			d.nameAmongTasks(p, e)
			return true
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", p, err)
		}
	}
	for _, dir := range []durable.Dir{d.r.root, d.r.claimed, d.r.artifacts} {
		err := dir.Each(func(e durable.Entry) bool {
			if e.Type == fs.ModeSymlink {
				d.add(Finding{Code: "link", Severity: Warn, Subject: dir.Path() + "/" + e.Name,
					Detail: "it is a link; nothing of beeyard's follows it", Fix: "put the thing itself there, or take the link away"})
			} else if dir == d.r.claimed && !e.Type.IsDir() && e.Type != fs.ModeIrregular {
				d.add(Finding{Code: "foreign-file", Severity: Info, Subject: dir.Path() + "/" + e.Name, Detail: "it is no claim directory, and is passed over"})
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", dir.Path(), err)
		}
	}
	return nil
}

func (d *doctor) nameAmongTasks(p beeyard.Place, e durable.Entry) {
	at := string(p) + "/" + e.Name
	_, isTask := taskIDOf(e.Name)
	switch {
	case e.Type == fs.ModeSymlink:
		d.add(Finding{Code: "link", Severity: Warn, Subject: at,
			Detail: "it is a link; it is not followed, wherever it leads", Fix: "enqueue what it should be as a task"})
	case isTask && e.Type != 0 && e.Type != fs.ModeIrregular:
		d.add(Finding{Code: "not-a-file", Severity: Warn, Subject: at,
			Detail: "a task is a regular file, and this is " + kindOf(e.Type)})
	case isTask, durable.IsTemp(e.Name):
	default:
		d.add(Finding{Code: "foreign-file", Severity: Info, Subject: at,
			Detail: "its name is no task's, and it is passed over", Fix: "keep other files outside of " + string(p) + "/"})
	}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m == fs.ModeNamedPipe:
		return "a FIFO"
	case m == fs.ModeSocket:
		return "a socket"
	}
	return "something else"
}

// temps finds what writers that died left. Only names of a form that beeyard
// makes are removed: other programs have temporary files too.
func (d *doctor) temps(ctx context.Context) error {
	dirs := []durable.Dir{d.r.root, d.r.pending, d.r.held, d.r.failed, d.r.done, d.r.artifacts, d.r.quarantine, d.r.events, d.r.meta}
	for _, dir := range dirs {
		if err := d.tempsIn(dir); err != nil {
			return err
		}
	}
	return d.r.eachClaimDir(ctx, func(_ string, dir durable.Dir) (bool, error) { return true, d.tempsIn(dir) })
}

func (d *doctor) tempsIn(dir durable.Dir) error {
	var found []string
	err := dir.Each(func(e durable.Entry) bool {
		if durable.IsTemp(e.Name) && !e.Type.IsDir() {
			found = append(found, e.Name)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", dir.Path(), err)
	}
	for _, name := range found {
		old, err := d.olderThan(dir, name, oldTempAge)
		if err != nil {
			return err
		}
		if !old {
			continue
		}
		f := Finding{Code: "stray-temp", Severity: Info, Subject: dir.Path() + "/" + name,
			Detail: "a writer died and left it", Fix: "it is removed"}
		d.fix(f, func() error { return ignoreMissing(dir.Remove(name)) })
	}
	return nil
}

// olderThan judges by both times: an unpacked file may carry any modification time.
func (d *doctor) olderThan(dir durable.Dir, name string, age time.Duration) (bool, error) {
	info, err := dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", name, err)
	}
	limit := d.now.Add(-age)
	return info.ModTime.Before(limit) && info.ChangeTime.Before(limit), nil
}
