package spool

import (
	"fmt"
	"path/filepath"
	"testing"

	"beeyard"
	"beeyard/internal/durable"
)

// A batch costs two flushes, whatever its size; below 16 files one each and
// one for the names.
func TestEnqueueBatchFlushes(t *testing.T) {
	for _, c := range []struct{ n, held, syncs, syncfs int }{
		{1, 0, 1, 0}, {15, 0, 15, 0}, {16, 0, 0, 1}, {64, 0, 0, 1}, {300, 0, 0, 1}, {300, 10, 0, 1},
	} {
		var counter *durable.Counter
		r := enqRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
			d, counter = durable.Counting(d)
			return d
		}})
		tasks := enqTasks("t", c.n)
		for i := range c.held {
			tasks[i].Ext.Hold = &beeyard.Hold{}
		}
		counter.Reset()
		_, err := r.Enqueue(enqContext(t), tasks, beeyard.EnqueueOptions{})
		enqMust(t, err)
		dirs := 1
		if c.held > 0 {
			dirs = 2
		}
		if got := [3]int{counter.Of(durable.OpSync), counter.Of(durable.OpSyncFS), counter.Of(durable.OpSyncDir)}; got != [3]int{c.syncs, c.syncfs, dirs} {
			t.Errorf("%d tasks: fdatasync, syncfs, fsync of folders %v, want %v", c.n, got, [3]int{c.syncs, c.syncfs, dirs})
		}
		if c.n >= 64 && counter.Syncs()*64 > c.n+2*64 {
			t.Errorf("%d tasks cost %d flushes, more than one for 64", c.n, counter.Syncs())
		}
		if locks := counter.Of(durable.OpLock); locks != 1 {
			t.Errorf("%d tasks: the lock was taken %d times", c.n, locks)
		}
	}
}

// One enqueue costs these operations and no more.
func TestEnqueueOneCosts(t *testing.T) {
	var counter *durable.Counter
	r := enqRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
		d, counter = durable.Counting(d)
		return d
	}})
	enqueueOne(t, r, enqTask("first"))
	counter.Reset()
	enqueueOne(t, r, enqTask("second"))
	most := map[string]int{
		durable.OpCreate: 1, durable.OpSync: 1, durable.OpClose: 1, // the body
		durable.OpWrite:      2, // the body, the event
		durable.OpLock:       1,
		durable.OpExists:     4,                       // pending, held, failed, done
		durable.OpEach:       1,                       // claimed
		durable.OpOpenDir:    2,                       // archive and fold marks, not there
		durable.OpStat:       3,                       // pruned list, checkpoint
		durable.OpRenameExcl: 1, durable.OpSyncDir: 1, // the name
	}
	for op, n := range counter.All() {
		if n > most[op] {
			t.Errorf("%s: %d, want at most %d", op, n, most[op])
		}
	}
}

// A name never comes before its data.
func TestEnqueueFlushesDataBeforeNames(t *testing.T) {
	for _, n := range []int{1, 5, 50} {
		log := &enqLog{}
		r := enqRun(t, Options{Wrap: log.wrap})
		log.failWith(nil)
		_, err := r.Enqueue(enqContext(t), enqTasks("T", n), beeyard.EnqueueOptions{})
		enqMust(t, err)
		lastWrite, lastFlush, firstName, flushNames := -1, -1, -1, -1
		for i, op := range log.ops {
			switch {
			case op.Op == durable.OpWrite && filepath.Base(op.Dir) != dirEvents:
				lastWrite = i
			case op.Op == durable.OpSync, op.Op == durable.OpSyncFS:
				lastFlush = i
			case op.Op == durable.OpRenameExcl && firstName < 0:
				firstName = i
			case op.Op == durable.OpSyncDir && op.Dir == r.pending.Path():
				flushNames = i
			}
		}
		if lastWrite > lastFlush || lastFlush > firstName || firstName > flushNames || firstName < 0 {
			t.Errorf("%d tasks: last write %d, last flush %d, first name %d, flush of names %d", n, lastWrite, lastFlush, firstName, flushNames)
		}
	}
}

func BenchmarkEnqueueOne(b *testing.B) {
	r := enqRun(b, Options{})
	tasks := enqTasks("t", b.N)
	b.ResetTimer()
	for i := range b.N {
		if _, err := r.Enqueue(b.Context(), tasks[i:i+1], beeyard.EnqueueOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEnqueueBareCalls makes the calls of BenchmarkEnqueueOne and nothing
// else: what an enqueue could cost at best.
func BenchmarkEnqueueBareCalls(b *testing.B) {
	r := enqRun(b, Options{})
	a, err := r.additions(enqTasks("x", 1), beeyard.EnqueueOptions{})
	enqMust(b, err)
	body := a[0].body
	b.ResetTimer()
	for i := range b.N {
		if err := enqBareCalls(b, r, fmt.Sprintf("t%05d", i), body); err != nil {
			b.Fatal(err)
		}
	}
}

func enqBareCalls(b *testing.B, r *Run, id string, body []byte) error {
	temp, name := ".tmp~"+id, id+".json"
	if err := writeBody(r.pending, temp, body, true); err != nil {
		return err
	}
	unlock, err := r.root.Lock(b.Context(), fileQueueLock)
	if err != nil {
		return err
	}
	for _, d := range []durable.Dir{r.pending, r.held, r.failed, r.done} {
		if _, err := d.Exists(name); err != nil {
			return err
		}
	}
	if err := r.claimed.Each(func(durable.Entry) bool { return true }); err != nil {
		return err
	}
	_, _ = r.meta.OpenDir(dirArchive)
	_, _ = r.meta.OpenDir(dirFolded)
	_, _ = r.meta.Stat(filePruned)
	_, _ = r.root.Stat(fileStatus)
	if err := r.pending.RenameExcl(temp, r.pending, name); err != nil {
		return err
	}
	unlock()
	return r.pending.Sync()
}

func BenchmarkEnqueueBatch10000(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		r := enqRun(b, Options{})
		tasks := enqTasks("t", 10000)
		b.StartTimer()
		if _, err := r.Enqueue(b.Context(), tasks, beeyard.EnqueueOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10000, "ns/task")
}

func BenchmarkEnqueueIfAbsentAll(b *testing.B) {
	r := enqRun(b, Options{})
	tasks := enqTasks("t", 10000)
	if _, err := r.Enqueue(b.Context(), tasks, beeyard.EnqueueOptions{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.Enqueue(b.Context(), tasks, beeyard.EnqueueOptions{IfAbsent: true}); err != nil {
			b.Fatal(err)
		}
	}
}
