package proc

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// BenchmarkOverhead prints how much dearer a #!/bin/sh handler is through this
// package than by bare fork and exec. Both are measured in turns of a few
// processes, so that a noisy machine is noisy to both; the ratio is that of
// the medians.
func BenchmarkOverhead(b *testing.B) {
	handler := b.TempDir() + "/handler"
	if err := os.WriteFile(handler, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	payload := []byte(`{"task_id":"t1","payload":{"x":1}}`)
	for _, level := range []string{"cgroup", "group"} {
		c := newController(level)
		if c.forced != nil {
			b.Logf("NOT MEASURED HERE: %v", c.forced)
			continue
		}
		plain := func() error {
			p, err := c.start(context.Background(), Spec{Path: handler, Stdin: payload, Timeout: time.Minute, Grace: time.Second})
			if err == nil {
				p.Wait()
			}
			return err
		}
		captured := func() error {
			log := NewCappedLog(discardAt{}, 0)
			defer log.Close()
			cap, err := NewCapture(log, log.Stderr())
			if err != nil {
				return err
			}
			defer cap.Close()
			p, err := c.start(context.Background(), Spec{Path: handler, Stdin: payload, Stdout: cap.Stdout(), Stderr: cap.Stderr(), Timeout: time.Minute, Grace: time.Second})
			if err == nil {
				p.Wait()
			}
			return err
		}
		for _, slots := range []int{1, 8} {
			b.Run(level+"/slots="+strconv.Itoa(slots), func(b *testing.B) { compare(b, handler, slots, plain) })
			b.Run(level+"+log/slots="+strconv.Itoa(slots), func(b *testing.B) { compare(b, handler, slots, captured) })
		}
		c.close()
	}
}

type discardAt struct{}

func (discardAt) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func bare(handler string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(handler, []string{handler}, &os.ProcAttr{Env: []string{}, Files: []*os.File{null, null, null}})
	if err == nil {
		_, err = p.Wait()
	}
	return err
}

func compare(b *testing.B, handler string, slots int, ours func() error) {
	const turn = 10
	var bareTimes, ourTimes []time.Duration
	measure := func(f func() error) time.Duration {
		runtime.GC()
		begin := time.Now()
		var wg sync.WaitGroup
		for range slots {
			wg.Go(func() {
				for range turn {
					if err := f(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(begin) / time.Duration(turn*slots)
	}
	for b.Loop() {
		bareTimes = append(bareTimes, measure(func() error { return bare(handler) }))
		ourTimes = append(ourTimes, measure(ours))
	}
	slices.Sort(bareTimes)
	slices.Sort(ourTimes)
	mb, mo := bareTimes[len(bareTimes)/2], ourTimes[len(ourTimes)/2]
	b.ReportMetric(float64(mb.Microseconds()), "bare-µs")
	b.ReportMetric(float64(mo.Microseconds()), "ours-µs")
	b.ReportMetric(float64(mo)/float64(mb), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLines is one request and its answer through a child that stays.
func BenchmarkLines(b *testing.B) {
	c := newController("auto")
	defer c.close()
	l, err := c.startLines(context.Background(), Spec{Path: "/bin/cat", Grace: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	line := []byte(`{"task_id":"t1","payload":{"x":1}}`)
	for b.Loop() {
		if _, err := l.Do(context.Background(), line, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSandbox is BenchmarkOverhead's handler by way of this binary: the
// test binary's own start is most of it.
func BenchmarkSandbox(b *testing.B) {
	c := newController("auto")
	defer c.close()
	box := &Sandbox{WriteDirs: []string{b.TempDir()}, NetworkOff: true}
	for b.Loop() {
		p, err := c.start(context.Background(), Spec{Path: "/bin/true", Sandbox: box})
		if err != nil {
			b.Fatal(err)
		}
		p.Wait()
	}
}
