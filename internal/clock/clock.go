// Package clock is the only place that reads the time. Domain code takes a
// Clock so that tests decide what time it is.
package clock

import (
	"context"
	"time"
)

// Clock tells and waits for time.
type Clock interface {
	// Now carries a monotonic reading where the platform has one: differences
	// of two Nows are immune to steps of the wall clock.
	Now() time.Time
	// After fires once d has passed. Stop releases it early.
	NewTimer(d time.Duration) Timer
}

// Timer is a single wait.
type Timer interface {
	C() <-chan time.Time
	Stop() bool
	Reset(d time.Duration) bool
}

// Sleep waits for d or until ctx ends, and returns ctx's cause then.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Real is the machine's clock.
func Real() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time                 { return time.Now() }
func (realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }

type realTimer struct{ t *time.Timer }

func (r realTimer) C() <-chan time.Time        { return r.t.C }
func (r realTimer) Stop() bool                 { return r.t.Stop() }
func (r realTimer) Reset(d time.Duration) bool { return r.t.Reset(d) }
