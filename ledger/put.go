package ledger

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKey is how long YAML lets a key be, quotes included.
const maxKey = 1024

// Put is the native upsert: the older engine's merge by id, and on top of it the
// rules that keep a ledger honest. An item that claims to be closed must be
// proven. A proven close is not undone by an old copy: only fix_pending, or
// Reopen, opens it again, and its evidence goes into the history. The payload
// says what was kept and what was dropped.
func Put(d *Document, op Upsert, now Now) Outcome {
	key := ItemKey(op.Source, op.ID)
	return put(d, op, now, fields("key", key, "created", d.Item(key) == nil))
}

func put(d *Document, op Upsert, now Now, payload *Map) Outcome {
	if o, ok := d.owned(op.Writer); !ok {
		return o
	}
	key := ItemKey(op.Source, op.ID)
	if reason := op.problem(key); reason != "" {
		return refuse(Failed, reason, "correct the operation and send it again")
	}
	out := done(payload)
	say := func(k string, v Value) {
		if out.Payload == nil {
			out.Payload = &Map{}
		}
		out.Payload.Set(k, v)
	}
	item := d.Item(key).clone()
	if item == nil {
		item = &Map{ord: itemOrder, pairs: make([]pair, 0, op.Fields.Len()+2)}
	}
	status, changes := op.Fields.get("status").Str()
	if changes && status != StatusClosed && proven(item, now) {
		if status == StatusFixPending || op.Reopen {
			takeBack(item, "reopened", op.Writer, "", now)
		} else {
			say("kept", MapValue(fields("status", StatusClosed)))
			say("dropped", MapValue(fields("status", status)))
			op = op.without("status", fieldFixRef, fieldMergeSHA, fieldVerified)
		}
	}
	d.size += 2*len(key) + 64 // what the file will grow by, or a little more
	for k, v := range op.Fields.All() {
		item.Set(k, v)
		d.size += len(k) + len(v.text) + 8
	}
	if op.touchesEvidence() && item.str("status") == StatusClosed {
		if problems := unproven(item, now, 0); problems != nil {
			return refuse(Refused, "closed without proof: "+strings.Join(problems, "; "),
				"send all three pieces of evidence, or the status "+StatusFixPending)
		}
	}
	if op.source.kind != String {
		op.source, op.id = StringValue(op.Source), StringValue(op.ID)
	}
	item.Set("source", op.source)
	item.Set("id", op.id)
	if dropped := d.redact(item, op.Source); dropped != nil {
		say("redacted", stringList(dropped))
	}
	d.Items().Set(key, MapValue(item))
	d.stamp(now)
	return out
}

func (op Upsert) without(keys ...string) Upsert {
	op.Fields = op.Fields.clone()
	for _, k := range keys {
		op.Fields.Delete(k)
	}
	return op
}

func (op Upsert) touchesEvidence() bool {
	for _, k := range [...]string{"status", fieldFixRef, fieldMergeSHA, fieldVerified} {
		if _, ok := op.Fields.Get(k); ok {
			return true
		}
	}
	return false
}

// problem says why the operation cannot be one, without any of its values.
func (op Upsert) problem(key string) string {
	switch {
	case op.Source == "" || op.ID == "":
		return "the source and the id must not be empty"
	case !utf8.ValidString(key):
		return "the source or the id is not UTF-8"
	case op.Fields == nil:
		return "the item is not a JSON object"
	case len(key) > maxKey/2 && columns(key) > maxKey/2:
		return fmt.Sprintf("source and id together are longer than %d characters", maxKey/2)
	}
	if _, ok := op.Fields.Get(fieldHistory); ok {
		return "the field history is the ledger's own"
	}
	if v, ok := op.Fields.Get("sensitive"); ok && v.kind != Bool {
		return "the field sensitive is not true or false"
	}
	if v, ok := op.Fields.Get("status"); ok {
		if s, text := v.Str(); !text || blank(s) {
			return "the field status is blank or no string"
		}
	}
	return longKey(MapValue(op.Fields))
}

// longKey finds a key that YAML parsers would refuse to read back.
func longKey(v Value) string {
	if v.kind != List && v.kind != Mapping {
		return ""
	}
	for _, e := range v.elements() {
		if reason := longKey(e); reason != "" {
			return reason
		}
	}
	for k, e := range v.m.All() {
		if len(k) > maxKey/8 && columns(string(appendPortable(nil, string(appendQuoted(nil, k))))) > maxKey {
			return fmt.Sprintf("a key is longer than %d characters", maxKey)
		}
		if reason := longKey(e); reason != "" {
			return reason
		}
	}
	return ""
}
