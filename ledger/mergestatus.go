package ledger

// closing is the part of an item that only makes sense together: the status and
// its proof.
type closing struct {
	status Value
	proof  [len(evidence)]Value
}

func closingOf(item *Map) (c closing) {
	c.status = item.get("status")
	for i, piece := range evidence {
		c.proof[i] = item.get(piece)
	}
	return c
}

func (c closing) equal(d closing) bool {
	if !c.status.Equal(d.status) {
		return false
	}
	return c.sameProof(d)
}

func (c closing) sameProof(d closing) bool {
	for i := range c.proof {
		if !c.proof[i].Equal(d.proof[i]) {
			return false
		}
	}
	return true
}

func (c closing) put(item *Map) {
	if c.status.kind != Null {
		item.Set("status", c.status)
	}
	for i, piece := range evidence {
		if c.proof[i].kind != Null {
			item.Set(piece, c.proof[i])
		}
	}
}

func (c closing) entry(now Now, change string) *Map {
	e := fields("at", now.Text, "change", change, "status", c.status)
	for i, piece := range evidence {
		if c.proof[i].kind != Null {
			e.Set(piece, c.proof[i])
		}
	}
	return e
}

// status merges the status with its proof.
func (m *merger) status(out, base, ours, theirs *Map, into *target) {
	b, o, t := closingOf(base), closingOf(ours), closingOf(theirs)
	kept, lost, side := o, t, "ours"
	swap := func() { kept, lost, side = t, o, "theirs" }
	po, pt := proven(ours, m.now), proven(theirs, m.now)
	switch {
	case o.equal(t):
		o.put(out)
		return
	case po && pt:
		if later(MapValue(theirs), MapValue(ours), fieldVerified) {
			swap()
		}
	case po:
		if reopened(theirs, o) {
			swap()
			kept.put(out)
			return // the reopening has the evidence in its history
		}
		if t.equal(b) || t.status.Equal(b.status) && base != nil {
			o.put(out)
			return // an older copy, not a change
		}
	case pt:
		if reopened(ours, t) {
			kept.put(out)
			return
		}
		swap()
		if o.equal(b) || o.status.Equal(b.status) && base != nil {
			kept.put(out)
			return
		}
	case o.equal(b):
		t.put(out)
		return
	case t.equal(b):
		o.put(out)
		return
	case into.theirs:
		swap()
	}
	kept.put(out)
	remember(out, lost.entry(m.now, "merge conflict"))
	m.conflicts = append(m.conflicts, Conflict{Key: into.key, Field: "status", Kept: side})
}

// reopened reports an item whose history says that just this close was taken
// back: it is newer than the close.
func reopened(item *Map, c closing) bool {
	if item.str("status") == StatusClosed {
		return false
	}
	for _, e := range item.get(fieldHistory).elements() {
		if e.m.str("change") == "reopened" && closingOf(e.m).sameProof(c) {
			return true
		}
	}
	// A hand edit or the older engine reopens without a history, but says so
	// with the one status that means it and leaves the evidence in place.
	return item.str("status") == StatusFixPending && closingOf(item).sameProof(c)
}
