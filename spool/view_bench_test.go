package spool

import (
	"testing"

	"beeyard"
)

// viewMany has 100,000 tasks in one folder, half of the pending ones blocked.
func viewMany(b *testing.B, folder string, outcome beeyard.Outcome) *Run {
	r := viewRun(b, Options{})
	for i := range 100_000 {
		task := viewTask(viewName(i))
		task.Ext.Outcome, task.Ext.Priority = outcome, i%5
		if folder == dirPending && i%2 == 1 {
			task.DependsOn = []string{viewName(i - 1)}
		}
		viewPut(b, r, folder, task)
	}
	return r
}

func viewBench(b *testing.B, r *Run, q beeyard.Query) {
	ctx := viewContext(b)
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Counts(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			p, err := r.List(ctx, q)
			if err != nil || len(p.Tasks) != 50 {
				b.Fatal(len(p.Tasks), err)
			}
		}
	})
}

func BenchmarkViewPending(b *testing.B) {
	r := viewMany(b, dirPending, "")
	ctx := viewContext(b)
	b.Run("first counts", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := ignoreMissing(r.meta.Remove(fileIndex)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if _, err := r.Counts(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	viewBench(b, r, beeyard.Query{Limit: 50})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if _, err := r.Get(ctx, viewName(77_777)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkViewDone(b *testing.B) {
	viewBench(b, viewMany(b, dirDone, beeyard.OutcomeDone), beeyard.Query{Limit: 50})
}

func BenchmarkViewFailed(b *testing.B) {
	r := viewMany(b, dirFailed, beeyard.OutcomeFailed)
	ctx := viewContext(b)
	b.Run("first counts", func(b *testing.B) {
		for b.Loop() {
			r.view.ended.m = nil
			if _, err := r.Counts(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	viewBench(b, r, beeyard.Query{Limit: 50})
}
