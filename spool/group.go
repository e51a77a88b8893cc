package spool

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"beeyard"
	"beeyard/internal/durable"
)

// group settles what arrives together under shared flushes (group commit).
// There is no goroutine and no delay. A few settles run side by side, since the
// kernel itself groups flushes that wait together; who comes while that many are
// at work joins the next batch, and one of them leads it. Alone, a settle costs
// what it costs without a group.
type group struct {
	run *Run

	mu      sync.Mutex
	waiting []*member
	leaders int // batches under way
}

type member struct {
	p     *pass
	ctx   context.Context
	err   error
	done  chan struct{}
	lead  chan struct{} // closed when this one is to lead batch
	batch []*member
}

const (
	// groupLeaders is how many batches are under way at once: measured, flushes
	// side by side gain up to about this many.
	groupLeaders = 8
	// groupMost bounds a batch, so that its first member does not wait for ever.
	groupMost = 256
)

// settle takes p through record, decision and finish. Its answer comes when
// everything that p's claim promises is durable. ctx does not interrupt a
// batch under way: half a settle answered would be a settle unanswered.
func (g *group) settle(ctx context.Context, p *pass) error {
	m := &member{p: p, ctx: context.WithoutCancel(ctx)}
	batch := []*member{m}
	g.mu.Lock()
	if g.leaders < groupLeaders {
		g.leaders++
		g.mu.Unlock()
	} else {
		m.done, m.lead = make(chan struct{}), make(chan struct{})
		g.waiting = append(g.waiting, m)
		g.mu.Unlock()
		select {
		case <-m.done:
			return m.err
		case <-m.lead:
			batch = m.batch
		}
	}

	g.commit(batch)

	g.mu.Lock()
	g.handOver()
	g.mu.Unlock()
	for _, b := range batch {
		if b != m {
			close(b.done)
		}
	}
	return m.err
}

// handOver gives all that wait to the first of them; the caller holds the lock
// and has ended its own batch. Taken off the list here, no second leader that
// ends now can give them away again.
func (g *group) handOver() {
	if len(g.waiting) == 0 {
		g.leaders--
		return
	}
	n := min(len(g.waiting), groupMost)
	next := g.waiting[0]
	next.batch = g.waiting[:n:n]
	g.waiting = append([]*member(nil), g.waiting[n:]...)
	close(next.lead)
}

func (g *group) commit(batch []*member) {
	if len(batch) == 1 {
		m := batch[0]
		m.err = g.run.settleOne(m.ctx, m.p)
		return
	}
	alive := g.records(batch)
	for _, m := range alive {
		decided, err := g.run.decide(m.ctx, m.p)
		m.err = err
		m.p.decided = decided && err == nil
	}
	g.finish(alive)
}

// records writes all records and flushes them together: no decision may come
// before its own record is on the disk, and none does.
func (g *group) records(batch []*member) []*member {
	var ok []*member
	var files []durable.File
	for _, m := range batch {
		f, err := m.p.dir.Create(tagged(m.p.id, tagRecord, m.p.r), fileMode)
		if err == nil {
			if _, err = f.Write(m.p.data); err != nil {
				err = errors.Join(err, f.Close(), m.p.dir.Remove(f.Name()))
			}
		}
		if err != nil {
			m.err = &beeyard.Error{Op: "settle", ID: m.p.id, Err: fmt.Errorf("write record: %w", err),
				Hint: "the claim is kept; make room or mend the disk, then settle again"}
			continue
		}
		ok, files = append(ok, m), append(files, f)
	}
	err := syncAll(g.run.claimed, files)
	for i, f := range files {
		if cerr := f.Close(); cerr != nil && err == nil {
			err = cerr
		}
		if err != nil {
			// Which of them is lost is not known: none is decided.
			_ = ok[i].p.dir.Remove(f.Name())
		}
	}
	if err == nil {
		return ok
	}
	for _, m := range ok {
		m.err = &beeyard.Error{Op: "settle", ID: m.p.id, Err: fmt.Errorf("sync record: %w", err),
			Hint: "the claim is kept; make room or mend the disk, then settle again"}
	}
	return nil
}

// syncAll flushes few files side by side (the kernel groups what waits
// together) and many by one flush of the file system.
func syncAll(d durable.Dir, files []durable.File) error {
	const fewest = 16
	if len(files) >= fewest {
		return durable.SyncFiles(d, files)
	}
	errs := make([]error, len(files))
	var wg sync.WaitGroup
	for i, f := range files {
		wg.Go(func() { errs[i] = f.Sync() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// finish carries the batch's decisions out with one flush a folder.
func (g *group) finish(batch []*member) {
	r := g.run
	var publish []*member
	artifacts := false
	for _, m := range batch {
		if m.err != nil || !m.p.decided {
			continue
		}
		ended, err := r.beforePublish(m.ctx, m.p)
		switch {
		case err != nil:
			m.err = err
		case ended:
			m.err = r.afterPublish(m.p)
		default:
			artifacts = artifacts || m.p.next.Ext.Artifact != nil && m.p.next.Ext.Target == beeyard.PlaceDone
			publish = append(publish, m)
		}
	}
	if artifacts {
		if err := r.artifacts.Sync(); err != nil {
			fail(publish, fmt.Errorf("sync artifacts: %w", err))
			return
		}
	}
	publish = g.publish(publish)
	dirs := map[beeyard.Place]bool{}
	for _, m := range publish {
		dirs[m.p.next.Ext.Target] = true
	}
	for p := range dirs {
		if err := r.place(p).Sync(); err != nil {
			fail(publish, fmt.Errorf("sync %s: %w", p, err))
			return
		}
	}
	for _, m := range publish {
		m.err = r.afterPublish(m.p)
	}
}

// publish moves all records, those to pending and held under one hold of the lock.
func (g *group) publish(batch []*member) []*member {
	var free, locked, ok []*member
	for _, m := range batch {
		if t := m.p.next.Ext.Target; t == beeyard.PlacePending || t == beeyard.PlaceHeld {
			locked = append(locked, m)
		} else {
			free = append(free, m)
		}
	}
	each := func(ms []*member) {
		for _, m := range ms {
			if m.err = g.run.publish(m.ctx, m.p); m.err == nil {
				ok = append(ok, m)
			}
		}
	}
	each(free)
	if len(locked) > 0 {
		unlock, err := g.run.lockQueue(locked[0].ctx)
		if err != nil {
			fail(locked, err)
			return ok
		}
		each(locked)
		unlock()
	}
	return ok
}

func fail(ms []*member, err error) {
	for _, m := range ms {
		if m.err == nil {
			m.err = err
		}
	}
}
