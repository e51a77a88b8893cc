package proc

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// oomKills reads the machine's count of OOM kills. A process that got KILL
// from nobody here while the count rose was probably one of them.
var oomKills oomCounter

// oomFresh bounds how old a baseline may be: reading /proc/vmstat makes the
// kernel add up all its counters, too dear for every start.
const oomFresh = time.Second

type oomCounter struct {
	mu   sync.Mutex
	at   time.Time
	last int64
}

func (c *oomCounter) baseline() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := now(); c.at.IsZero() || t.Sub(c.at) > oomFresh {
		c.at, c.last = t, readOOMKills()
	}
	return c.last
}

func (c *oomCounter) since(base int64) bool {
	n := readOOMKills()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.last = now(), n
	return n > base
}

func readOOMKills() int64 {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return n
		}
	}
	return 0
}

// ownPeak is the largest size this process ever had, in KiB.
func ownPeak() int64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return ru.Maxrss
}
