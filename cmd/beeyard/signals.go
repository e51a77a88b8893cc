package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopSignals ask a command to stop. A terminal that was closed is one of them:
// left to its default, HUP would end a worker at once, count a death against
// its tasks and leave its handlers running. nohup's wish is kept.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// echo is how soon after a signal the same wish may arrive again: timeout(1)
// and some supervisors signal the process and then its group.
const echo = 250 * time.Millisecond

// stopCount tells a second wish to stop from the echo of the first.
type stopCount struct{ first time.Time }

// again counts a signal and reports whether it asks to stop at once.
func (s *stopCount) again(now time.Time) bool {
	if s.first.IsZero() {
		s.first = now
		return false
	}
	return now.Sub(s.first) >= echo
}

// outliveReaders makes a write to a pipe that nobody reads fail, where SIGPIPE
// would end the program: work must not die with whoever watched it. It is
// caught and not ignored, since handlers would inherit that.
func outliveReaders() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
