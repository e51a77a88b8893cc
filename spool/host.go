package spool

import "beeyard/internal/durable"

// Host is what spool must know of processes. The one who opens the run fills
// it in (package open does, from internal/proc): a store starts and inspects
// no process itself.
type Host struct {
	Boot  string // id of this boot; "" when unknown, then nothing is proven by it
	Name  string
	PID   int
	Start uint64 // start time of PID, in the kernel's ticks since boot
	// Stopped reports whether that very process of this boot is stopped (SIGSTOP).
	Stopped func(pid int, start uint64) bool
	// Gone reports whether that very process of this boot has ended.
	Gone func(pid int, start uint64) bool
	// Kill ends that very process.
	Kill func(pid int, start uint64) error
	// EndLeft ends what killed processes of this host had started and left running.
	EndLeft func() error
}

// Options open a run.
type Options struct {
	Host Host
	// ReadOnly makes no folder and takes no lock; what is missing counts as empty.
	ReadOnly bool
	// Wrap, when set, is put around the run's folder: tests count, fail and crash there.
	Wrap func(durable.Dir) durable.Dir
	// Warn hears of what was found and put right or kept aside; nil drops it.
	Warn func(msg string)
}
