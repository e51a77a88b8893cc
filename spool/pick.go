package spool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// pickPart is what choosing keeps with a run.
type pickPart struct {
	mu       sync.Mutex
	pickers  map[*picker]bool
	priority durable.Dir // opened when it is first there
}

func (r *Run) initPick() {
	r.pick.pickers = map[*picker]bool{}
	r.onClose(func() error {
		r.pick.mu.Lock()
		var open []*picker
		for p := range r.pick.pickers {
			open = append(open, p)
		}
		priority := r.pick.priority
		r.pick.priority = nil
		r.pick.mu.Unlock()
		var errs []error
		for _, p := range open {
			errs = append(errs, p.close())
		}
		if priority != nil {
			errs = append(errs, priority.Close())
		}
		return errors.Join(errs...)
	})
}

// pickHint tells this run's pickers that id came to a place just now. The
// kernel's events say so too, an instant later: a worker that enqueues and then
// claims would otherwise not see its own task in order.
func (r *Run) pickHint(id string, at beeyard.Place) {
	r.pick.mu.Lock()
	defer r.pick.mu.Unlock()
	for p := range r.pick.pickers {
		p.added(id, at)
	}
}

// picker is a long-running worker's list of what to claim next. It reads
// pending/ once and keeps it in exact order; events, this process's own moves
// and, as the net below them, listings keep it true. The slots of a process
// share one. Exact means: of all that it knows. It knows its own process's
// moves and every task of a priority above 0 at once, other processes' moves
// when their event comes, well under a millisecond later, and everything when
// a small run has nothing ready.
//
// Invariant: a body of pending/ is in pending.known, or, for as long as its
// claim may be under way, in given, or it is unknown yet. What is ready is in
// the lanes of all filters that take it, what is blocked in waits, what comes
// due, later or again, in times; a candidate that has left those states may
// still be in any of them, and is dropped when met.
//
// Workers of several processes all reach for the head of the same order. One
// that finds a task gone goes on to the next at once: a lost claim is one failed
// rename, a few microseconds against the milliseconds of a settle, and after it
// the loser is past what the winners have taken. Skipping ahead, or choosing at
// random among equals, would save little of that and give up the order.
type picker struct {
	r     *Run
	hints *hints

	waiters waiters

	mu      sync.Mutex
	closed  bool
	watch   *durable.Watcher
	pumped  chan struct{}
	pending *shelf
	held    *shelf
	given   map[string]*candidate // handed out a moment ago, by id
	lanes   []*lane
	asked   uint64
	waits   map[string][]*candidate // by the id that they wait for
	orphans int                     // entries of waits whose candidate is gone
	times   candidateHeap
	polled  bool // the poll has passed since the last look
	pollAt  time.Duration
	doneAt  stamp
	doneGo  gate
	marksAt stamp
	marksGo gate
	unsaved int   // bodies read since the index was written
	sick    error // a body could not be read at the last look: the disk's doing
	scratch beeyard.Task
}

func (r *Run) newPicker() *picker {
	p := &picker{r: r, hints: newHints(), given: map[string]*candidate{}, waits: map[string][]*candidate{},
		times: candidateHeap{less: byWake}}
	p.pending, p.held = newShelf(beeyard.PlacePending, r.pending), newShelf(beeyard.PlaceHeld, r.held)
	r.pick.mu.Lock()
	r.pick.pickers[p] = true
	r.pick.mu.Unlock()
	return p
}

// added is a hint from this process: id came to a place.
func (p *picker) added(id string, at beeyard.Place) { p.hints.add(at, false, id) }

// close stops the watch and waits for it. Idempotent.
func (p *picker) close() error {
	p.r.pick.mu.Lock()
	delete(p.r.pick.pickers, p)
	p.r.pick.mu.Unlock()
	p.mu.Lock()
	p.closed = true
	watch := p.watch
	p.mu.Unlock()
	if watch != nil {
		watch.Close()
		<-p.pumped
	}
	return nil
}

var errPickerClosed = errors.New("the worker is closed")

