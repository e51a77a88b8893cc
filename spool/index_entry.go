package spool

import (
	"encoding/binary"
	"time"

	"beeyard/internal/durable"
)

func (x *index) entry(i int) []byte { return x.entries[i*indexEntry:][:indexEntry] }

func (x *index) text(e []byte, field int) (string, bool) {
	return x.cut(binary.LittleEndian.Uint32(e[field:]), binary.LittleEndian.Uint32(e[field+4:]))
}

func (x *index) cut(off, size uint32) (string, bool) {
	end := uint64(off) + uint64(size)
	if end > uint64(len(x.texts)) {
		return "", false
	}
	return x.texts[off:end], true
}

func (x *index) list(e []byte, field int) ([]string, bool) {
	first, n := uint64(binary.LittleEndian.Uint32(e[field:])), uint64(binary.LittleEndian.Uint32(e[field+4:]))
	if n == 0 {
		return nil, true
	}
	if (first+n)*8 > uint64(len(x.refs)) {
		return nil, false
	}
	out := make([]string, n)
	for i := range out {
		ref := x.refs[(first+uint64(i))*8:]
		s, ok := x.cut(binary.LittleEndian.Uint32(ref), binary.LittleEndian.Uint32(ref[4:]))
		if !ok {
			return nil, false
		}
		out[i] = s
	}
	return out, true
}

// ino is the inode number of an entry.
func (x *index) ino(i int) uint64 { return binary.LittleEndian.Uint64(x.entry(i)[entIno:]) }

// candidate reads an entry into c; false when it is damaged.
func (x *index) candidate(i int, c *candidate) bool {
	le := binary.LittleEndian
	e := x.entry(i)
	flags := le.Uint32(e[entFlags:])
	var ok [6]bool
	*c = candidate{
		sec: int64(le.Uint64(e[entSec:])), nsec: int32(le.Uint32(e[entNsec:])),
		timed: flags&flagTimed != 0, hold: flags&flagHold != 0, never: flags&flagNever != 0, waits: flags&flagWaits != 0,
		prio: int(int64(le.Uint64(e[entPrio:]))),
		ino:  le.Uint64(e[entIno:]), mtime: int64(le.Uint64(e[entMtime:])), size: int64(le.Uint64(e[entSize:])),
	}
	if c.waits {
		c.due = time.Unix(int64(le.Uint64(e[entDue:])), int64(le.Uint32(e[entDueNsec:])))
	}
	c.id, ok[0] = x.text(e, entID)
	c.typ, ok[1] = x.text(e, entType)
	c.tier, ok[2] = x.text(e, entTier)
	c.created, ok[3] = x.text(e, entCreated)
	c.labels, ok[4] = x.list(e, entLabels)
	c.deps, ok[5] = x.list(e, entDeps)
	return ok == [6]bool{true, true, true, true, true, true}
}

// fresh reports whether the file that has the name now is the one that the
// entry was read from.
func (x *index) fresh(i int, info durable.Info) bool {
	e := x.entry(i)
	return int64(binary.LittleEndian.Uint64(e[entMtime:])) == info.ModTime.UnixNano() &&
		int64(binary.LittleEndian.Uint64(e[entSize:])) == info.Size
}

// take gives candidates for the positions in at that are not negative, in
// claim order, and sets at to -1 where an entry is damaged.
func (x *index) take(at []int32) []*candidate {
	if x == nil {
		return nil
	}
	const none = int32(-1)
	from := make([]int32, x.n) // position in at, by entry
	for i := range from {
		from[i] = none
	}
	for i, pos := range at {
		if pos >= 0 {
			from[pos] = int32(i)
		}
	}
	var slab []candidate
	var list []*candidate
	for pos, i := range from {
		if i == none {
			continue
		}
		if len(slab) == 0 {
			// A few hundred to an allocation; more would keep them all alive for one.
			slab = make([]candidate, 256)
		}
		if !x.candidate(pos, &slab[0]) {
			at[i] = none
			continue
		}
		list, slab = append(list, &slab[0]), slab[1:]
	}
	return list
}
