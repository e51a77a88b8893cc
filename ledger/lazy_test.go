package ledger

import (
	"bytes"
	"testing"
)

// TestPlainItemsAreWrittenAsIfTakenApart: copying an item's lines and writing its
// values are one, in both spellings and from both readings.
func TestPlainItemsAreWrittenAsIfTakenApart(t *testing.T) {
	docs := documents(t, 300)
	docs["big"] = bigDocument(50)
	copied, apart := 0, 0
	for name, d := range docs {
		for _, written := range []Spelling{Native, Compat} {
			data := d.Bytes(written)
			for _, read := range []func([]byte) (*Document, error){Read, ReadCompat} {
				for _, s := range []Spelling{Native, Compat} {
					whole, err := read(bytes.Clone(data))
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					taken, err := read(bytes.Clone(data))
					if err != nil {
						t.Fatal(err)
					}
					for _, v := range taken.Items().All() {
						if v.m == nil {
							continue
						}
						if v.m.raw != "" {
							copied++
						} else {
							apart++
						}
						v.m.change()
					}
					if want, got := taken.Bytes(s), whole.Bytes(s); !bytes.Equal(want, got) {
						t.Fatalf("%s: copied\n%s\nwritten\n%s", name, got, want)
					}
				}
			}
		}
	}
	if copied < 400 || apart < 400 {
		t.Errorf("%d items were copied, %d taken apart", copied, apart)
	}
}

// TestChangingAPlainItem: whatever is changed is written, whatever is not stays.
func TestChangingAPlainItem(t *testing.T) {
	data := bigDocument(3).Bytes(Native)
	for name, change := range map[string]func(*Map){
		"replace": func(m *Map) { m.Set("status", StringValue("closed")) },
		"add":     func(m *Map) { m.Set("zeta", IntValue(1)) },
		"delete":  func(m *Map) { m.Delete("body") },
		"nothing": func(m *Map) { m.Get("body") },
	} {
		d, err := Read(bytes.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Read(bytes.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range e.Items().All() {
			v.m.change()
		}
		change(d.Item("slack:C42:00000001"))
		change(e.Item("slack:C42:00000001"))
		if !bytes.Equal(d.Bytes(Native), e.Bytes(Native)) || bytes.Equal(d.Bytes(Native), data) != (name == "nothing") {
			t.Errorf("%s:\n%s", name, d.Bytes(Native))
		}
		c := e.Item("slack:C42:00000001").clone()
		c.Set("only", StringValue("the clone"))
		if _, ok := e.Item("slack:C42:00000001").Get("only"); ok {
			t.Error("a change of a clone reached the item")
		}
	}
}
