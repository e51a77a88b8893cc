package ledger

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"beeyard"
)

func owned(t *testing.T) *Document {
	t.Helper()
	d := crashLedger()
	if out := Acquire(d, "w1", 60, at(noon)); !out.OK() {
		t.Fatal(out)
	}
	return d
}

func putGH(d *Document, id string, m *Map) Outcome {
	return Put(d, Upsert{Writer: "w1", Source: "gh", ID: id, Fields: m}, at(noon))
}

func TestUpsertMergesById(t *testing.T) {
	d := owned(t)
	putGH(d, "7", fields("status", "ingested", "title", "T", "x_custom", []string{"a"}, "source", "liar", "id", "liar"))
	out := putGH(d, "7", fields("status", "some_future_status"))
	item := d.Item("gh:7")
	if !out.OK() || item.str("title") != "T" || item.str("status") != "some_future_status" || item.str("source") != "gh" || item.str("id") != "7" || item.get("x_custom").kind != List {
		t.Errorf("%v %#v", out, MapValue(item))
	}
}

func TestUpsertRefusesWhatIsNoItem(t *testing.T) {
	before := owned(t).Bytes(Native)
	for name, op := range map[string]Upsert{
		"no id":            {Writer: "w1", Source: "gh", Fields: &Map{}},
		"no source":        {Writer: "w1", ID: "1", Fields: &Map{}},
		"bad UTF-8":        {Writer: "w1", Source: "gh", ID: "\xff", Fields: &Map{}},
		"no object":        {Writer: "w1", Source: "gh", ID: "1"},
		"history":          {Writer: "w1", Source: "gh", ID: "1", Fields: fields("history", "x")},
		"sensitive a word": {Writer: "w1", Source: "gh", ID: "1", Fields: fields("sensitive", "yes")},
		"status a number":  {Writer: "w1", Source: "gh", ID: "1", Fields: fields("status", 1)},
		"status blank":     {Writer: "w1", Source: "gh", ID: "1", Fields: fields("status", " ")},
		"long key":         {Writer: "w1", Source: "gh", ID: "1", Fields: fields(strings.Repeat("k k", 400), 1)},
		"long key inside":  {Writer: "w1", Source: "gh", ID: "1", Fields: fields("a", listValue([]Value{MapValue(fields(strings.Repeat("é", 1100), 1))}))},
		"long id":          {Writer: "w1", Source: "gh", ID: strings.Repeat("i", 2000), Fields: &Map{}},
	} {
		d := owned(t)
		if out := Put(d, op, at(noon)); out.Word != Failed || out.Reason == "" {
			t.Errorf("%s: %+v", name, out)
		}
		if !bytes.Equal(d.Bytes(Native), before) {
			t.Errorf("%s: the document changed", name)
		}
	}
}

// badEvidence are closes that prove nothing.
var badEvidence = map[string]Evidence{
	"no ref": {"", sha, noon}, "ref of spaces": {" \t\u00a0", sha, noon}, "ref invisible": {"\u200b\u2060", sha, noon},
	"no sha": {"#1", "", noon}, "short": {"#1", "abc", noon}, "HEAD": {"#1", "HEAD", noon}, "39": {"#1", sha[1:], noon}, "41": {"#1", sha + "0", noon},
	"63": {"#1", sha + sha[:23], noon}, "upper case": {"#1", strings.ToUpper(sha), noon}, "not hex": {"#1", "g" + sha[1:], noon}, "newline": {"#1", sha[1:] + "\n", noon},
	"no time": {"#1", sha, ""}, "not a date": {"#1", sha, "yesterday"}, "future": {"#1", sha, "2026-07-02T12:00:01Z"}, "far future": {"#1", sha, "9999-01-01T00:00:00Z"},
}

