package spool

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

// Another process's enqueue wakes a worker long before its poll.
func TestWaitWakesAtOnce(t *testing.T) {
	r := pickRun(t)
	other := pickAgain(t, r)
	p := pickPicker(t, r)
	for i := range 20 {
		if got := pickNext(t, p, beeyard.Filter{}); got != "" {
			t.Fatalf("took %q of nothing", got)
		}
		go func() {
			if _, err := other.Enqueue(pickContext(t), []*beeyard.Task{pickTask(i)}, beeyard.EnqueueOptions{}); err != nil {
				t.Error(err)
			}
		}()
		for got := ""; got == ""; got = pickNext(t, p, beeyard.Filter{}) {
			pickMust(t, p.wait(pickContext(t), time.Hour))
		}
	}
}

// Whatever a slot hears wakes all slots of the process; what none of them
// waited for is not lost.
func TestWaitWakesAllSlots(t *testing.T) {
	r := pickRun(t)
	p := pickPicker(t, r)
	const slots = 5
	var wg sync.WaitGroup
	var mu sync.Mutex
	var got []string
	for range slots {
		wg.Go(func() {
			for {
				if id := pickNext(t, p, beeyard.Filter{}); id != "" {
					mu.Lock()
					got = append(got, id)
					mu.Unlock()
					return
				}
				if err := p.wait(pickContext(t), time.Hour); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range slots {
		pickPut(t, r, dirPending, pickTask(i))
	}
	wg.Wait()
	if slices.Sort(got); len(slices.Compact(got)) != slots {
		t.Errorf("slots took %v", got)
	}
}

func TestWaitEndsWithContext(t *testing.T) {
	r := pickRun(t)
	p := pickPicker(t, r)
	if got := pickNext(t, p, beeyard.Filter{}); got != "" {
		t.Fatalf("took %q", got)
	}
	why := errors.New("drain")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(why) })
	if err := p.wait(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("wait ended with %v, want the context's cause", err)
	}
}

// A wait ends when the next held task comes due, and that task is the next.
func TestWaitUntilDue(t *testing.T) {
	clk := clock.NewFake(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{}, clk)
	pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(clk.Now().Add(time.Minute))), pickTask(2, pickNotBefore(clk.Now().Add(time.Hour))))
	pickPut(t, r, dirPending, pickTask(3, pickNotBefore(clk.Now().Add(2*time.Minute))))
	p := pickPicker(t, r)
	ctx := pickContext(t)
	for _, step := range []struct {
		want string
		in   time.Duration
	}{{"task-000001", time.Minute}, {"task-000003", time.Minute}, {"task-000002", 58 * time.Minute}} {
		for got := pickNext(t, p, beeyard.Filter{}); got != step.want; got = pickNext(t, p, beeyard.Filter{}) {
			if got != "" {
				t.Fatalf("took %q, want %q", got, step.want)
			}
			done := make(chan error, 1)
			go func() { done <- p.wait(ctx, 24*time.Hour) }()
			select { // a hint of our own move may come before the timer
			case err := <-done:
				pickMust(t, err)
				continue
			case <-pickTimer(ctx, clk):
			}
			clk.Advance(step.in)
			pickMust(t, <-done)
		}
	}
}

// pickTimer is closed once something waits for clk.
func pickTimer(ctx context.Context, clk *clock.Fake) <-chan struct{} {
	c := make(chan struct{})
	ctx, cancel := context.WithTimeout(ctx, pickWait)
	go func() {
		defer cancel()
		defer close(c)
		_ = clk.BlockUntil(ctx, 1)
	}()
	return c
}

// Where events do not come for every folder that is said, once.
func TestWaitSaysThatItIsDeaf(t *testing.T) {
	var mu sync.Mutex
	var said []string
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{Warn: func(m string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, m)
	}}, clock.Real())
	failed := r.failed
	r.failed = absent{failed.Path()} // gives no events
	defer func() { r.failed = failed }()
	p := pickPicker(t, r)
	pickPut(t, r, dirPending, pickTask(1))
	for range 3 {
		pickMust(t, p.wait(pickContext(t), time.Millisecond))
	}
	if got := pickNext(t, p, beeyard.Filter{}); got != "task-000001" {
		t.Errorf("took %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) != 1 || !strings.Contains(said[0], "poll") {
		t.Errorf("said %q, want one line about the poll", said)
	}
}

func TestPickCloseIsFinal(t *testing.T) {
	r := pickRun(t)
	for range 50 {
		p := r.newPicker()
		var wg sync.WaitGroup
		wg.Go(func() { _, _, _ = p.next(t.Context(), beeyard.Filter{}) })
		pickMust(t, p.close())
		pickMust(t, p.close())
		wg.Wait()
		if _, _, err := p.next(t.Context(), beeyard.Filter{}); !errors.Is(err, errPickerClosed) {
			t.Fatalf("next after close: %v", err)
		}
		if err := p.wait(t.Context(), time.Hour); !errors.Is(err, errPickerClosed) {
			t.Fatalf("wait after close: %v", err)
		}
	}
}
