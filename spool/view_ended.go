package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// endedCache remembers which files in failed/ are canceled tasks: only the body
// tells. A file is known again by inode, size and time; by its inode alone it
// is not, since a file system gives a freed one to the next file at once.
type endedCache struct {
	mu sync.Mutex
	m  map[string]endedEntry
}

type endedEntry struct {
	ino   uint64
	size  int64
	mod   time.Time
	state beeyard.State
}

func entryOf(i durable.Info, s beeyard.State) endedEntry {
	return endedEntry{ino: i.Ino, size: i.Size, mod: i.ModTime, state: s}
}

// endsOf tells failed from canceled for those that at picks; "" for what has
// moved on and for the others.
func (r *Run) endsOf(ctx context.Context, seen []sighting, at func(sighting) bool) ([]beeyard.State, error) {
	r.view.ended.trim(len(seen))
	states := make([]beeyard.State, len(seen))
	err := parallel(ctx, len(seen), func(i int) (err error) {
		if at(seen[i]) {
			states[i], err = r.endOf(seen[i].id)
		}
		return err
	})
	return states, err
}

func (r *Run) endOf(id string) (beeyard.State, error) {
	c := &r.view.ended
	name := bodyName(id)
	info, err := r.failed.Stat(name)
	if missing(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look at task: %w", err)
	}
	if s, ok := c.get(id, info); ok {
		return s, nil
	}
	data, info, err := r.failed.ReadFile(name, beeyard.MaxTaskBytes)
	switch {
	case missing(err):
		return "", nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		// It cannot be read; it has ended in failed/ all the same.
		data = nil
	case err != nil:
		return "", fmt.Errorf("read task: %w", err)
	}
	s := stateInFailed(data, id)
	c.put(id, entryOf(info, s))
	return s, nil
}

// stateInFailed parses only what may be canceled: a body without that word, and
// without an escape that could spell it, is not.
func stateInFailed(data []byte, id string) beeyard.State {
	if !bytes.Contains(data, []byte(beeyard.OutcomeCanceled)) && !bytes.Contains(data, []byte(`\u`)) {
		return beeyard.StateFailed
	}
	t, err := parseTask(data, id)
	if err != nil {
		t = &beeyard.Task{ID: id}
	}
	return beeyard.Judge(t, beeyard.PlaceFailed, time.Time{}, nil).State
}

func (c *endedCache) get(id string, i durable.Info) (beeyard.State, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.m[id]
	return e.state, ok && e == entryOf(i, e.state)
}

func (c *endedCache) put(id string, e endedEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]endedEntry{}
	}
	c.m[id] = e
}

// trim starts anew when most of what is remembered has left.
func (c *endedCache) trim(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) > 2*n+1024 {
		c.m = nil
	}
}