func TestClosedNeedsProofAtEveryDoor(t *testing.T) {
	for name, e := range badEvidence {
		d := owned(t)
		before := d.Bytes(Native)
		if out := Close(d, "gh:1", "w1", e, at(noon)); out.Word != Refused {
			t.Errorf("close, %s: %s", name, out.Word)
		}
		m := e.fields()
		m.Set("status", StringValue(StatusClosed))
		if out := putGH(d, "1", m); out.Word != Refused {
			t.Errorf("upsert, %s: %s", name, out.Word)
		}
		if !bytes.Equal(d.Bytes(Native), before) {
			t.Errorf("%s: the document changed", name)
		}
		for _, piece := range evidence { // a hand edit
			d.Item("gh:3").Set(piece, m.get(piece))
		}
		if name == "future" {
			continue // within what clocks of two machines may differ
		}
		out := Validate(d, at(noon))
		if d.Item("gh:3").str("status") != StatusFixPending || !strings.Contains(string(appendJSON(nil, MapValue(out.Payload))), "gh:3") {
			t.Errorf("validate, %s: %#v", name, MapValue(out.Payload))
		}
		merged, _ := Merge(nil, closedBy(e), NewDocument(), at(noon))
		if s := merged.Item("gh:1").str("status"); s != StatusFixPending {
			t.Errorf("merge, %s: %s", name, s)
		}
	}
	for _, hash := range []string{sha, sha + sha[:24]} {
		d := owned(t)
		if out := Close(d, "1", "w1", Evidence{"#1", hash, "2026-07-02T14:00:00+02:00"}, at(noon)); out.Word != Refused || !strings.Contains(out.Reason, "gh:1") {
			t.Errorf("an id that two items have: %+v", out)
		}
		if out := Close(d, "2", "w1", Evidence{"#1", hash, "2026-07-02T14:00:00+02:00"}, at(noon)); !out.OK() || d.Item("gh:2").str("status") != StatusClosed {
			t.Errorf("%+v", out)
		}
		if out := Validate(d, at(noon)); out.changed {
			t.Errorf("%#v", MapValue(out.Payload))
		}
		if out := Close(d, "nobody", "w1", Evidence{"#1", hash, noon}, at(noon)); !errors.Is(out.Err("close", ""), beeyard.ErrNotFound) {
			t.Errorf("%+v", out)
		}
	}
}

func closedBy(e Evidence) *Document {
	d := NewDocument()
	m := e.fields()
	m.Set("status", StringValue(StatusClosed))
	d.Items().Set("gh:1", MapValue(m))
	return d
}

func TestOldCopyDoesNotOpenAProvenClose(t *testing.T) {
	d := owned(t)
	out := putGH(d, "3", fields("status", "ingested", "title", "new title", "fix_ref", ""))
	item := d.Item("gh:3")
	if !out.OK() || item.str("status") != StatusClosed || item.str("title") != "new title" || item.str("fix_ref") != "#3" {
		t.Errorf("%+v %#v", out, MapValue(item))
	}
	if got := string(appendJSON(nil, MapValue(out.Payload))); !strings.Contains(got, `"dropped": {"status": "ingested"}`) {
		t.Errorf("it does not say what was dropped: %s", got)
	}
	if out := putGH(d, "3", fields("fix_ref", "")); out.Word != Refused {
		t.Errorf("taking the proof away: %s", out.Word)
	}
	for name, reopen := range map[string]func(d *Document) Outcome{
		"upsert": func(d *Document) Outcome { return putGH(d, "3", fields("status", StatusFixPending)) },
		"flag": func(d *Document) Outcome {
			return Put(d, Upsert{Writer: "w1", Source: "gh", ID: "3", Fields: fields("status", StatusFixPending), Reopen: true}, at(noon))
		},
		"command": func(d *Document) Outcome { return Reopen(d, "gh:3", "w1", "fails again", at(noon)) },
	} {
		d := owned(t)
		if out := reopen(d); !out.OK() {
			t.Fatalf("%s: %+v", name, out)
		}
		item := d.Item("gh:3")
		history := item.get(fieldHistory).elements()
		if item.str("status") != StatusFixPending || item.get(fieldMergeSHA).kind != Null || len(history) != 1 || history[0].m.str(fieldMergeSHA) != sha || history[0].m.str("fix_ref") != "#3" {
			t.Errorf("%s: %#v", name, MapValue(item))
		}
		if changes := History(d, "gh:3"); len(changes) != 1 || changes[0].Entry.m.str("change") != "reopened" {
			t.Errorf("%s: %+v", name, changes)
		}
	}
}

