package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// bigDocument is the benchmark's ledger: 10,000 items, 3.7 MB.
func bigDocument(items int) *Document {
	d := NewDocument()
	Acquire(d, "bench", DefaultTTL, NowText("2026-07-02T12:00:00+00:00"))
	body := strings.Repeat("The export fails when the name has an umlaut. ", 4)
	for i := range items {
		item := &Map{ord: itemOrder}
		source := [...]string{"gh-issues", "slack:C42", "email: inbox"}[i%3]
		id := fmt.Sprintf("%08d", i)
		item.Set("source", StringValue(source))
		item.Set("status", StringValue([...]string{"ingested", "analyzed", "fix_pending"}[i%3]))
		item.Set("title", StringValue(fmt.Sprintf("Report %d: the café \"page\" is slow", i)))
		item.Set("url", StringValue("https://example.org/item/"+id))
		item.Set("body", StringValue(body))
		item.Set("id", StringValue(id))
		item.Set("labels", stringList([]string{"bug", "sweep"}))
		item.Set("media_attempts", IntValue(int64(i%4)))
		d.Items().Set(ItemKey(source, id), MapValue(item))
	}
	return d
}

func BenchmarkLedgerRead(b *testing.B) {
	data := bigDocument(10_000).Bytes(Native)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLedgerWrite(b *testing.B) {
	d, err := Read(bigDocument(10_000).Bytes(Native))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(d.Bytes(Native))))
	b.ReportAllocs()
	for b.Loop() {
		d.Bytes(Native)
	}
}

// TestMeasureUpsertHeap: whatever one upsert allocates in all, collected or not, is at
// most six times the file.
func TestMeasureUpsertHeap(t *testing.T) {
	f, err := OpenFile(filepath.Join(t.TempDir(), "state.yml"), Native)
	if err != nil {
		t.Fatal(err)
	}
	data := bigDocument(10_000).Bytes(Native)
	if err := os.WriteFile(f.Path(), data, 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, OK)(f.Update(t.Context(), func(d *Document) Outcome {
		return Put(d, Upsert{Writer: "bench", Source: "gh", ID: "new", Fields: fields("status", "ingested")}, at(noon))
	}))
	runtime.ReadMemStats(&after)
	times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(data))
	t.Logf("MEASURED ledger: one upsert into %d items allocates %.1f times the file (%d bytes)", 10_000, times, len(data))
	if times > 6 {
		t.Errorf("%.1f times the file", times)
	}
}

func operations(from, to int) string {
	var b strings.Builder
	body := strings.Repeat("The export fails when the name has an umlaut. ", 4)
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `{"op":"upsert","source":"gh","id":"%08d","item":{"status":"ingested","title":"Report %d","url":"https://example.org/%d","body":%q}}`+"\n", i, i, i, body)
	}
	return b.String()
}

func BenchmarkLedgerApply(b *testing.B) {
	d := NewDocument()
	Acquire(d, "w", DefaultTTL, at(noon))
	first, err := ReadOperations(strings.NewReader(operations(0, 10_000)), "w")
	if err != nil {
		b.Fatal(err)
	}
	Apply(d, first, true, at(noon))
	data, text := d.Bytes(Native), operations(5_000, 15_000)
	b.ReportAllocs()
	for b.Loop() {
		d, err := Read(data)
		if err != nil {
			b.Fatal(err)
		}
		ops, err := ReadOperations(strings.NewReader(text), "w")
		if err != nil {
			b.Fatal(err)
		}
		if _, out := Apply(d, ops, true, at(noon)); !out.OK() {
			b.Fatal(out)
		}
		d.Bytes(Native)
	}
}
