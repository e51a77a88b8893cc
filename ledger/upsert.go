package ledger

// Upsert is one item to put into the ledger.
type Upsert struct {
	Writer, Source, ID string
	Fields             *Map
	// Reopen lets any status open a proven close again (native only).
	Reopen bool

	source, id Value // Source and ID as values, where they came as such
}

// ItemKey is the key of an item.
func ItemKey(source, id string) string { return source + ":" + id }

// upsert merges the fields into the item: keys that are sent are replaced, all
// others stay, source and id are always the arguments'. It is the older engine's
// rule and the core of the native one.
func upsert(d *Document, op Upsert, now Now) Outcome {
	key := ItemKey(op.Source, op.ID)
	item := d.Item(key)
	if item == nil {
		item = &Map{ord: itemOrder, pairs: make([]pair, 0, op.Fields.Len()+2)}
		d.Items().Set(key, MapValue(item))
	}
	for k, v := range op.Fields.All() {
		item.Set(k, v)
	}
	item.Set("source", StringValue(op.Source))
	item.Set("id", StringValue(op.ID))
	d.redactFields(item, op.Source)
	d.stamp(now)
	return done(nil)
}
