package spool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"beeyard/internal/durable"
)

// eventFiles are the files of events/, the one changed last first.
func (r *Run) eventFiles() ([]durable.Info, error) {
	var names []string
	err := r.events.Each(func(e durable.Entry) bool {
		if strings.HasSuffix(e.Name, eventSuffix) {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	files := make([]durable.Info, 0, len(names))
	for _, n := range names {
		info, err := r.events.Stat(n)
		switch {
		case missing(err):
		case err != nil:
			return nil, fmt.Errorf("look at events: %w", err)
		case info.Mode.IsRegular():
			info.Name = n
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b durable.Info) int {
		return cmp.Or(b.ModTime.Compare(a.ModTime), cmp.Compare(a.Name, b.Name))
	})
	return files, nil
}

// adoptable is how many files a new process looks at before it makes its own.
const adoptable = 4

// trimEvents removes the oldest files beyond the bounds, none that a living
// process writes, and gives the newest that have room.
func (r *Run) trimEvents() (room []durable.Info, err error) {
	files, err := r.eventFiles()
	if err != nil {
		return nil, err
	}
	var sum int64
	for i, f := range files {
		sum += f.Size
		if i >= eventFilesMost || sum > eventsMost {
			if err := r.dropEvents(f); err != nil {
				r.note("%v", err)
			}
		} else if f.Size < eventFileMost && len(room) < adoptable {
			room = append(room, f)
		}
	}
	return room, nil
}

func (r *Run) dropEvents(info durable.Info) error {
	f, err := r.events.Open(info.Name)
	if err != nil {
		return ignoreMissing(err)
	}
	locked, err := f.TryLock()
	if err == nil && locked {
		// Under its lock: who opened it to go on in it sees that it is gone.
		err = ignoreMissing(r.events.Remove(info.Name))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("remove old events: %w", err)
	}
	return nil
}
