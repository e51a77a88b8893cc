package ledger

import "slices"

// Conflict is something that both sides of a merge changed in different ways and
// of which only one could be kept. The other is written down too: in the item's
// history, or under merge_conflicts for what is no item.
type Conflict struct {
	Key   string `json:"key"`   // the item, "" for what is none
	Field string `json:"field"` // dotted path
	Kept  string `json:"kept"`  // "ours" or "theirs"
}

// keyConflicts holds what was lost outside of items.
const keyConflicts = "merge_conflicts"

// Merge joins two documents that grew from base (nil where there was none). By
// item and by field, what one side changed wins; a proven close beats an older
// open copy, and a newer reopening beats the close it took back; cursors never
// move back; a source or item that either side calls sensitive is; fields of both
// sides survive, lists as unions. It changes ours and theirs.
func Merge(base, ours, theirs *Document, now Now) (*Document, []Conflict) {
	if base == nil {
		base = &Document{root: &Map{}}
	}
	m := merger{now: now}
	out := NewDocument()
	out.size = max(ours.size, theirs.size)
	for _, key := range unionKeys(ours.root, theirs.root) {
		b, o, t := base.root.get(key), ours.root.get(key), theirs.root.get(key)
		switch key {
		case keySchema:
			out.root.Set(key, IntValue(max(ours.Schema(), theirs.Schema())))
		case keyItems:
			out.root.Set(key, MapValue(m.items(b.m, o.m, t.m)))
		case keySources:
			out.root.Set(key, MapValue(m.sources(b.m, o.m, t.m)))
		case keyLease:
			m.pick(out.root, key, b, o, t, later(t, o, "timestamp"))
		case keyRun:
			m.pick(out.root, key, b, o, t, later(t, o, "timestamp"))
		default:
			m.field(out.root, base.root, ours.root, theirs.root, key, "", nil)
		}
	}
	for _, lost := range m.lost {
		out.root.Set(keyConflicts, union(Value{}, out.root.get(keyConflicts), listValue([]Value{MapValue(lost)})))
	}
	out.redactAll()
	return out, m.conflicts
}

type merger struct {
	now       Now
	conflicts []Conflict
	lost      []*Map // conflicts outside of items
}

