package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
	"beeyard/open"
	"beeyard/spool"
)

// payload is 700 bytes, as the tasks of such systems carry.
var payload = json.RawMessage(`{"text": "` + strings.Repeat("x", 686) + `"}`)

func newTask(id string) *beeyard.Task { return &beeyard.Task{ID: id, Type: "bench", Payload: payload} }

func openBench(dir string, wrap func(durable.Dir) durable.Dir) (*spool.Run, error) {
	host, err := open.Host()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "status.json")); err != nil {
		r, err := spool.Create(dir, beeyard.Checkpoint{}, spool.Options{Host: host}, clock.Real())
		if err != nil {
			return nil, err
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return spool.Open(dir, spool.Options{Host: host, Wrap: wrap}, clock.Real())
}

// pairs alternates two loops and gives the median of b's time over a's: a
// machine whose speed drifts drifts for both.
func pairs(rounds int, a, b func(round int) error) (ratio, aTime float64, err error) {
	var ratios, times []float64
	for i := range rounds + 1 {
		begun := time.Now()
		if err := a(i); err != nil {
			return 0, 0, err
		}
		at := time.Since(begun).Seconds()
		begun = time.Now()
		if err := b(i); err != nil {
			return 0, 0, err
		}
		bt := time.Since(begun).Seconds()
		if i > 0 { // the first warms both up
			ratios, times = append(ratios, bt/at), append(times, at)
		}
	}
	return median(ratios), median(times), nil
}

func benchEnqueue(e *env) ([]result, error) {
	ctx := context.Background()
	dir, bare := filepath.Join(e.folder("enqueue"), "run"), e.folder("bare")
	var t trace
	traced, err := openBench(dir, t.wrap)
	if err != nil {
		return nil, err
	}
	put := func(r *spool.Run, id string) error {
		_, err := r.Enqueue(ctx, []*beeyard.Task{newTask(id)}, beeyard.EnqueueOptions{})
		return err
	}
	for _, id := range []string{"warm-0000001", "warm-0000002"} {
		if err := put(traced, id); err != nil {
			return nil, err
		}
	}
	t.start()
	const id = "trace-000000"
	if err := put(traced, id); err != nil {
		return nil, err
	}
	ops := t.stop()
	body, err := os.ReadFile(filepath.Join(dir, "pending", id+".json"))
	if err != nil {
		return nil, err
	}
	if err := traced.Close(); err != nil {
		return nil, err
	}
	r, err := openBench(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	play := newReplay(dir, bare, id, body)
	n := max(400/e.n, 20)
	ratio, took, err := pairs(7, func(round int) error {
		for i := range n {
			if err := put(r, fmt.Sprintf("e%02d-%08d", round, i)); err != nil {
				return err
			}
		}
		return nil
	}, func(round int) error {
		for i := range n {
			if err := play.play(ops, fmt.Sprintf("b%02d-%08d", round, i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []result{{what: "durable enqueue: bare loop's time / ours", got: ratio, goal: 0.8, least: true,
		note: fmt.Sprintf("%.0f/s; %s", float64(n)/took, calls(ops))}}, nil
}

func benchBatch(e *env) ([]result, error) {
	ctx := context.Background()
	n := 10000 / e.n
	var counter *durable.Counter
	one, err := openBench(filepath.Join(e.folder("one"), "run"), nil)
	if err != nil {
		return nil, err
	}
	defer one.Close()
	many, err := openBench(filepath.Join(e.folder("many"), "run"), func(d durable.Dir) durable.Dir {
		c, k := durable.Counting(d)
		counter = k
		return c
	})
	if err != nil {
		return nil, err
	}
	defer many.Close()
	var tasks []*beeyard.Task
	for i := range n {
		tasks = append(tasks, newTask(fmt.Sprintf("t%08d", i)))
	}
	begun := time.Now()
	for _, t := range tasks {
		if _, err := one.Enqueue(ctx, []*beeyard.Task{t}, beeyard.EnqueueOptions{}); err != nil {
			return nil, err
		}
	}
	single := time.Since(begun).Seconds()
	before := counter.Syncs()
	begun = time.Now()
	if _, err := many.Enqueue(ctx, tasks, beeyard.EnqueueOptions{}); err != nil {
		return nil, err
	}
	batch := time.Since(begun).Seconds()
	syncs := counter.Syncs() - before
	cost := fsyncCost(e)
	out := []result{{what: "batch enqueue: tasks for one flush", got: float64(n) / float64(syncs), goal: 64, least: true,
		note: fmt.Sprintf("%d flushes for %d tasks", syncs, n)}}
	r := result{what: "batch enqueue: times faster than one by one", got: single / batch, goal: 3, least: true,
		note: fmt.Sprintf("%.0f/s against %.0f/s; an fsync costs %.0f µs", float64(n)/batch, float64(n)/single, cost*1e6)}
	if cost < 100e-6 {
		r.goal, r.note = 1, r.note+" (under 100 µs: the goal of 3 is for dearer ones)"
	}
	return append(out, r), nil
}

// fsyncCost is the median time of a flush of a small new file.
func fsyncCost(e *env) float64 {
	dir := e.folder("fsync")
	var all []float64
	for i := range 100 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			fatal(err)
		}
		if _, err := f.Write(payload); err != nil {
			fatal(err)
		}
		begun := time.Now()
		if err := f.Sync(); err != nil {
			fatal(err)
		}
		all = append(all, time.Since(begun).Seconds())
		if err := f.Close(); err != nil {
			fatal(err)
		}
	}
	return median(all)
}
