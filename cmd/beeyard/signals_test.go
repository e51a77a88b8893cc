package main

import (
	"testing"
	"time"
)

// TestStopAgain: a supervisor that signals process and group means it once.
func TestStopAgain(t *testing.T) {
	var s stopCount
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after time.Duration
		again bool
	}{{0, false}, {time.Millisecond, false}, {echo - 1, false}, {echo, true}, {time.Hour, true}} {
		if got := s.again(begin.Add(c.after)); got != c.again {
			t.Errorf("a signal %v after the first: at once %v, want %v", c.after, got, c.again)
		}
	}
}
