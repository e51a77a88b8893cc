package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/proc"
	"beeyard/worker"
)

// drainWith works n tasks with a handler and gives the time for each.
func drainWith(e *env, name string, h worker.Handler, n, slots int) (perTask float64, err error) {
	ctx := context.Background()
	r, err := openBench(filepath.Join(e.folder(name), "run"), nil)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if err := fill(ctx, r, "t", n); err != nil {
		return 0, err
	}
	w, err := worker.New(r, worker.Config{ID: "bench", Handler: h, Concurrency: slots, UntilEmpty: true}, clock.Real())
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	sum, err := w.Run(ctx)
	took := time.Since(begun).Seconds()
	if err == nil && sum.By[beeyard.OutcomeDone] != n {
		err = fmt.Errorf("%d of %d done", sum.By[beeyard.OutcomeDone], n)
	}
	return took / float64(n), err
}

// bareExec runs the handler n times from as many goroutines as slots, with the
// task on stdin and nothing else.
func bareExec(path string, n, slots int) (perTask float64, err error) {
	var mu sync.Mutex
	left := n
	begun := time.Now()
	var wg sync.WaitGroup
	errs := make(chan error, slots)
	for range slots {
		wg.Go(func() {
			for {
				mu.Lock()
				left--
				more := left >= 0
				mu.Unlock()
				if !more {
					return
				}
				if err := exec.Command(path).Run(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return time.Since(begun).Seconds() / float64(n), <-errs
}

// benchHandler is the worker's whole overhead a task against bare fork and exec.
func benchHandler(e *env) ([]result, error) {
	path := filepath.Join(e.folder("handler"), "handler.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
		return nil, err
	}
	var out []result
	env := worker.Environment(os.LookupEnv, nil)
	for _, c := range []struct {
		slots int
		goal  float64
	}{{8, 2.0}, {1, 2.8}} {
		n := max(400/e.n, 40)
		var ratios []float64
		var bareTime float64
		for range 5 {
			bare, err := bareExec(path, n, c.slots)
			if err != nil {
				return nil, err
			}
			ours, err := drainWith(e, "drain", &worker.Process{Path: path, Env: env}, n, c.slots)
			if err != nil {
				return nil, err
			}
			ratios, bareTime = append(ratios, ours/bare), bare
		}
		level, _ := proc.Level()
		out = append(out, result{what: fmt.Sprintf("worker with a #!/bin/sh handler, %d slots: times bare fork and exec", c.slots),
			got: median(ratios), goal: c.goal, note: fmt.Sprintf("bare %.2f ms a task; process control: %s", bareTime*1e3, level)})
	}
	return out, nil
}

// stay is a slot that answers at once: what is left is the queue.
type stay struct{}

func (stay) Check() error               { return nil }
func (stay) Open() (worker.Slot, error) { return stay{}, nil }
func (stay) Close() error               { return nil }
func (stay) Do(context.Context, worker.Job) (worker.Done, error) {
	return worker.Done{}, nil
}

// benchDrain: what a task costs must not grow with the number of tasks.
func benchDrain(e *env) ([]result, error) {
	small, large := 1000, 100000/e.n
	var ratios []float64
	var a, b float64
	var err error
	for range 3 {
		if a, err = drainWith(e, "small", stay{}, small, 8); err != nil {
			return nil, err
		}
		if len(ratios) > 0 && e.n == 1 {
			break // one large drain is enough; the small ones are cheap
		}
		if b, err = drainWith(e, "large", stay{}, large, 8); err != nil {
			return nil, err
		}
		ratios = append(ratios, b/a)
	}
	return []result{{what: fmt.Sprintf("cost of a task when draining %d against %d", large, small), got: median(ratios), goal: 1.3,
		note: fmt.Sprintf("%.0f/s and %.0f/s", 1/b, 1/a)}}, nil
}

// benchLatency: from enqueue to the handler's start, an idle worker.
func benchLatency(e *env) ([]result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := filepath.Join(e.folder("latency"), "run")
	r, err := openBench(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	other, err := openBench(dir, nil)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	started := make(chan time.Time, 1)
	w, err := worker.New(r, worker.Config{ID: "bench", Handler: notice{started}}, clock.Real())
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { _, err := w.Run(ctx); ended <- err }()
	var all []float64
	for i := range max(300/e.n, 20) {
		time.Sleep(15 * time.Millisecond) // idle again
		begun := time.Now()
		if _, err := other.Enqueue(ctx, []*beeyard.Task{newTask(fmt.Sprintf("t%06d", i))}, beeyard.EnqueueOptions{}); err != nil {
			return nil, err
		}
		all = append(all, (<-started).Sub(begun).Seconds()*1e3)
	}
	cancel()
	if err := <-ended; err != nil {
		return nil, err
	}
	return []result{
		{what: "enqueue to handler start, idle worker: median", got: median(all), goal: 5, unit: " ms"},
		{what: "enqueue to handler start, idle worker: p99", got: quantile(all, 0.99), goal: 25, unit: " ms"},
	}, nil
}

type notice struct{ at chan time.Time }

func (n notice) Check() error               { return nil }
func (n notice) Open() (worker.Slot, error) { return n, nil }
func (n notice) Close() error               { return nil }
func (n notice) Do(context.Context, worker.Job) (worker.Done, error) {
	n.at <- time.Now()
	return worker.Done{}, nil
}

// benchLines: with a handler that stays, a task costs little more than its
// renames and flushes. The handler is this program itself.
func benchLines(e *env) ([]result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n, slots := max(4000/e.n, 200), 8
	h := &worker.Lines{Path: self, Args: []string{"-answer-lines"}, Env: os.Environ(), Grace: time.Second, Clock: clock.Real()}
	var ratios []float64
	var bare, ours float64
	for range 3 {
		if bare, err = bareSettles(e, n, slots); err != nil {
			return nil, err
		}
		if ours, err = drainWith(e, "lines", h, n, slots); err != nil {
			return nil, err
		}
		ratios = append(ratios, ours/bare)
	}
	return []result{{what: "handler that stays, 8 slots: times bare renames and flushes", got: median(ratios), goal: 1.5,
		note: fmt.Sprintf("%.0f/s against %.0f/s", 1/ours, 1/bare)}}, nil
}

// bareSettles does the renames and flushes of n tasks from several goroutines
// and nothing else: claim, record, decision, publish, unlink.
func bareSettles(e *env, n, slots int) (float64, error) {
	dir := e.folder("bare-settles")
	for _, d := range []string{"pending", "d", "done"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return 0, err
		}
	}
	body, err := newTask("x").Encode()
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, "pending", fmt.Sprint(i)), body, 0o600); err != nil {
			return 0, err
		}
	}
	return bareLoop(dir, body, n, slots)
}
