package ledger

import (
	"iter"
	"slices"
	"sort"
)

// Map is an ordered map of a document. The zero Map is empty and usable.
type Map struct {
	pairs []pair
	// ord and sorted say that the pairs ascend strictly by ord, which also
	// proves that no key is there twice. A file that an engine wrote is read in
	// that order, so neither an index nor a sort is ever needed for it.
	ord    order
	sorted bool
	index  map[string]int // built when a large map is looked up out of order
	// raw is the lines of a plain item, which stand for the pairs until it is
	// looked into, and for what is written until it is changed (see lazy.go).
	raw string
}

type pair struct {
	key string
	val Value
}

// NewMap returns an empty map.
func NewMap() *Map { return &Map{} }

// Len is the number of keys; a nil Map has none.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	m.load()
	return len(m.pairs)
}

// All yields the pairs in their present order.
func (m *Map) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if m == nil {
			return
		}
		m.load()
		for _, p := range m.pairs {
			if !yield(p.key, p.val) {
				return
			}
		}
	}
}

// Get returns the value of key; ok is false when it is not there.
func (m *Map) Get(key string) (v Value, ok bool) {
	if i := m.find(key); i >= 0 {
		return m.pairs[i].val, true
	}
	return Value{}, false
}

// get is Get for callers to whom absent and null are one.
func (m *Map) get(key string) Value {
	v, _ := m.Get(key)
	return v
}

// str returns a string's text, "" when key is absent or no string.
func (m *Map) str(key string) string {
	s, _ := m.get(key).Str()
	return s
}

// Set adds key or replaces its value.
func (m *Map) Set(key string, v Value) {
	m.change()
	if i := m.find(key); i >= 0 {
		m.pairs[i].val = v
		return
	}
	m.add(key, v)
}

// add appends a key that is known not to be there.
func (m *Map) add(key string, v Value) {
	n := len(m.pairs)
	if n == 0 {
		m.sorted = true
	} else if m.sorted && !m.ord.less(m.pairs[n-1].key, key) {
		m.sorted = false
	}
	m.pairs = append(m.pairs, pair{key, v})
	if m.index != nil {
		m.index[key] = n
	}
}

// append adds the pair unless key is there already. In the order that engines
// write, one comparison proves that it is not.
func (m *Map) append(key string, v Value) (added bool) {
	m.change()
	n := len(m.pairs)
	last := n == 0 || m.sorted && m.ord.less(m.pairs[n-1].key, key)
	if !last && m.find(key) >= 0 {
		return false
	}
	m.add(key, v)
	return true
}

// Delete removes key if it is there.
func (m *Map) Delete(key string) {
	m.change()
	if i := m.find(key); i >= 0 {
		m.pairs = slices.Delete(m.pairs, i, i+1)
		m.index = nil
	}
}

// small is the size up to which comparing beats hashing.
const small = 24

func (m *Map) find(key string) int {
	if m == nil {
		return -1
	}
	m.load()
	n := len(m.pairs)
	if m.index == nil && n <= small {
		for i := range m.pairs {
			if m.pairs[i].key == key {
				return i
			}
		}
		return -1
	}
	if m.index == nil && m.sorted {
		i := sort.Search(n, func(i int) bool { return !m.ord.less(m.pairs[i].key, key) })
		if i < n && m.pairs[i].key == key {
			return i
		}
		return -1
	}
	if m.index == nil {
		m.index = make(map[string]int, n+n/2)
		for i := range m.pairs {
			m.index[m.pairs[i].key] = i
		}
	}
	if i, ok := m.index[key]; ok {
		return i
	}
	return -1
}

// arrange sorts the pairs by ord unless they are.
func (m *Map) arrange(ord order) {
	m.load()
	if m.ord == ord && m.sorted || m.Len() == 0 {
		m.ord = ord
		return
	}
	slices.SortFunc(m.pairs, func(a, b pair) int {
		if ord.less(a.key, b.key) {
			return -1
		}
		return 1 // keys are unique
	})
	m.ord, m.sorted, m.index = ord, true, nil
}

func (m *Map) clone() *Map {
	if m == nil {
		return nil
	}
	m.load()
	c := &Map{raw: m.raw, pairs: make([]pair, len(m.pairs)), ord: m.ord, sorted: m.sorted}
	for i, p := range m.pairs {
		c.pairs[i] = pair{p.key, p.val.clone()}
	}
	return c
}

// order is how the keys of a map are written, by where the map is.
type order uint8

const (
	plainOrder order = iota // by code point
	topOrder                // the document
	leaseOrder              // the lease
	runOrder                // last_run
	itemOrder               // every map two or more levels down
)

// under is the order of the map at key in a map of order o.
func (o order) under(key string) order {
	switch {
	case o != topOrder:
		return itemOrder
	case key == "lease":
		return leaseOrder
	case key == "last_run":
		return runOrder
	}
	return plainOrder
}

// less compares UTF-8 bytes, which is the order of code points.
func (o order) less(a, b string) bool {
	if o == plainOrder {
		return a < b
	}
	x, y := o.rank(a), o.rank(b)
	if x != y {
		return x < y
	}
	return a < b
}

const unranked = 99

func (o order) rank(key string) int {
	switch o {
	case topOrder:
		switch key {
		case "schema_version":
			return 0
		case "lease":
			return 1
		case "sources":
			return 2
		case "items":
			return 3
		case "last_run":
			return 4
		}
	case leaseOrder:
		switch key {
		case "writer":
			return 0
		case "timestamp":
			return 1
		case "ttl_minutes":
			return 2
		}
	case runOrder:
		switch key {
		case "timestamp":
			return 0
		case "outcome":
			return 1
		case "writer":
			return 2
		case "counts":
			return 3
		}
	case itemOrder:
		return itemRank(key)
	}
	return unranked
}

func itemRank(key string) int {
	switch key {
	case "source":
		return 0
	case "status":
		return 1
	case "sensitive":
		return 2
	case "title":
		return 3
	case "url":
		return 4
	case "body":
		return 5
	case "quote":
		return 6
	case "fix_ref":
		return 7
	case "verified_merge_sha":
		return 8
	case "verified_at":
		return 9
	}
	return unranked
}
