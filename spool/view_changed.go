package spool

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// changePoll is how often a change is looked for where no file event tells of it.
const changePoll = 2 * time.Second

// Changed gives a value some time after anything changed: hints, which may be
// merged. The channel is closed when ctx ends or the run is closed.
func (r *Run) Changed(ctx context.Context) (<-chan struct{}, error) {
	last, err := r.signature()
	if err != nil {
		return nil, err
	}
	out := make(chan struct{}, 1)
	err = r.view.watchers.start(ctx, func(ctx context.Context) {
		defer close(out)
		hints := durable.Watch(ctx, r.root, r.pending, r.held, r.claimed, r.done, r.failed, r.quarantine)
		defer hints.Close()
		r.watchChanges(ctx, hints.Hints(), last, out)
	})
	return out, err
}

// watchers owns the goroutines that look for changes.
type watchers struct {
	mu     sync.Mutex
	closed bool
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (w *watchers) init() { w.ctx, w.cancel = context.WithCancel(context.Background()) }

// start runs f until ctx ends or the owner closes.
func (w *watchers) start(ctx context.Context, f func(context.Context)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("watch for changes: the run is closed: %w", fs.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(w.ctx, cancel)
	w.wg.Go(func() {
		defer cancel()
		defer stop()
		f(ctx)
	})
	return nil
}

func (w *watchers) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	w.wg.Wait()
	return nil
}

func (r *Run) watchChanges(ctx context.Context, hints <-chan durable.Hint, last signature, out chan<- struct{}) {
	tick := r.clk.NewTimer(changePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-hints:
			if !ok {
				hints = nil
				continue
			}
		case <-tick.C():
			tick.Reset(changePoll)
			now, err := r.signature()
			if err != nil {
				// Readers will meet it themselves; a silent watch would hide it.
				r.note("the run's folders cannot be looked at for changes: %v", err)
			} else if now == last {
				continue
			}
			last = now
		}
		select {
		case out <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// signature changes with any task or the checkpoint: a rename changes the times
// of both folders, and the checkpoint is replaced by a new file.
type signature struct {
	dirs   [6]time.Time
	status uint64
	mod    time.Time
}

func (r *Run) signature() (signature, error) {
	var s signature
	places := []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld, beeyard.PlaceDone, beeyard.PlaceFailed, beeyard.PlaceQuarantine}
	dirs := []durable.Dir{r.claimed}
	for _, p := range places {
		dirs = append(dirs, r.place(p))
	}
	for i, d := range dirs {
		info, err := d.Info()
		if missing(err) {
			continue
		}
		if err != nil {
			return s, fmt.Errorf("look at %s: %w", d.Path(), err)
		}
		s.dirs[i] = info.ChangeTime
	}
	info, err := r.root.Stat(fileStatus)
	if ignoreMissing(err) != nil {
		return s, fmt.Errorf("look at checkpoint: %w", err)
	}
	if err == nil {
		s.status, s.mod = info.Ino, info.ChangeTime
	}
	return s, nil
}
