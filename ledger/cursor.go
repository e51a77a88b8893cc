package ledger

import (
	"strings"
)

// CursorMove moves a source's cursor past an item that is in the ledger.
type CursorMove struct {
	Writer, Source, To, PastItem string
	// Force lets the cursor move back. The older engine has no such thing.
	Force bool
}

// Cursor answers where a source's cursor stands, null when it never moved.
func Cursor(d *Document, source string) Outcome {
	return Outcome{Word: OK, Payload: fields("cursor", d.Sources().get(source).m.get("cursor"))}
}

// Advance moves a cursor. The lease must be the writer's; items go first and the
// cursor second, so an item that the cursor would pass unseen is refused.
func Advance(d *Document, op CursorMove, now Now) Outcome {
	if o, ok := d.owned(op.Writer); !ok {
		return o
	}
	items := d.Items()
	if _, ok := items.Get(ItemKey(op.Source, op.PastItem)); !ok {
		if _, bare := items.Get(op.PastItem); !bare {
			return refuse(Refused, "the item to move past is not in the ledger", "upsert the item first, then move the cursor")
		}
	}
	source := d.Sources().get(op.Source).m
	if cursorLess(op.To, cursorText(source.get("cursor"))) && !op.Force {
		return refuse(Refused, "the cursor would move back", "read it with 'beeyard ledger cursor'; --force moves it back on purpose")
	}
	d.setCursor(op.Source, StringValue(op.To))
	d.stamp(now)
	return done(nil)
}

func (d *Document) setCursor(id string, to Value) {
	source := d.Sources().get(id).m
	if source == nil {
		source = &Map{ord: itemOrder}
		d.Sources().Set(id, MapValue(source))
	}
	source.Set("cursor", to)
}

// cursorText is a cursor as text, "" when there is none.
func cursorText(v Value) string {
	if s, ok := v.Str(); ok {
		return s
	}
	return v.text
}

// cursorLess orders cursors: two of digits only as numbers of any length, all
// others as text. No cursor is before every other.
func cursorLess(a, b string) bool {
	if b == "" {
		return false
	}
	if digitsOnly(a) && digitsOnly(b) {
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		if len(a) != len(b) {
			return len(a) < len(b)
		}
	}
	return a < b
}

func digitsOnly(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
