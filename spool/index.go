package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
)

// The index is a cache of what choosing needs of the bodies in pending/ and
// held/, so that a one-shot claim among 100,000 tasks reads none of them. It is
// mapped into memory and used where it lies: a hash table from (name, inode
// number) to entries, and the entries in claim order.
//
//	header   indexHeader bytes, see below
//	entries  n × indexEntry, in claim order
//	slots    s × indexSlot, s a power of two: hash (8), entry + 1 (4), 0 (4)
//	refs     r × 8: offset and length of one text, for lists
//	texts    bytes
//
// Numbers are little-endian. Nothing in it is trusted: its checksum finds what
// a crash tore, since it is never flushed, and every offset is checked at each
// use, for whoever can write here can also write a checksum. An entry is true
// of the file that had the name and the inode number when it was read; a file
// that came there later by chance with both is found out before it matters
// (pickOnce compares times, a claim reads the body that it won).
const (
	indexMagic   = "beeyard index\r\n\x00"
	indexVersion = 1
	indexHeader  = 64
	indexEntry   = 112
	indexSlot    = 16
	// indexMost bounds what one index may hold: beyond it the file would be
	// larger than what it saves. Folders that large are read in part.
	indexMost = 1 << 20
	// probeMost bounds a look into a table that somebody filled by hand.
	probeMost = 1 << 10
)

// Offsets in the header.
const (
	hdrVersion = 16
	hdrEntries = 20
	hdrSlots   = 24
	hdrRefs    = 28
	hdrTexts   = 32
	hdrSeed    = 40
	hdrBodySum = 48
	hdrSum     = 52
)

// Offsets in an entry.
const (
	entIno     = 0
	entSec     = 8
	entDue     = 16
	entMtime   = 24
	entSize    = 32
	entPrio    = 40
	entNsec    = 48
	entDueNsec = 52
	entFlags   = 56
	entID      = 60 // each text: offset, length
	entType    = 68
	entTier    = 76
	entCreated = 84
	entLabels  = 92 // each list: first ref, number
	entDeps    = 100
)

const (
	flagTimed = 1 << iota
	flagHold
	flagNever
	flagWaits
)

var errIndex = errors.New("not an index that can be used")

var indexSums = crc32.MakeTable(crc32.Castagnoli)

// index is an opened index file.
type index struct {
	n       int
	seed    uint64
	entries []byte
	slots   []byte
	mask    uint64
	refs    []byte
	texts   string // a copy: candidates outlive the mapping
	release func()
}

// openIndexBytes checks data and makes it usable. The caller keeps data
// readable until close.
func openIndexBytes(data []byte) (*index, error) {
	le := binary.LittleEndian
	if len(data) < indexHeader || string(data[:len(indexMagic)]) != indexMagic ||
		le.Uint32(data[hdrVersion:]) != indexVersion ||
		crc32.Checksum(data[:hdrSum], indexSums) != le.Uint32(data[hdrSum:]) {
		return nil, errIndex
	}
	n, slots := uint64(le.Uint32(data[hdrEntries:])), uint64(le.Uint32(data[hdrSlots:]))
	refs, texts := uint64(le.Uint32(data[hdrRefs:])), uint64(le.Uint32(data[hdrTexts:]))
	size := indexHeader + n*indexEntry + slots*indexSlot + refs*8 + texts
	if n > indexMost || bits.OnesCount64(slots) != 1 || n >= slots || size != uint64(len(data)) ||
		crc32.Checksum(data[indexHeader:], indexSums) != le.Uint32(data[hdrBodySum:]) {
		return nil, errIndex
	}
	x := &index{n: int(n), seed: le.Uint64(data[hdrSeed:]), mask: slots - 1, release: func() {}}
	cut := func(size uint64) []byte {
		part := data[:size]
		data = data[size:]
		return part
	}
	cut(indexHeader)
	x.entries, x.slots, x.refs = cut(n*indexEntry), cut(slots*indexSlot), cut(refs*8)
	x.texts = string(data)
	if !x.frugal(refs) {
		return nil, errIndex
	}
	return x, nil
}

// frugal: the lists together are no longer than all refs. Entries that shared
// one long list would make a small file cost any amount of memory.
func (x *index) frugal(refs uint64) bool {
	total := uint64(0)
	for i := range x.n {
		e := x.entry(i)
		total += uint64(binary.LittleEndian.Uint32(e[entLabels+4:])) + uint64(binary.LittleEndian.Uint32(e[entDeps+4:]))
	}
	return total <= refs
}

// close releases the mapping. Candidates taken from it stay good.
func (x *index) close() {
	if x != nil {
		x.release()
	}
}

// len is the number of entries; a nil index has none.
func (x *index) len() int {
	if x == nil {
		return 0
	}
	return x.n
}

// hashName is FNV-1a over inode number and name, mixed once more since the
// table takes the low bits.
func hashName(seed, ino uint64, id []byte) uint64 {
	const prime = 1099511628211
	h := (seed ^ 14695981039346656037 ^ ino) * prime
	h ^= h >> 29
	for _, c := range id {
		h = (h ^ uint64(c)) * prime
	}
	return h ^ h>>32
}

// find gives the position of the entry for a name and inode number, or -1.
func (x *index) find(id []byte, ino uint64) int {
	if x == nil || x.n == 0 {
		return -1
	}
	le := binary.LittleEndian
	h := hashName(x.seed, ino, id)
	for i, at := 0, h; i < probeMost; i, at = i+1, at+1 {
		slot := x.slots[(at&x.mask)*indexSlot:][:indexSlot]
		pos := le.Uint32(slot[8:])
		if pos == 0 {
			return -1
		}
		if le.Uint64(slot) != h || int(pos) > x.n {
			continue
		}
		e := x.entry(int(pos) - 1)
		if le.Uint64(e[entIno:]) != ino {
			continue
		}
		if s, ok := x.text(e, entID); ok && s == string(id) {
			return int(pos) - 1
		}
	}
	return -1
}