func TestPersonMayEditWhileNobodySweeps(t *testing.T) {
	d := owned(t)
	e := Evidence{"#1", sha, noon}
	if out := Close(d, "gh:1", "", e, at(noon)); out.Word != Locked {
		t.Errorf("against a live lease: %s", out.Word)
	}
	if out := Close(d, "gh:1", "", e, at("2026-07-02T13:00:01Z")); !out.OK() {
		t.Errorf("after it ran out: %+v", out)
	}
	d = crashLedger()
	Release(d, "w1")
	if out := Close(d, "gh:1", "", e, at(noon)); !out.OK() || d.holds("") {
		t.Errorf("without a lease: %+v", out)
	}
	if out := Close(d, "gh:1", "w1", e, at(noon)); out.Word != LeaseLost {
		t.Errorf("with a writer that has none: %s", out.Word)
	}
}

func TestCursors(t *testing.T) {
	huge := "9223372036854775808" // 2^63
	for _, c := range []struct {
		from, to string
		want     Word
	}{
		{"9", "10", OK}, {"10", "9", Refused}, {"10", "10", OK}, {huge, huge + "0", OK}, {huge, "9223372036854775807", Refused},
		{"0009", "10", OK}, {"a:b", "a:c", OK}, {"b", "a", Refused}, {"10", "9a", OK}, {"日本", "ключ", Refused}, {"", "", OK}, {"1", "", Refused},
	} {
		d := owned(t)
		d.setCursor("gh", StringValue(c.from))
		move := CursorMove{Writer: "w1", Source: "gh", To: c.to, PastItem: "1"}
		if out := Advance(d, move, at(noon)); out.Word != c.want {
			t.Errorf("%q to %q: %s", c.from, c.to, out.Word)
		}
		move.Force = true
		if out := Advance(d, move, at(noon)); !out.OK() {
			t.Errorf("%q to %q by force: %s", c.from, c.to, out.Word)
		}
	}
	d := owned(t)
	// Two sources whose names differ by case alone.
	putGH(d, "5", &Map{})
	Put(d, Upsert{Writer: "w1", Source: "GH", ID: "5", Fields: &Map{}}, at(noon))
	Advance(d, CursorMove{Writer: "w1", Source: "GH", To: "500", PastItem: "5"}, at(noon))
	if got := Cursor(d, "gh").Payload.str("cursor"); got != "10" {
		t.Errorf("the other source's cursor is %q", got)
	}
	if out := Advance(d, CursorMove{Writer: "w1", Source: "gh", To: "99", PastItem: "unseen"}, at(noon)); out.Word != Refused {
		t.Errorf("past an item that was never stored: %s", out.Word)
	}
}

// TestCanary: what a sensitive item says is found nowhere.
func TestCanary(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFile(filepath.Join(dir, "state.yml"), Native)
	if err != nil {
		t.Fatal(err)
	}
	var seen strings.Builder
	say := func(out Outcome, err error) {
		data, jerr := MapValue(out.Payload).MarshalJSON()
		if jerr != nil {
			t.Fatal(jerr)
		}
		seen.WriteString(string(out.Word) + out.Reason + out.Next + string(data))
		if err := errors.Join(err, out.Err("op", "id")); err != nil {
			seen.WriteString(err.Error() + beeyard.HintOf(err))
		}
	}
	ctx := t.Context()
	say(f.Update(ctx, func(d *Document) Outcome {
		d.Sources().Set("mail", MapValue(fields("sensitive", true)))
		return Acquire(d, "w1", 60, at(noon))
	}))
	nested := MapValue(fields("deep", listValue([]Value{MapValue(fields("k", canary))})))
	for _, secret := range []Value{StringValue(canary), nested} {
		for _, source := range []string{"mail", "gh"} {
			m := fields("status", "ingested", "body", secret, "quote", secret)
			if source == "gh" {
				m.Set("sensitive", BoolValue(true))
			}
			say(f.Update(ctx, func(d *Document) Outcome {
				return Put(d, Upsert{Writer: "w1", Source: source, ID: "1", Fields: m}, at(noon))
			}))
			say(f.Update(ctx, func(d *Document) Outcome {
				bad := m.clone()
				bad.Set("status", StringValue(StatusClosed))
				return Put(d, Upsert{Writer: "w1", Source: source, ID: "1", Fields: bad}, at(noon))
			}))
		}
	}
	text := `{"op":"upsert","source":"mail","id":"2","item":{"body":"` + canary + `"}}` + "\n" +
		`{"op":"upsert","source":"mail","id":"3","item":{"body":"` + canary + "\n" + // fails to parse
		`{"op":"` + canary + `"}` + "\n" + `{"op":"upsert","source":"mail","id":"4","body":"` + canary + `"}` + "\n"
	ops, err := ReadOperations(strings.NewReader(text), "w1")
	if err != nil {
		t.Fatal(err)
	}
	answers, out, err := f.Apply(ctx, ops, false, at(noon))
	say(out, err)
	for _, a := range answers {
		line, err := a.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(line)
	}
	if strings.Contains(seen.String(), canary) {
		t.Errorf("an answer holds it: %s", seen.String())
	}
	nowhere(t, dir)
	if d, err := f.Load(); err != nil || d.Item("mail:2") == nil || d.Item("mail:3") != nil {
		t.Errorf("%v", err)
	}
}

