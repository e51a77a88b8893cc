package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"

	"beeyard"
	"beeyard/internal/durable"
)

// onceNames is how many unknown names a one-shot claim reads.
const onceNames = 1024

// once is the choice of a one-shot claim: a process that keeps no list. Names
// are listed until onceNames of them are not in the index; those are read, and
// every marked one beside them. So the order is exact among the first 1,024
// names and all of a priority above 0, and among all when the index knows the
// rest. Strict reads everything.
type once struct {
	r      *Run
	f      *beeyard.Filter
	x      *index
	here   []uint64     // bits of entries of x whose files are in pending/
	queue  []*candidate // what was read now and not yet offered, in claim order
	all    []*candidate // what was read now
	listed int          // names of tasks
	whole  bool         // all of them were listed
	reads  int
	deps   *deps
	bad    []notTask
	sick   error // a body could not be read
}

// pickOnce offers ready tasks to try, best first, until one is won, try fails
// or none is left.
func (r *Run) pickOnce(ctx context.Context, f beeyard.Filter, try func(id string) (won bool, err error)) error {
	o := &once{r: r, f: &f, deps: r.newDeps(ctx)}
	held, err := r.heldCandidates(ctx)
	if err != nil {
		return err
	}
	if _, err := r.promoteThose(ctx, held.good); err != nil {
		return err
	}
	o.all, o.reads, o.sick = held.good, held.read, held.err
	if n := len(f.IDs); n > 0 && n <= onceNames {
		if err := o.named(ctx); err != nil {
			return err
		}
	} else {
		o.x = r.openIndex()
		defer func() { o.x.close() }()
		if err := o.gather(ctx); err != nil {
			return err
		}
	}
	for _, b := range o.bad[:min(len(o.bad), onceNames)] {
		if _, err := r.strange(ctx, r.pending, b); err != nil {
			return err
		}
	}
	won, err := o.offer(ctx, try)
	if err == nil && !won && o.x.len() > 0 {
		// Nothing could be had. An entry that wrongly says so must not say it for
		// ever: some are proven each time.
		if err = o.prove(ctx, proveMost); err == nil {
			won, err = o.offer(ctx, try)
		}
	}
	if err == nil && !won {
		err = o.sick // "nothing to claim" would be a guess
	}
	if err != nil {
		return err
	}
	if worthSaving(o.reads, o.x.len()+len(o.all)) {
		if err := o.save(); err != nil {
			r.note("the index of pending tasks could not be written; claims go on without it: %v", err)
		}
	}
	return nil
}

// named reads the few tasks that the filter names.
func (o *once) named(ctx context.Context) error {
	names := make([]listed, 0, len(o.f.IDs))
	for _, id := range o.f.IDs {
		if beeyard.CheckStoredID(id) == nil {
			names = append(names, listed{id: id})
		}
	}
	got, err := o.r.readCandidates(ctx, o.r.pending, names)
	o.add(got)
	o.reads = 0 // too few to know from them what an index should hold
	return err
}

func (o *once) add(got readings) {
	sortCandidates(got.good)
	o.queue = mergeCandidates(o.queue, got.good)
	o.all = append(o.all, got.good...)
	o.bad = append(o.bad, got.bad...)
	o.reads += got.read
	o.sick = errors.Join(o.sick, got.err)
}

// gather lists, compares with the index and reads what that does not know.
func (o *once) gather(ctx context.Context) error {
	o.here = make([]uint64, (o.x.len()+63)/64)
	var fresh []listed
	o.whole = true
	err := durable.EachName(o.r.pending, func(name []byte, ino uint64, _ fs.FileMode) bool {
		id, ok := idOfName(name)
		if !ok {
			if len(id) > 0 || string(name) == ".json" {
				o.bad = append(o.bad, notTask{string(name), ino, "its name cannot be an id"})
			}
			return true
		}
		o.listed++
		if i := o.x.find(id, ino); i >= 0 {
			o.here[i/64] |= 1 << (i % 64)
			return true
		}
		if len(fresh) == onceNames && !o.f.Strict {
			o.whole = false
			return false
		}
		fresh = append(fresh, listed{id: string(id), ino: ino})
		return true
	})
	if err != nil {
		return fmt.Errorf("list pending: %w", err)
	}
	got, err := o.r.readCandidates(ctx, o.r.pending, fresh)
	if err != nil {
		return err
	}
	o.add(got)
	if !o.whole {
		if err := o.marked(ctx, fresh); err != nil {
			return err
		}
	}
	if o.f.Strict {
		return o.prove(ctx, o.x.len())
	}
	return nil
}

// marked adds the tasks of a priority above 0 that were not listed.
func (o *once) marked(ctx context.Context, have []listed) error {
	d, err := o.r.priorityDir(false)
	if err != nil || d == nil {
		return err
	}
	ids, err := markedIDs(d)
	if err != nil || len(ids) == 0 {
		return err
	}
	known := make(map[string]bool, len(have))
	for _, l := range have {
		known[l.id] = true
	}
	var c candidate
	for i := range o.x.len() {
		// Entries of a priority come first, and only those can be marked.
		if !o.x.candidate(i, &c) || c.prio <= 0 {
			break
		}
		if o.isHere(i) {
			known[c.id] = true
		}
	}
	var names []listed
	for _, id := range ids {
		if !known[id] {
			names = append(names, listed{id: id})
		}
	}
	got, err := o.r.readCandidates(ctx, o.r.pending, names)
	if err != nil {
		return err
	}
	o.add(got)
	for _, c := range got.good {
		known[c.id] = true
	}
	return o.r.unmark(d, slices.DeleteFunc(ids, func(id string) bool { return known[id] }))
}

func (o *once) isHere(i int) bool { return o.here[i/64]&(1<<(i%64)) != 0 }
func (o *once) drop(i int)        { o.here[i/64] &^= 1 << (i % 64) }

// proveMost bounds what a claim that found nothing proves.
const proveMost = 8192

// prove reads again what is not the file that its entry was read from, of up to
// most entries from a random one on. A name and an inode number can come back
// with other content; see index.
func (o *once) prove(ctx context.Context, most int) error {
	var at []int
	n := o.x.len()
	for i, from := 0, rand.IntN(max(n, 1)); i < n && len(at) < most; i++ {
		if k := (from + i) % n; o.isHere(k) {
			at = append(at, k)
		}
	}
	again := make([]bool, len(at))
	err := parallel(ctx, len(at), func(k int) error {
		var c candidate
		if !o.x.candidate(at[k], &c) {
			return nil
		}
		info, err := o.r.pending.Stat(bodyName(c.id))
		if err != nil && !missing(err) {
			return fmt.Errorf("look at task: %w", err)
		}
		again[k] = err != nil || !c.sameFile(info)
		return nil
	})
	if err != nil {
		return err
	}
	var names []listed
	var c candidate
	for k, i := range at {
		if again[k] && o.x.candidate(i, &c) {
			o.drop(i)
			names = append(names, listed{id: c.id, ino: c.ino})
		}
	}
	got, err := o.r.readCandidates(ctx, o.r.pending, names)
	o.add(got)
	return err
}
