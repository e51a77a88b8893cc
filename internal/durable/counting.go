package durable

import (
	"maps"
	"sync"
)

// Counter counts the operations of a Dir made by Counting.
type Counter struct {
	mu sync.Mutex
	n  map[string]int
}

// Counting counts each operation of a Dir, and of what is opened from it, by
// its Op constant. Failed ones count too.
func Counting(d Dir) (Dir, *Counter) {
	c := &Counter{n: map[string]int{}}
	return Hooked(d, func(op Op) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n[op.Op]++
		return nil
	}), c
}

// Of is the number of operations of these kinds, all together.
func (c *Counter) Of(ops ...string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, op := range ops {
		n += c.n[op]
	}
	return n
}

// Syncs is the number of flushes of files, folders and file systems.
func (c *Counter) Syncs() int { return c.Of(OpSync, OpSyncDir, OpSyncFS) }

// All is a copy of all counts.
func (c *Counter) All() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// Reset starts at nothing.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.n)
}
