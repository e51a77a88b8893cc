package spool

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// The figures that queue.md and reliability.md name. Run them by
//
//	TMPDIR=/dev/shm go test -run NONE -bench Pick -benchtime 10x ./spool
//
// Each reports the least wall and CPU time of its rounds: on a machine that
// others use, the mean is theirs.

// pickMeter keeps the least of what rounds took.
type pickMeter struct{ wall, cpu time.Duration }

func pickCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m *pickMeter) round(f func()) {
	cpu, wall := pickCPU(), time.Now()
	f()
	c, w := pickCPU()-cpu, time.Since(wall)
	if m.wall == 0 || w < m.wall {
		m.wall = w
	}
	if m.cpu == 0 || c < m.cpu {
		m.cpu = c
	}
}

func (m *pickMeter) report(b *testing.B, per int, unit time.Duration, name string) {
	b.ReportMetric(float64(m.wall)/float64(unit)/float64(per), name)
	b.ReportMetric(float64(m.cpu)/float64(unit)/float64(per), "cpu-"+name)
}

const pickMany = 100_000

// pickStrict makes the index complete.
func pickStrict(t testing.TB, r *Run) {
	t.Helper()
	pickMust(t, r.pickOnce(pickContext(t), beeyard.Filter{Strict: true}, func(string) (bool, error) { return true, nil }))
}

// BenchmarkPickListMatch lists 100,000 names and compares each with the index.
func BenchmarkPickListMatch(b *testing.B) {
	r := pickRun(b)
	pickFill(b, r, dirPending, pickMany)
	pickStrict(b, r)
	var m pickMeter
	for b.Loop() {
		m.round(func() {
			x := r.openIndex()
			hits := 0
			pickMust(b, durable.EachName(r.pending, func(name []byte, ino uint64, _ fs.FileMode) bool {
				if id, ok := idOfName(name); ok && x.find(id, ino) >= 0 {
					hits++
				}
				return true
			}))
			x.close()
			if hits != pickMany {
				b.Fatalf("%d of %d names found", hits, pickMany)
			}
		})
	}
	m.report(b, 1, time.Millisecond, "ms")
}

// BenchmarkPickOnce is one one-shot choice among 100,000, without the start of
// a process: cold is without an index.
func BenchmarkPickOnce(b *testing.B) {
	r := pickRun(b)
	pickFill(b, r, dirPending, pickMany)
	for _, strict := range []bool{false, true} {
		for _, cold := range []bool{true, false} {
			b.Run(fmt.Sprintf("strict=%v/cold=%v", strict, cold), func(b *testing.B) {
				pickStrict(b, r)
				var m pickMeter
				for b.Loop() {
					if cold {
						pickMust(b, os.Remove(filepath.Join(r.path, dirMeta, fileIndex)))
					}
					m.round(func() {
						pickMust(b, r.pickOnce(b.Context(), beeyard.Filter{Strict: strict}, func(string) (bool, error) { return true, nil }))
					})
				}
				m.report(b, 1, time.Millisecond, "ms")
			})
		}
	}
}

// BenchmarkPickDrain is the cost of next and of the claim's rename for each of
// n tasks, their reading included, and the memory of a list of n.
func BenchmarkPickDrain(b *testing.B) {
	for _, n := range []int{1000, pickMany} {
		for _, cold := range []bool{true, false} {
			b.Run(fmt.Sprintf("%d/cold=%v", n, cold), func(b *testing.B) {
				var m pickMeter
				var heap uint64
				for b.Loop() {
					r := pickRun(b)
					pickFill(b, r, dirPending, n)
					if !cold {
						pickStrict(b, r)
					}
					m.round(func() { pickDrain(b, r, n) })
					heap = pickHeap(b, r)
				}
				m.report(b, n, time.Microsecond, "us/task")
				b.ReportMetric(float64(heap)/(1<<20), "MB")
			})
		}
	}
}

func pickDrain(b *testing.B, r *Run, n int) {
	p := r.newPicker()
	for range n {
		id, ok, err := p.next(b.Context(), beeyard.Filter{})
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
		pickMust(b, r.pending.Rename(bodyName(id), r.artifacts, bodyName(id)))
	}
	pickMust(b, p.close())
}

// pickHeap puts the drained tasks back and measures what a list of them holds.
func pickHeap(b *testing.B, r *Run) uint64 {
	pickMust(b, r.artifacts.Each(func(e durable.Entry) bool {
		pickMust(b, r.artifacts.Rename(e.Name, r.pending, e.Name))
		return true
	}))
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	p := r.newPicker()
	if _, _, err := p.next(b.Context(), beeyard.Filter{}); err != nil {
		b.Fatal(err)
	}
	after := heap()
	pickMust(b, p.close())
	return after - before
}

// BenchmarkPickWake is the time from another process's publishing rename to the
// moment at which a worker that waited has chosen the task.
func BenchmarkPickWake(b *testing.B) {
	r := pickRun(b)
	other := pickAgain(b, r)
	p := pickPicker(b, r)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		done := make(chan time.Time, 1)
		go func() {
			id := ""
			for ; id == ""; id = pickNext(b, p, beeyard.Filter{}) {
				if err := p.wait(b.Context(), time.Hour); err != nil {
					b.Error(err)
				}
			}
			done <- time.Now()
		}()
		time.Sleep(2 * time.Millisecond) // until it waits
		task := pickTask(i)
		data, err := task.Encode()
		pickMust(b, err)
		pickMust(b, writeBody(other.pending, ".wake-temp", data, false))
		began := time.Now()
		pickMust(b, other.pending.Rename(".wake-temp", other.pending, bodyName(task.ID)))
		took = append(took, (<-done).Sub(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "us/median")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "us/p90")
}
