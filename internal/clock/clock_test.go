package clock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestFakeFiresInOrder(t *testing.T) {
	f := NewFake(start)
	var fired []string
	timers := map[string]Timer{"c": f.NewTimer(3 * time.Second), "a": f.NewTimer(time.Second), "late": f.NewTimer(time.Hour), "b": f.NewTimer(2 * time.Second)}
	f.Advance(10 * time.Second)
	at := map[string]time.Time{}
	for name, timer := range timers {
		select {
		case at[name] = <-timer.C():
			fired = append(fired, name)
		default:
		}
	}
	slices.SortFunc(fired, func(a, b string) int { return at[a].Compare(at[b]) })
	if !slices.Equal(fired, []string{"a", "b", "c"}) || !at["a"].Equal(start.Add(time.Second)) || !at["c"].Equal(start.Add(3*time.Second)) {
		t.Errorf("%v %v", fired, at)
	}
	if !f.Now().Equal(start.Add(10 * time.Second)) {
		t.Error(f.Now())
	}
	if !timers["late"].Stop() || timers["late"].Stop() || timers["a"].Stop() {
		t.Error("Stop does not say whether the timer ran")
	}
	timers["a"].Reset(time.Second)
	if timers["b"].Reset(0) {
		t.Error("Reset of a fired timer says that it ran")
	}
	<-timers["b"].C()
	f.Advance(time.Second - 1)
	select {
	case <-timers["a"].C():
		t.Error("fired early")
	default:
	}
	f.Advance(1)
	<-timers["a"].C()
	// A value that was not received is gone after Stop and Reset.
	timers["a"].Reset(time.Second)
	f.Advance(time.Second)
	timers["a"].Reset(time.Second)
	select {
	case <-timers["a"].C():
		t.Error("an old value")
	default:
	}
}

func TestStepMovesTheWallOnly(t *testing.T) {
	f := NewFake(start)
	timer := f.NewTimer(time.Minute)
	before := Elapsed(f)
	f.Step(10 * time.Minute)
	f.Step(-20 * time.Minute)
	if Elapsed(f) != before || !f.Now().Equal(start.Add(-10*time.Minute)) {
		t.Errorf("%v, %v", Elapsed(f), f.Now())
	}
	f.Advance(time.Minute - 1)
	select {
	case <-timer.C():
		t.Error("a step fired a timer")
	default:
	}
	f.Advance(1)
	<-timer.C()
	if Elapsed(f)-before != time.Minute || Since(f, start) != -9*time.Minute {
		t.Errorf("%v, %v", Elapsed(f), Since(f, start))
	}
}

func TestFakeWithManyWaiters(t *testing.T) {
	f := NewFake(start)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := Sleep(ctx, f, time.Duration(i+1)*time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	if err := f.BlockUntil(ctx, 50); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		f.Advance(time.Second)
	}
	wg.Wait()
	done, stop := context.WithCancelCause(ctx)
	cause := errors.New("enough")
	stop(cause)
	if err := f.BlockUntil(done, 1); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestSleep(t *testing.T) {
	cause := errors.New("told to stop")
	for name, c := range map[string]Clock{"real": Real(), "fake": NewFake(start)} {
		ctx, cancel := context.WithCancelCause(context.Background())
		if err := Sleep(ctx, c, -1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel(cause)
		if err := Sleep(ctx, c, time.Hour); !errors.Is(err, cause) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Sleep(ctx, c, 0); !errors.Is(err, cause) {
			t.Errorf("%s, no time to sleep: %v", name, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		t0 := time.Now()
		if err := Sleep(t.Context(), Real(), time.Hour); err != nil || time.Since(t0) != time.Hour {
			t.Errorf("%v, %v", err, time.Since(t0))
		}
		timer := Real().NewTimer(time.Hour)
		if !timer.Stop() || timer.Reset(time.Second) {
			t.Error("real timer")
		}
		<-timer.C()
	})
}

func TestElapsedOfTheMachine(t *testing.T) {
	a := Elapsed(Real())
	if b := Elapsed(Real()); b < a || a <= 0 {
		t.Errorf("%v, %v", a, b)
	}
	fixed := struct{ Clock }{NewFake(start)}
	if Elapsed(fixed) != start.Sub(started) {
		t.Error("a clock of another make")
	}
}

func TestFormat(t *testing.T) {
	for in, want := range map[time.Time]string{
		start: "2026-01-02T03:04:05.000000Z",
		start.Add(1500 * time.Microsecond).In(time.FixedZone("x", 5*3600+1800)): "2026-01-02T03:04:05.001500Z",
	} {
		got := Format(in)
		if back, err := time.Parse(time.RFC3339, got); got != want || err != nil || !back.Equal(in) {
			t.Errorf("%s, %v, %v", got, back, err)
		}
	}
	if !(Format(start) < Format(start.Add(time.Millisecond)) && Format(start.Add(time.Millisecond)) < Format(start.Add(time.Second))) {
		t.Error("the order of the texts is not that of the times")
	}
}
