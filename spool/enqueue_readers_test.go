package spool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"beeyard"
	"beeyard/internal/durable"
)

// Reader sees half-written file: never, however large a task is.
func TestEnqueueReadersSeeWholeTasks(t *testing.T) {
	r := enqRun(t, Options{})
	payload := json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)
	ctx, cancel := context.WithCancel(enqContext(t))
	var wg sync.WaitGroup
	seen := make([]int, 2)
	for i := range seen {
		wg.Go(func() {
			for ctx.Err() == nil {
				var names []string
				if err := r.pending.Each(func(e durable.Entry) bool {
					names = append(names, e.Name)
					return true
				}); err != nil {
					t.Error(err)
				}
				for _, n := range names {
					if id, ok := taskIDOf(n); ok {
						if _, _, err := readTask(r.pending, n, id); err != nil {
							t.Errorf("%s: %v", n, err)
						}
						seen[i]++
					}
				}
			}
		})
	}
	for i := range 20 {
		tasks := enqTasks(fmt.Sprintf("t%d-", i), 1+i%20)
		for _, task := range tasks {
			task.Payload = payload
		}
		_, err := r.Enqueue(ctx, tasks, beeyard.EnqueueOptions{})
		enqMust(t, err)
	}
	cancel()
	wg.Wait()
	if seen[0] == 0 {
		t.Error("the readers saw nothing")
	}
}

func TestEnqueueTellsProgress(t *testing.T) {
	r := enqRun(t, Options{})
	var heard []int
	_, err := r.Enqueue(enqContext(t), enqTasks("t", 1500), beeyard.EnqueueOptions{OnEach: func(n int) { heard = append(heard, n) }})
	enqMust(t, err)
	if !slices.Equal(heard, []int{1024, 1500}) {
		t.Errorf("heard %v", heard)
	}
}

// Kernels whose syncfs hides errors flush file by file.
func TestEnqueueFlushesClosedFile(t *testing.T) {
	log := &enqLog{}
	r := enqRun(t, Options{Wrap: log.wrap})
	enqMust(t, writeBody(r.pending, "x", []byte("{}"), false))
	enqMust(t, unflushed{dir: r.pending, name: "x"}.Sync())
	if log.index(func(op durable.Op) bool { return op.Op == durable.OpSync && op.Name == "x" }) < 0 {
		t.Error("it was not flushed")
	}
	log.failWith(func(op durable.Op) error {
		if op.Op == durable.OpSync {
			return syscall.EIO
		}
		return nil
	})
	enqIs(t, unflushed{dir: r.pending, name: "x"}.Sync(), syscall.EIO)
}
