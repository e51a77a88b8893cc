package spool

import (
	"sync"

	"beeyard"
)

// hints gathers what is heard of changes until a slot looks: from the kernel's
// file events and from this process's own settles and enqueues. Its lock is
// never held during a look, so whoever tells does not wait for one.
type hints struct {
	mu   sync.Mutex
	ids  map[beeyard.Place]map[string]bool
	all  map[beeyard.Place]bool // more than ids holds: list
	gen  uint64                 // rises with each hint
	wake chan struct{}          // closed at the next hint
}

// hintsMost bounds what is kept for a picker that nobody asks.
const hintsMost = 4096

func newHints() *hints {
	return &hints{ids: map[beeyard.Place]map[string]bool{}, all: map[beeyard.Place]bool{}, wake: make(chan struct{})}
}

func (h *hints) add(at beeyard.Place, all bool, ids ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.ids[at]
	if set == nil {
		set = map[string]bool{}
		h.ids[at] = set
	}
	for _, id := range ids {
		if len(set) < hintsMost {
			set[id] = true
		} else if !set[id] {
			all = true
		}
	}
	if all {
		h.all[at] = true
		clear(set)
	}
	h.gen++
	close(h.wake)
	h.wake = make(chan struct{})
}

// heard is what take gives.
type heard struct {
	ids map[beeyard.Place]map[string]bool
	all map[beeyard.Place]bool
	gen uint64
}

func (h *hints) take() heard {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ids) == 0 && len(h.all) == 0 {
		return heard{gen: h.gen} // not the maps themselves: the next hint writes into them
	}
	out := heard{h.ids, h.all, h.gen}
	h.ids, h.all = map[beeyard.Place]map[string]bool{}, map[beeyard.Place]bool{}
	return out
}

func (h *hints) now() (gen uint64, wake <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gen, h.wake
}
