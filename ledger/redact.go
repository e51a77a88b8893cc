package ledger

import (
	"slices"
	"strings"
)

// private are the fields that a sensitive item must not keep.
var private = [...]string{"body", "quote"}

func (d *Document) sensitive(item *Map, source string) bool {
	return item.get("sensitive").True() || d.Sources().get(source).m.get("sensitive").True()
}

// redactFields drops what a sensitive item must not keep, as the older engine
// does. It runs before anything is written anywhere.
func (d *Document) redactFields(item *Map, source string) (dropped []string) {
	if !d.sensitive(item, source) {
		return nil
	}
	for _, key := range private {
		if _, ok := item.Get(key); ok {
			item.Delete(key)
			dropped = append(dropped, key)
		}
	}
	return dropped
}

// redact also cleans the history, which only the native commands write.
func (d *Document) redact(item *Map, source string) (dropped []string) {
	dropped = d.redactFields(item, source)
	if d.sensitive(item, source) && redactHistory(item) {
		dropped = append(dropped, fieldHistory)
	}
	return dropped
}

// sourceOf is the source an item belongs to: its field, or the start of its key.
func sourceOf(key string, item *Map) string {
	if s, ok := item.get("source").Str(); ok {
		return s
	}
	source, _, _ := strings.Cut(key, ":")
	return source
}

// Redact cleans every item that is sensitive by itself or by its source, stored
// before that was known. A source that is named is marked sensitive first.
func Redact(d *Document, source string) Outcome {
	changed := false
	if source != "" {
		entry := d.Sources().get(source).m
		if entry == nil {
			entry = &Map{ord: itemOrder}
			d.Sources().Set(source, MapValue(entry))
		}
		if !entry.get("sensitive").True() {
			entry.Set("sensitive", BoolValue(true))
			changed = true
		}
	}
	cleaned := d.redactAll()
	return Outcome{Word: OK, Payload: fields("redacted", cleaned), changed: changed || len(cleaned) > 0}
}

func (d *Document) redactAll() (cleaned []string) {
	for key, v := range d.Items().All() {
		if v.m != nil && len(d.redact(v.m, sourceOf(key, v.m))) > 0 {
			cleaned = append(cleaned, key)
		}
	}
	slices.Sort(cleaned)
	return cleaned
}
