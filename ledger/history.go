package ledger

// fieldHistory is where an item keeps what would otherwise be lost: the evidence
// of a close that was taken back, the losing side of a merge. It is a list of
// maps, oldest first, each with "at" and "change".
const fieldHistory = "history"

// remember appends an entry to the item's history.
func remember(item *Map, entry *Map) {
	old := item.get(fieldHistory)
	vs := old.elements()
	if old.kind != List && old.kind != Null { // a connector's own field of that name
		vs = append(vs, old)
	}
	item.Set(fieldHistory, listValue(append(vs, MapValue(entry))))
}

// takeBack moves an item's evidence into its history and leaves the rest.
func takeBack(item *Map, change, by, reason string, now Now) {
	entry := fields("at", now.Text, "change", change, "status", item.get("status"))
	if by != "" {
		entry.Set("by", StringValue(by))
	}
	if reason != "" {
		entry.Set("reason", StringValue(reason))
	}
	for _, piece := range evidence {
		if v, ok := item.Get(piece); ok {
			entry.Set(piece, v)
			item.Delete(piece)
		}
	}
	remember(item, entry)
}

// redactHistory drops body and quote wherever an entry holds them.
func redactHistory(item *Map) bool {
	vs := item.get(fieldHistory).elements()
	dropped := false
	for _, v := range vs {
		for _, key := range private {
			if _, ok := v.m.Get(key); ok {
				v.m.Delete(key)
				dropped = true
			}
		}
		if field := v.m.str("field"); field == "body" || field == "quote" {
			for _, key := range [...]string{"kept", "lost"} {
				if _, ok := v.m.Get(key); ok {
					v.m.Delete(key)
					dropped = true
				}
			}
		}
	}
	if dropped {
		item.Set(fieldHistory, listValue(vs))
	}
	return dropped
}
