package ledger

import (
	"slices"
	"strings"
)

// NotFound answers an operation on an item that is not in the ledger.
const NotFound Word = "NOT-FOUND"

// Find returns the key of the item that a person named: its key, or its id where
// no other item has that id.
func (d *Document) Find(name string) (key string, o Outcome) {
	if _, ok := d.Items().Get(name); ok {
		return name, Outcome{}
	}
	var keys []string
	for k, v := range d.Items().All() {
		if v.m.str("id") == name {
			keys = append(keys, k)
		}
	}
	switch len(keys) {
	case 1:
		return keys[0], Outcome{}
	case 0:
		return "", refuse(NotFound, "no item "+clip(name), "'beeyard ledger list' names the items")
	}
	slices.Sort(keys)
	for i := range keys {
		keys[i] = clip(keys[i])
	}
	return "", refuse(Refused, "more than one item has that id: "+strings.Join(keys[:min(len(keys), 5)], ", "), "name one of them by its key")
}

// mayEdit is the right to a single change outside a sweep. A writer that is named
// must hold the lease; a person who names none may edit while nobody's live lease
// is in the way.
func (d *Document) mayEdit(writer string, now Now) (o Outcome, ok bool) {
	if writer != "" {
		return d.owned(writer)
	}
	if l, held := d.Lease(); held && !l.Stale(now) {
		return locked(l), false
	}
	return Outcome{}, true
}

func (d *Document) stampFor(writer string, now Now) {
	if writer != "" {
		d.stamp(now)
	}
}

// Close closes an item with proof. Malformed evidence is refused; that of an
// earlier close which differs goes into the history.
func Close(d *Document, name, writer string, e Evidence, now Now) Outcome {
	if o, ok := d.mayEdit(writer, now); !ok {
		return o
	}
	key, o := d.Find(name)
	if key == "" {
		return o
	}
	item := d.Item(key)
	if item == nil {
		return refuse(Refused, "the item is not a map", "")
	}
	if problems := unproven(e.fields(), now, 0); problems != nil {
		return refuse(Refused, strings.Join(problems, "; "), "give the merged fix, its full commit hash and when it was verified")
	}
	same := item.str("status") == StatusClosed
	for k, v := range e.fields().All() {
		same = same && item.get(k).Equal(v)
	}
	if same {
		return Outcome{Word: OK, Payload: fields("key", key)}
	}
	if proven(item, now) {
		takeBack(item, "closed again", writer, "", now)
	}
	for k, v := range e.fields().All() {
		item.Set(k, v)
	}
	item.Set("status", StringValue(StatusClosed))
	d.stampFor(writer, now)
	return done(fields("key", key))
}

// Reopen takes back a close that was found to be false: the item is fix_pending
// and its evidence goes into the history.
func Reopen(d *Document, name, writer, reason string, now Now) Outcome {
	if o, ok := d.mayEdit(writer, now); !ok {
		return o
	}
	key, o := d.Find(name)
	if key == "" {
		return o
	}
	item := d.Item(key)
	if item.str("status") != StatusClosed {
		return refuse(Refused, "the item is not closed", "")
	}
	takeBack(item, "reopened", writer, reason, now)
	item.Set("status", StringValue(StatusFixPending))
	d.stampFor(writer, now)
	return done(fields("key", key))
}