// next gives the best ready candidate for f, in exact order, and takes it out
// of the list; false when there is none. The caller claims it, or says returned.
func (p *picker) next(ctx context.Context, f beeyard.Filter) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.startWatch(); err != nil {
		return "", false, err
	}
	p.laneFor(&f) // before the first listing, whose sorted batch then becomes it
	gen, _ := p.hints.now()
	if err := p.catchUp(ctx, false); err != nil {
		return "", false, err
	}
	id, ok, err := p.take(ctx, &f)
	if err != nil || ok {
		return id, ok, err
	}
	if err := p.catchUp(ctx, true); err != nil {
		return "", false, err
	}
	if id, ok, err = p.take(ctx, &f); err == nil && !ok {
		if p.sick != nil {
			return "", false, p.sick // "nothing" would be a guess
		}
		p.waiters.foundNothing(gen, p.pending.gate.cost)
	}
	return id, ok, err
}

// take pops the first candidate whose dependencies still are met. A claim
// would find that out too, at the price of a settle.
func (p *picker) take(ctx context.Context, f *beeyard.Filter) (string, bool, error) {
	var deps *deps
	for {
		c := p.best(f)
		if c == nil {
			return "", false, nil
		}
		if len(c.deps) > 0 || c.waits {
			if deps == nil {
				deps = p.r.newDeps(ctx)
			}
			where, unmet, err := p.where(c, deps)
			if err != nil {
				p.toLanes(c)
				return "", false, err
			}
			if where != pickReady {
				p.put(c, where, unmet)
				continue
			}
		}
		p.give(c)
		return c.id, true, nil
	}
}

// fewIDs is up to how many named ids are looked up one by one.
const fewIDs = 64

func (p *picker) best(f *beeyard.Filter) *candidate {
	if n := len(f.IDs); n == 0 || n > fewIDs {
		return p.laneFor(f).pop()
	}
	var best *candidate
	for _, id := range f.IDs {
		c := p.pending.known[id]
		if c != nil && c.state == pickReady && c.match(f, &p.scratch) && (best == nil || c.compare(best) < 0) {
			best = c
		}
	}
	return best
}

func (p *picker) laneFor(f *beeyard.Filter) *lane {
	p.asked++
	for _, l := range p.lanes {
		if sameFilter(&l.filter, f) {
			l.used = p.asked
			return l
		}
	}
	l := newLane(*f)
	l.used = p.asked
	var all []*candidate
	for _, c := range p.pending.known {
		if c.state == pickReady && c.match(f, &p.scratch) {
			all = append(all, c)
		}
	}
	sortCandidates(all)
	l.sorted = all
	if len(p.lanes) == lanesMost {
		oldest := slices.MinFunc(p.lanes, func(a, b *lane) int { return int(int64(a.used) - int64(b.used)) })
		p.lanes = slices.DeleteFunc(p.lanes, func(l *lane) bool { return l == oldest })
	}
	p.lanes = append(p.lanes, l)
	return l
}

// givenFor is how long a file that was handed out and still lies in pending/ is
// taken for a claim under way. Past it, its claimer has forgotten it.
const givenFor = 10 * time.Second

func (p *picker) give(c *candidate) {
	c.state, c.given = pickGone, clock.Elapsed(p.r.clk)
	delete(p.pending.known, c.id)
	p.given[c.id] = c
	// Listings drop what is gone; between them this bounds the map.
	if len(p.given) >= 4096 && len(p.given)&(len(p.given)-1) == 0 {
		for id, g := range p.given {
			if c.given-g.given > givenFor {
				delete(p.given, id)
			}
		}
	}
}

// returnedFor keeps one task whose claim fails for its own reasons from
// standing at the head for ever.
const returnedFor = time.Second

// returned says that a claim of id failed for another reason than that it was
// gone. It is considered again after a moment.
func (p *picker) returned(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.given[id]
	if c == nil || p.pending.known[id] != nil {
		return
	}
	delete(p.given, id)
	p.pending.known[id] = c
	p.putLater(c, p.r.clk.Now().Add(returnedFor))
}
