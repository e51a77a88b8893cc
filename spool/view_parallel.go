package spool

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls f(0) … f(n-1) from a bounded number of goroutines and waits
// for all. Looking must leave the disk to those who work. The first error ends
// it, as does ctx.
func parallel(ctx context.Context, n int, f func(i int) error) error {
	const chunk = 16
	workers := min(2*runtime.GOMAXPROCS(0), 16, (n+chunk-1)/chunk)
	if workers <= 1 {
		for i := range n {
			if i%chunk == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		once  sync.Once
		first error
		stop  atomic.Bool
	)
	fail := func(err error) {
		once.Do(func() { first = err })
		stop.Store(true)
	}
	for range workers {
		wg.Go(func() {
			for !stop.Load() {
				from := int(next.Add(chunk)) - chunk
				if from >= n {
					return
				}
				if ctx.Err() != nil {
					fail(context.Cause(ctx))
					return
				}
				for i := from; i < min(from+chunk, n); i++ {
					if err := f(i); err != nil {
						fail(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return first
}
