package spool

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// buildIndex writes candidates, which are in claim order, as an index; nil
// when they are too many for one.
func buildIndex(list []*candidate, seed uint64) []byte {
	b := indexBuilder{known: map[string][2]uint32{}}
	refs, texts := b.measure(list)
	n := len(list)
	slots := 1 << bits.Len(uint(n+n/4))
	size := indexHeader + n*indexEntry + slots*indexSlot + refs*8 + texts
	const most = 1 << 30 // offsets have 32 bits
	if n > indexMost || size > most {
		return nil
	}
	b.data = make([]byte, size)
	b.entries = b.data[indexHeader:][:n*indexEntry]
	b.slots = b.data[indexHeader+n*indexEntry:][:slots*indexSlot]
	b.refs = b.data[indexHeader+n*indexEntry+slots*indexSlot:][:refs*8]
	b.texts = b.data[size-texts : size-texts]
	for i, c := range list {
		b.put(b.entries[i*indexEntry:][:indexEntry], c)
		b.slot(hashName(seed, c.ino, []byte(c.id)), i)
	}
	le := binary.LittleEndian
	h := b.data[:indexHeader]
	copy(h, indexMagic)
	le.PutUint32(h[hdrVersion:], indexVersion)
	le.PutUint32(h[hdrEntries:], uint32(n))
	le.PutUint32(h[hdrSlots:], uint32(slots))
	le.PutUint32(h[hdrRefs:], uint32(refs))
	le.PutUint32(h[hdrTexts:], uint32(texts))
	le.PutUint64(h[hdrSeed:], seed)
	le.PutUint32(h[hdrBodySum:], crc32.Checksum(b.data[indexHeader:], indexSums))
	le.PutUint32(h[hdrSum:], crc32.Checksum(h[:hdrSum], indexSums))
	return b.data
}

// indexBuilder fills one buffer. Ids are written out each; all other texts
// repeat, and are written once.
type indexBuilder struct {
	data, entries, slots, refs, texts []byte
	ref                               int
	known                             map[string][2]uint32
}

// measure gives the number of refs and of bytes of text that put will write.
func (b *indexBuilder) measure(list []*candidate) (refs, texts int) {
	seen := map[string]bool{"": true}
	count := func(s string) {
		if !seen[s] {
			seen[s] = true
			texts += len(s)
		}
	}
	for _, c := range list {
		texts += len(c.id)
		refs += len(c.labels) + len(c.deps)
		count(c.typ)
		count(c.tier)
		count(c.created)
		for _, s := range c.labels {
			count(s)
		}
		for _, s := range c.deps {
			count(s)
		}
	}
	return refs, texts
}

func (b *indexBuilder) put(e []byte, c *candidate) {
	le := binary.LittleEndian
	flags := uint32(0)
	set := func(bit uint32, on bool) {
		if on {
			flags |= bit
		}
	}
	set(flagTimed, c.timed)
	set(flagHold, c.hold)
	set(flagNever, c.never)
	set(flagWaits, c.waits)
	le.PutUint64(e[entIno:], c.ino)
	le.PutUint64(e[entSec:], uint64(c.sec))
	le.PutUint64(e[entMtime:], uint64(c.mtime))
	le.PutUint64(e[entSize:], uint64(c.size))
	le.PutUint64(e[entPrio:], uint64(int64(c.prio)))
	le.PutUint32(e[entNsec:], uint32(c.nsec))
	if c.waits {
		le.PutUint64(e[entDue:], uint64(c.due.Unix()))
		le.PutUint32(e[entDueNsec:], uint32(c.due.Nanosecond()))
	}
	le.PutUint32(e[entFlags:], flags)
	b.write(e[entID:], c.id)
	b.text(e[entType:], c.typ)
	b.text(e[entTier:], c.tier)
	b.text(e[entCreated:], c.created)
	b.list(e[entLabels:], c.labels)
	b.list(e[entDeps:], c.deps)
}

func (b *indexBuilder) write(to []byte, s string) (at [2]uint32) {
	at = [2]uint32{uint32(len(b.texts)), uint32(len(s))}
	b.texts = append(b.texts, s...)
	b.place(to, at)
	return at
}

func (b *indexBuilder) place(to []byte, at [2]uint32) {
	binary.LittleEndian.PutUint32(to, at[0])
	binary.LittleEndian.PutUint32(to[4:], at[1])
}

func (b *indexBuilder) text(to []byte, s string) {
	if s == "" {
		return
	}
	at, ok := b.known[s]
	if !ok {
		b.known[s] = b.write(to, s)
		return
	}
	b.place(to, at)
}

func (b *indexBuilder) list(to []byte, list []string) {
	if len(list) == 0 {
		return
	}
	b.place(to, [2]uint32{uint32(b.ref), uint32(len(list))})
	for _, s := range list {
		b.text(b.refs[b.ref*8:], s)
		b.ref++
	}
}

func (b *indexBuilder) slot(h uint64, i int) {
	le := binary.LittleEndian
	mask := uint64(len(b.slots)/indexSlot - 1)
	for at := h; ; at++ {
		s := b.slots[(at&mask)*indexSlot:][:indexSlot]
		if le.Uint32(s[8:]) == 0 {
			le.PutUint64(s, h)
			le.PutUint32(s[8:], uint32(i)+1)
			return
		}
	}
}
