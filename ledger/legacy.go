package ledger

// ImportLegacy takes what fits from an older state: cursors from channels, items
// from a list. channels maps a channel's name to a source id. What does not fit is
// skipped, a cursor never moves back, and items already here keep their fields.
func ImportLegacy(d *Document, legacy *Map, channels map[string]string) Outcome {
	o, _ := importLegacy(d, legacy, channels)
	return o
}

// Import is ImportLegacy for the native commands: an imported item that claims
// to be closed without proof becomes fix_pending.
func Import(d *Document, legacy *Map, channels map[string]string, now Now) Outcome {
	o, keys := importLegacy(d, legacy, channels)
	down := []string{}
	for _, key := range keys {
		if item := d.Item(key); item.str("status") == StatusClosed && !proven(item, now) {
			item.Set("status", StringValue(StatusFixPending))
			down = append(down, key)
		}
		d.redact(d.Item(key), sourceOf(key, d.Item(key)))
	}
	o.Payload.Set("downgraded", stringList(down))
	return o
}

func importLegacy(d *Document, legacy *Map, channels map[string]string) (o Outcome, keys []string) {
	cursors := 0
	for name, v := range legacy.get("channels").m.All() {
		if v.m == nil {
			continue
		}
		to := v.m.get("last_processed_ts")
		if to.falsy() {
			to = v.m.get("cursor")
		}
		if to.falsy() || to.kind == Mapping || to.kind == List {
			continue
		}
		source := name
		if mapped, ok := channels[name]; ok {
			source = mapped
		}
		if cursorLess(cursorText(to), cursorText(d.Sources().get(source).m.get("cursor"))) {
			continue
		}
		d.setCursor(source, StringValue(cursorText(to)))
		cursors++
	}
	for _, v := range legacy.get("items").elements() {
		if key := d.importItem(v.m); key != "" {
			keys = append(keys, key)
		}
	}
	o = done(fields("cursors_imported", cursors, "items_imported", len(keys)))
	o.changed = cursors+len(keys) > 0
	return o, keys
}

// importItem stores an item under its bare id, which it returns, "" for none.
func (d *Document) importItem(old *Map) (id string) {
	if id = cursorText(old.get("id")); id == "" {
		return ""
	}
	item := d.Item(id)
	if item == nil {
		item = &Map{ord: itemOrder}
		d.Items().Set(id, MapValue(item))
	}
	for k, v := range old.All() {
		switch k {
		case "id":
			continue
		case "channel":
			if _, ok := old.Get("source"); ok {
				continue
			}
			k = "source"
		}
		if _, ok := item.Get(k); !ok {
			item.Set(k, v)
		}
	}
	d.redactFields(item, item.str("source"))
	return id
}
