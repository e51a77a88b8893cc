package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Elapsed is the time since some fixed moment. It never steps, and it goes on
// while the machine sleeps: a lease must not look fresh after a laptop was
// closed for an hour, as it does by Go's monotonic reading, which stands still
// meanwhile. Compare values of one clock in one process only.
func Elapsed(c Clock) time.Duration {
	if e, ok := c.(interface{ elapsed() time.Duration }); ok {
		return e.elapsed()
	}
	return c.Now().Sub(started)
}

var started = time.Now()

func (realClock) elapsed() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(started)
	}
	return time.Duration(ts.Nano())
}

// Since is how long ago t was by c.
func Since(c Clock, t time.Time) time.Duration { return c.Now().Sub(t) }

// Format writes RFC 3339 in UTC with Z and six decimals. The width is fixed so
// that the order of the texts is the order of the times.
func Format(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
