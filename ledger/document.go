package ledger

import (
	"fmt"

	"beeyard"
)

// The top-level keys.
const (
	keySchema  = "schema_version"
	keyLease   = "lease"
	keySources = "sources"
	keyItems   = "items"
	keyRun     = "last_run"
)

// schemaVersion is the version that this package writes and knows all of.
const schemaVersion = 1

// Document is one ledger in memory.
type Document struct {
	root *Map
	size int // bytes of the file it was read from, and about what was added since
	// Invariant: lines of nothing but what the engines write; comments and blank
	// lines of a hand edit are not kept, as the older engine does not keep them.
}

// NewDocument is what a missing or empty file stands for.
func NewDocument() *Document {
	d := &Document{root: &Map{ord: topOrder}}
	d.root.Set(keySchema, IntValue(schemaVersion))
	d.complete()
	return d
}

// complete adds the sections that every written file has.
func (d *Document) complete() {
	for _, key := range [...]string{keySources, keyItems} {
		if d.root.get(key).kind == Null {
			d.root.Set(key, MapValue(&Map{}))
		}
	}
}

// Root is the document as a map, which the caller must not change.
func (d *Document) Root() *Map { return d.root }

// Items is the map of items by key.
func (d *Document) Items() *Map { return d.root.get(keyItems).m }

// Item returns one item; nil when it is absent or no map.
func (d *Document) Item(key string) *Map { return d.Items().get(key).m }

// Sources is the map of sources by id.
func (d *Document) Sources() *Map { return d.root.get(keySources).m }

// LastRun is what the last run recorded, or nil.
func (d *Document) LastRun() *Map { return d.root.get(keyRun).m }

// Schema is the file's schema_version.
func (d *Document) Schema() int64 {
	n, _ := d.root.get(keySchema).Int64()
	return n
}

// MarshalJSON gives the whole document with sorted keys.
func (d *Document) MarshalJSON() ([]byte, error) {
	return appendJSON(nil, MapValue(d.root)), nil
}

// shape checks that the sections are what every operation takes them for. It is
// the same for both readings: a file that one engine would take apart and the
// other refuse could lose items.
func (d *Document) shape() string {
	if _, ok := d.root.Get(keySchema); !ok {
		return "schema_version is missing"
	}
	for _, key := range [...]string{keyLease, keySources, keyItems} {
		if v := d.root.get(key); v.kind != Mapping && v.kind != Null {
			return key + " is not a map"
		}
	}
	return ""
}

// CorruptError says why a file is not a ledger. It never holds a value from the
// file. errors.Is finds beeyard.ErrCorrupt.
type CorruptError struct {
	Line   int // from 1; 0 when it is about the whole file
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Line == 0 {
		return "not a ledger: " + e.Reason
	}
	return fmt.Sprintf("not a ledger: line %d: %s", e.Line, e.Reason)
}

// Is makes a CorruptError a beeyard.ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == beeyard.ErrCorrupt }
