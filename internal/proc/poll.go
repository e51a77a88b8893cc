package proc

import (
	"time"

	"beeyard/internal/clock"
)

// now measures how long real processes take: a fake clock has no say in that.
func now() time.Time { return clock.Real().Now() }

// poll asks until done or until limit has passed; it asks at least once, and a
// last time at the end.
func poll(limit time.Duration, done func() bool) bool {
	const first, longest = 500 * time.Microsecond, 20 * time.Millisecond
	end := now().Add(limit)
	for pause := first; ; pause = min(2*pause, longest) {
		if done() {
			return true
		}
		left := end.Sub(now())
		if left <= 0 {
			return false
		}
		time.Sleep(min(pause, left))
	}
}
