package ledger

// ImportLegacy takes what fits from an older state: cursors from channels, items
// from a list. channels maps a channel's name to a source id. What does not fit is
// skipped, a cursor never moves back, and items already here keep their fields.
func ImportLegacy(d *Document, legacy *Map, channels map[string]string) Outcome {
	cursors, items := 0, 0
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
		if d.importItem(v.m) {
			items++
		}
	}
	o := done(fields("cursors_imported", cursors, "items_imported", items))
	o.changed = cursors+items > 0
	return o
}

func (d *Document) importItem(old *Map) bool {
	id := cursorText(old.get("id"))
	if id == "" {
		return false
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
	d.redact(item, item.str("source"))
	return true
}