func nowhere(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s holds it", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestRedactCleansWhatWasStoredBefore(t *testing.T) {
	d := owned(t)
	putGH(d, "1", fields("body", canary))
	Put(d, Upsert{Writer: "w1", Source: "mail", ID: "1", Fields: fields("body", canary, "quote", canary, "title", "T")}, at(noon))
	remember(d.Item("mail:1"), fields("at", noon, "change", "merge conflict", "field", "body", "lost", canary))
	d.Items().Set("bare", MapValue(fields("source", "mail", "body", canary)))
	out := Redact(d, "mail")
	if got := string(appendJSON(nil, out.Payload.get("redacted"))); got != `["bare", "mail:1"]` {
		t.Errorf("redacted %s", got)
	}
	if d.Item("gh:1").str("body") != canary {
		t.Error("an item that is not sensitive was touched")
	}
	d.Items().Delete("gh:1")
	if bytes.Contains(d.Bytes(Native), []byte(canary)) || d.Item("mail:1").str("title") != "T" {
		t.Errorf("%s", d.Bytes(Native))
	}
	if out := Redact(d, ""); out.changed {
		t.Errorf("a second time: %+v", out)
	}
}

func TestApplyStandsOrFalls(t *testing.T) {
	text := `{"op":"upsert","source":"gh","id":"a","item":{"status":"ingested"}}` + "\n\n" +
		`{"op":"cursor","source":"gh","to":"20","past_item":"unseen"}` + "\n" +
		`{"op":"cursor","source":"gh","to":"20","past_item":"a"}`
	for _, atomic := range []bool{false, true} {
		ops, err := ReadOperations(strings.NewReader(text), "w1")
		if err != nil {
			t.Fatal(err)
		}
		answers, out := Apply(owned(t), ops, atomic, at(noon))
		var words []string
		for _, a := range answers {
			words = append(words, string(a.Outcome.Word))
		}
		got := strings.Join(words, " ")
		if atomic && (got != "ROLLED-BACK REFUSED ROLLED-BACK" || out.changed) || !atomic && (got != "OK REFUSED OK" || !out.changed) || out.Word != Refused {
			t.Errorf("atomic %v: %s, %+v", atomic, got, out)
		}
		if answers[1].Line != 3 {
			t.Errorf("line %d", answers[1].Line)
		}
	}
}

func TestApplyRefusesWhatIsNoOperation(t *testing.T) {
	for _, line := range []string{"[1]", "nope", `{"op":"drop"}`, `{"op":"upsert","source":"s","id":1,"item":{}}`, `{"op":"upsert","source":"s","id":"1","item":[]}`,
		`{"op":"upsert","source":"s","id":"1","item":{},"forse":true}`, `{"op":"cursor","source":"s","to":"1","past_item":"1","force":"yes"}`,
		`{"op":"upsert","source":"s","id":"1","item":{"a":1,"a":2}}`, `{"op":"upsert","source":"s","id":"1","item":{"a":"\ud800"}}`} {
		ops, err := ReadOperations(strings.NewReader(line), "w1")
		if err != nil || len(ops) != 1 {
			t.Fatalf("%s: %v", line, err)
		}
		if answers, out := Apply(owned(t), ops, false, at(noon)); answers[0].Outcome.Word != Failed || out.changed {
			t.Errorf("%s: %+v", line, answers[0])
		}
	}
	long := io.MultiReader(strings.NewReader(`{"op":"`), strings.NewReader(strings.Repeat("x", maxOperation+1)))
	if _, err := ReadOperations(long, "w1"); !errors.Is(err, beeyard.ErrUsage) {
		t.Errorf("a line that does not end: %v", err)
	}
}

