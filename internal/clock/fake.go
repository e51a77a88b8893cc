package clock

import (
	"context"
	"sync"
	"time"
)

// Fake is a Clock that a test moves. Where all that runs is in one process,
// testing/synctest is simpler; this one is for steps of the wall clock, for two
// clocks that disagree, and beside real files and processes.
type Fake struct {
	mu      sync.Mutex
	wall    time.Time
	run     time.Duration // advanced so far, steps not counted
	timers  map[*fakeTimer]bool
	changed chan struct{} // closed and made anew when a timer starts or ends
}

// NewFake starts at the given time.
func NewFake(now time.Time) *Fake {
	return &Fake{wall: now.Round(0), timers: map[*fakeTimer]bool{}, changed: make(chan struct{})}
}

// Now is the time set so far; it has no monotonic reading (see Elapsed).
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall
}

func (f *Fake) elapsed() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run
}

// Advance lets time pass and fires, in order, what falls due.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := f.run + d
	for {
		var next *fakeTimer
		for t := range f.timers {
			if t.due <= end && (next == nil || t.due < next.due) {
				next = t
			}
		}
		if next == nil {
			break
		}
		f.pass(max(0, next.due-f.run))
		f.drop(next)
		next.c <- f.wall
	}
	f.pass(end - f.run)
}

// Step sets the wall clock forward or back, as a person or NTP does: no timer
// notices and Elapsed does not change.
func (f *Fake) Step(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
}

func (f *Fake) pass(d time.Duration) {
	f.run += d
	f.wall = f.wall.Add(d)
}

// BlockUntil waits until n timers run or ctx ends, and returns ctx's cause then.
func (f *Fake) BlockUntil(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		have, changed := len(f.timers), f.changed
		f.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// NewTimer makes a timer that Advance fires.
func (f *Fake) NewTimer(d time.Duration) Timer {
	t := &fakeTimer{f: f, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

func (f *Fake) drop(t *fakeTimer) bool {
	was := f.timers[t]
	delete(f.timers, t)
	f.tell()
	return was
}

func (f *Fake) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

type fakeTimer struct {
	f   *Fake
	c   chan time.Time
	due time.Duration
}

func (t *fakeTimer) C() <-chan time.Time { return t.c }

// Stop and Reset empty the channel, as those of package time do.
func (t *fakeTimer) Stop() bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	return t.stop()
}

func (t *fakeTimer) stop() bool {
	select {
	case <-t.c:
	default:
	}
	return t.f.drop(t)
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	was := t.stop()
	t.due = t.f.run + d
	if d <= 0 {
		t.c <- t.f.wall
		return was
	}
	t.f.timers[t] = true
	t.f.tell()
	return was
}