func unionKeys(a, b *Map) (keys []string) {
	for k := range a.All() {
		keys = append(keys, k)
	}
	for k := range b.All() {
		if _, ok := a.Get(k); !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// later reports whether a's time in field is after b's, both being times.
func later(a, b Value, field string) bool {
	x, ok := ParseTime(a.m.str(field))
	y, ok2 := ParseTime(b.m.str(field))
	return ok && (!ok2 || x.After(y))
}

// pick takes a whole value from the side that changed it, and where both did,
// from theirs if asked. The lease and the last run are such values: the older
// one says nothing that still holds.
func (m *merger) pick(out *Map, key string, base, ours, theirs Value, preferTheirs bool) {
	v := ours
	switch {
	case ours.Equal(base), !theirs.Equal(base) && preferTheirs:
		v = theirs
	}
	if v.kind != Null {
		out.Set(key, v)
	}
}

func (m *merger) sources(base, ours, theirs *Map) *Map {
	out := &Map{}
	for _, id := range unionKeys(ours, theirs) {
		b, o, t := base.get(id), ours.get(id), theirs.get(id)
		if o.kind != Mapping || t.kind != Mapping {
			m.field(out, base, ours, theirs, id, "sources", nil)
			continue
		}
		entry := &Map{ord: itemOrder}
		for _, key := range unionKeys(o.m, t.m) {
			switch key {
			case "cursor":
				c, d := o.m.get(key), t.m.get(key)
				if cursorLess(cursorText(c), cursorText(d)) {
					c = d
				}
				entry.Set(key, c)
			case "sensitive":
				entry.Set(key, BoolValue(o.m.get(key).True() || t.m.get(key).True()))
			default:
				m.field(entry, b.m, o.m, t.m, key, "sources."+id, nil)
			}
		}
		out.Set(id, MapValue(entry))
	}
	return out
}

// items keeps every item that either side has, but one that a side removed and
// the other left as it was.
func (m *merger) items(base, ours, theirs *Map) *Map {
	out := &Map{pairs: make([]pair, 0, max(ours.Len(), theirs.Len()))}
	for _, key := range unionKeys(ours, theirs) {
		b, inBase := base.Get(key)
		o, inOurs := ours.Get(key)
		t, inTheirs := theirs.Get(key)
		switch {
		case inOurs && inTheirs && o.Equal(t):
			out.Set(key, o)
		case !inTheirs && inBase && o.Equal(b), !inOurs && inBase && t.Equal(b):
		case !inTheirs:
			out.Set(key, o)
		case !inOurs:
			out.Set(key, t)
		case o.kind != Mapping || t.kind != Mapping:
			m.field(out, base, ours, theirs, key, "items", nil)
		default:
			out.Set(key, MapValue(m.item(key, b.m, o.m, t.m)))
		}
	}
	for _, v := range out.All() {
		if v.m.str("status") == StatusClosed && !proven(v.m, m.now) {
			v.m.Set("status", StringValue(StatusFixPending))
		}
	}
	return out
}

// item merges one item by fields.
func (m *merger) item(key string, base, ours, theirs *Map) *Map {
	out := &Map{ord: itemOrder}
	into := &target{key: key, item: out, theirs: later(MapValue(theirs), MapValue(ours), "updated_at")}
	for _, field := range unionKeys(ours, theirs) {
		switch field {
		case "status", fieldFixRef, fieldMergeSHA, fieldVerified, fieldHistory:
		case "sensitive":
			if v := ours.get(field); v.True() || theirs.get(field).True() {
				out.Set(field, BoolValue(true))
			} else {
				m.field(out, base, ours, theirs, field, "", into)
			}
		case "updated_at":
			m.pick(out, field, base.get(field), ours.get(field), theirs.get(field), into.theirs)
		default:
			m.field(out, base, ours, theirs, field, "", into)
		}
	}
	m.status(out, base, ours, theirs, into)
	if v := union(Value{}, ours.get(fieldHistory), theirs.get(fieldHistory)); v.kind != Null {
		out.Set(fieldHistory, union(Value{}, v, out.get(fieldHistory)))
	}
	return out
}

// target is the item that a conflict is written down in.
type target struct {
	key    string
	item   *Map
	theirs bool // theirs says that it was updated later
}

// field merges one field into out.
func (m *merger) field(out, base, ours, theirs *Map, field, path string, into *target) {
	b, inBase := base.Get(field)
	o, inOurs := ours.Get(field)
	t, inTheirs := theirs.Get(field)
	if path != "" {
		path += "."
	}
	switch {
	case inOurs == inTheirs && o.Equal(t):
		out.Set(field, o)
	case inOurs == inBase && o.Equal(b):
		if inTheirs {
			out.Set(field, t)
		}
	case inTheirs == inBase && t.Equal(b):
		if inOurs {
			out.Set(field, o)
		}
	case !inOurs: // one side dropped what the other changed
		out.Set(field, t)
	case !inTheirs:
		out.Set(field, o)
	case o.kind == List && t.kind == List:
		out.Set(field, union(b, o, t))
	case o.kind == Mapping && t.kind == Mapping:
		inner := &Map{ord: itemOrder}
		for _, k := range unionKeys(o.m, t.m) {
			m.field(inner, b.m, o.m, t.m, k, path+field, into)
		}
		out.Set(field, MapValue(inner))
	default:
		kept, lost, side := o, t, "ours"
		if into != nil && into.theirs {
			kept, lost, side = t, o, "theirs"
		}
		out.Set(field, kept)
		m.note(into, path+field, side, lost)
	}
}

// note writes a conflict down.
func (m *merger) note(into *target, field, kept string, lost Value) {
	entry := fields("at", m.now.Text, "change", "merge conflict", "field", field, "lost", lost)
	c := Conflict{Field: field, Kept: kept}
	if into == nil {
		m.lost = append(m.lost, entry)
	} else {
		c.Key = into.key
		remember(into.item, entry)
	}
	m.conflicts = append(m.conflicts, c)
}

// union joins two lists as sets in order: ours, then what theirs added. What a
// side removed since base is gone.
func union(base, ours, theirs Value) Value {
	if ours.kind != List {
		if theirs.kind == List {
			return theirs
		}
		return ours
	}
	b, o, t := base.elements(), ours.elements(), theirs.elements()
	has := func(vs []Value, v Value) bool { return slices.ContainsFunc(vs, v.Equal) }
	var out []Value
	for _, v := range o {
		if (theirs.kind != List || has(t, v) || !has(b, v)) && !has(out, v) {
			out = append(out, v)
		}
	}
	for _, v := range t {
		if !has(b, v) && !has(out, v) {
			out = append(out, v)
		}
	}
	return listValue(out)
}