func TestImport(t *testing.T) {
	legacy, err := ParseJSON([]byte(`{"channels":{"C1":{"cursor":"5"},"C2":{"last_processed_ts":"9"},"odd":3},
		"items":[{"id":"a","channel":"C1","status":"closed","title":"T"},{"id":7,"source":"s","body":"b"},{"status":"x"},4]}`))
	if err != nil {
		t.Fatal(err)
	}
	d := NewDocument()
	d.setCursor("two", StringValue("10"))
	d.Items().Set("a", MapValue(fields("title", "mine")))
	out := Import(d, legacy.m, map[string]string{"C2": "two"}, at(noon))
	if got := string(appendJSON(nil, MapValue(out.Payload))); got != `{"cursors_imported": 1, "downgraded": ["a"], "items_imported": 2}` {
		t.Error(got)
	}
	if got := string(appendJSON(nil, MapValue(d.Items()))); got != `{"7": {"body": "b", "source": "s"}, "a": {"source": "C1", "status": "fix_pending", "title": "mine"}}` {
		t.Error(got)
	}
	if d.Sources().get("two").m.str("cursor") != "10" || d.Sources().get("C1").m.str("cursor") != "5" {
		t.Error("cursors")
	}
}

func TestCheckGoesByTheWritersRules(t *testing.T) {
	f, err := OpenFile(filepath.Join(t.TempDir(), "state.yml"), Native)
	if err != nil {
		t.Fatal(err)
	}
	codes := func(now string) string {
		t.Helper()
		ps, err := Check(f, at(now))
		if err != nil {
			t.Fatal(err)
		}
		var cs []string
		for _, p := range ps {
			cs = append(cs, strings.TrimPrefix(p.Code, "ledger-"))
			if p.Next == "" {
				t.Errorf("%s has no next step", p.Code)
			}
		}
		return strings.Join(cs, " ")
	}
	if got := codes(noon); got != "missing" {
		t.Error(got)
	}
	d := crashLedger()
	d.Sources().Set("mail", MapValue(fields("sensitive", true)))
	for _, c := range []struct{ stamp, now, want string }{
		{noon, noon, "unproven private"}, {noon, "2026-07-02T13:00:01Z", "lease-stale unproven private"}, {"x", noon, "lease-unreadable unproven private"},
	} {
		Acquire(d, "w1", 60, at(c.stamp))
		if err := os.WriteFile(f.Path(), d.Bytes(Native), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := codes(c.now); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if err := os.WriteFile(f.Path(), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := codes(noon); got != "corrupt" {
		t.Error(got)
	}
}

func TestViews(t *testing.T) {
	d := owned(t)
	putGH(d, "old", fields("status", "ingested", "title", "Old one", "created_at", "2020-01-01T00:00:00+02:00"))
	putGH(d, "chat", fields("status", "ingested", "ts", "1577000000.000100"))
	s := StatusOf(d, at("2026-07-02T12:10:00Z"))
	if s.Items != 6 || s.Closed != 2 || s.Open != 4 || len(s.Sources) != 2 || s.Lease.Writer != "w1" || s.Lease.Stale || s.Lease.Until != "2026-07-02T13:00:00+00:00" {
		t.Errorf("%+v %+v", s, s.Lease)
	}
	var keys []string
	for _, r := range Rows(d, Filter{Open: true}) {
		keys = append(keys, r.Key)
	}
	if got := strings.Join(keys, " "); got != "gh:chat gh:old gh:1 mail:1" {
		t.Errorf("order: %s", got)
	}
	if rows := Rows(d, Filter{Sources: []string{"gh"}, Statuses: []string{"ingested"}, Text: "OLD", Limit: 5}); len(rows) != 1 || rows[0].Key != "gh:old" {
		t.Errorf("%+v", rows)
	}
}
