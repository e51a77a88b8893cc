package durable

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// against runs two ways to do one thing in turn, so that both meet the same
// noise, and reports the median time of the second divided by the first's: 1
// is "costs nothing beside the system calls".
func against(b *testing.B, ours, bare func(i int) error) {
	var a, c []time.Duration
	for i := 0; b.Loop(); i++ {
		t0 := time.Now()
		if err := ours(i); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if err := bare(i); err != nil {
			b.Fatal(err)
		}
		a = append(a, t1.Sub(t0))
		c = append(c, time.Since(t1))
	}
	slices.Sort(a)
	slices.Sort(c)
	mid := len(a) / 2
	b.ReportMetric(float64(c[mid])/float64(a[mid]), "bare/ours")
	b.ReportMetric(1/a[mid].Seconds(), "ours/s")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkAgainstBareCalls(b *testing.B) {
	d := testDir(b)
	fd := under(d).(*osDir).h.fd
	data := make([]byte, 700)
	write := func(fd int, temp string, sync bool) error {
		f, err := unix.Openat(fd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		if _, err := unix.Write(f, data); err != nil {
			return err
		}
		if sync {
			if err := unix.Fdatasync(f); err != nil {
				return err
			}
		}
		return unix.Close(f)
	}
	b.Run("write+sync+rename+syncdir", func(b *testing.B) {
		against(b, func(i int) error {
			return WriteFile(d, fmt.Sprintf("a%d", i%100), data, 0o600)
		}, func(i int) error {
			if err := write(fd, ".temp", true); err != nil {
				return err
			}
			if err := unix.Renameat(fd, ".temp", fd, fmt.Sprintf("b%d", i%100)); err != nil {
				return err
			}
			return unix.Fsync(fd)
		})
	})
	b.Run("write+rename", func(b *testing.B) {
		against(b, func(i int) error {
			temp := TempName("x")
			f, err := d.Create(temp, 0o600)
			if err != nil {
				return err
			}
			if _, err := f.Write(data); err != nil {
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
			return d.Rename(temp, d, fmt.Sprintf("a%d", i%100))
		}, func(i int) error {
			if err := write(fd, ".temp", false); err != nil {
				return err
			}
			return unix.Renameat(fd, ".temp", fd, fmt.Sprintf("b%d", i%100))
		})
	})
	put(b, d, "r0", "x")
	put(b, d, "s0", "x")
	b.Run("rename", func(b *testing.B) {
		against(b, func(i int) error {
			if i%2 == 0 {
				return d.Rename("r0", d, "r1")
			}
			return d.Rename("r1", d, "r0")
		}, func(i int) error {
			if i%2 == 0 {
				return unix.Renameat(fd, "s0", fd, "s1")
			}
			return unix.Renameat(fd, "s1", fd, "s0")
		})
	})
	b.Run("readfile", func(b *testing.B) {
		buf := make([]byte, 4096)
		against(b, func(int) error {
			_, _, err := d.ReadFile("a0", 1<<20)
			return err
		}, func(int) error {
			f, err := unix.Openat(fd, "a0", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			var st unix.Stat_t
			if err := unix.Fstat(f, &st); err != nil {
				return err
			}
			if _, err := unix.Read(f, buf); err != nil {
				return err
			}
			return unix.Close(f)
		})
	})
	b.Run("lock+unlock", func(b *testing.B) {
		against(b, func(int) error {
			unlock, err := d.Lock(context.Background(), ".lock")
			if err == nil {
				unlock()
			}
			return err
		}, func(int) error {
			f, err := unix.Openat(fd, ".lock", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
			if err != nil {
				return err
			}
			if err := unix.Flock(f, unix.LOCK_EX); err != nil {
				return err
			}
			return unix.Close(f)
		})
	})
}

func BenchmarkList(b *testing.B) {
	d := testDir(b)
	const n = 20_000
	for i := range n {
		must(b, d.Mkdir(fmt.Sprintf("task-%06d.json", i), 0o700))
	}
	b.Run("Each", func(b *testing.B) {
		for b.Loop() {
			must(b, d.Each(func(Entry) bool { return true }))
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds()/1e6, "Mnames/s")
	})
	b.Run("first-64", func(b *testing.B) {
		for b.Loop() {
			k := 0
			must(b, d.Each(func(Entry) bool { k++; return k < 64 }))
		}
	})
}

func BenchmarkLockContended(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("%d-goroutines", n), func(b *testing.B) {
			d := testDir(b)
			var wg sync.WaitGroup
			var left, longest atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			for range n {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						start := time.Now()
						unlock, err := d.Lock(context.Background(), ".lock")
						if err != nil {
							b.Error(err)
							return
						}
						wait := int64(time.Since(start))
						for {
							old := longest.Load()
							if wait <= old || longest.CompareAndSwap(old, wait) {
								break
							}
						}
						_, _ = d.Exists("x")
						unlock()
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(longest.Load())/1e6, "longest-ms")
		})
	}
}
