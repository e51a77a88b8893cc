package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
)

func TestTimesAreInstants(t *testing.T) {
	t.Setenv("TZ", "Asia/Kolkata")
	want := time.Date(2026, 7, 2, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{
		"2026-07-02T12:00:00Z", "2026-07-02t12:00:00z", "2026-07-02 12:00:00Z", "2026-07-02T04:00:00-08:00", "2026-07-02T17:30:00+05:30",
		"2026-07-02T17:30:00+0530", "2026-07-02T14:00:00+02", "2026-07-02T12:00:00.000Z", "2026-07-02T12:00:00.000000000Z", "2026-07-02T12:00:00,0Z",
		"2026-07-02T12:00:00", "2026-07-02T12:00", "2026-07-02T12:00Z", "2026-07-02T12:00:00.0+00:00", "2026-07-02T12:00:00.00000000001Z",
	} {
		if got, ok := ParseTime(s); !ok || !got.Equal(want) {
			t.Errorf("%q: %v %v", s, got, ok)
		}
	}
	if got, ok := ParseTime("2026-07-02T12:00:00.123456789Z"); !ok || got.Nanosecond() != 123456789 {
		t.Errorf("%v %v", got, ok)
	}
	for _, s := range []string{"", "not a time", "2026-07-02T", "2026-13-02T12:00:00Z", "2026-07-02T25:00:00Z", "2026-07-02T12:00:00+99:00x", "1751457600",
		"2026-07-02T12:00:00.Z", "2026-07-02T12:00:00.x1Z", "2026-07-02T12:00:00ZZ", "02.07.2026", "2026-7-2T12:00:00Z", strings.Repeat("2", 100)} {
		if got, ok := ParseTime(s); ok {
			t.Errorf("%q was taken as %v", s, got)
		}
	}
	if s := FormatTime(want.In(time.FixedZone("", -3600))); s != "2026-07-02T12:00:00+00:00" {
		t.Error(s)
	}
}

func TestStalenessMustBeProven(t *testing.T) {
	for _, c := range []struct {
		timestamp, ttl, now string
		want                Word
	}{
		{"2026-07-02T12:00:00Z", "60", "2026-07-02T13:00:00Z", Locked}, // equal is not more
		{"2026-07-02T12:00:00Z", "60", "2026-07-02T13:00:00.000000001Z", StaleReclaimed},
		{"2026-07-02T12:00:00Z", "60", "2026-07-02T05:00:01-08:00", StaleReclaimed},
		{"2026-07-02T17:30:00+05:30", "60", "2026-07-02t13:00:00z", Locked},
		{"not a time", "60", "2030-01-01T00:00:00Z", Locked},
		{"", "60", "2030-01-01T00:00:00Z", Locked},
		{"2026-07-02T12:00:00Z", "60", "not a time", Locked},
		{"2026-07-02T12:00:00Z", "0", "2026-07-02T12:00:01Z", StaleReclaimed},
		{"2026-07-02T12:00:00Z", "\"soon\"", "2026-07-02T12:59:59Z", Locked},
		{"2026-07-02T12:00:00Z", "\"soon\"", "2026-07-02T13:00:01Z", StaleReclaimed},
		{"2026-07-02T12:00:00Z", "0.5", "2026-07-02T12:00:31Z", StaleReclaimed},
		{"2026-07-02T12:00:00Z", "1.0e300", "2030-01-01T00:00:00Z", Locked},
		{"2030-01-01T00:00:00Z", "60", "2026-07-02T12:00:00Z", Locked}, // a clock ahead
	} {
		text := "schema_version: 1\nlease:\n  writer: \"other\"\n  timestamp: \"" + c.timestamp + "\"\n  ttl_minutes: " + c.ttl + "\n"
		d, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if out := Acquire(d, "me", 60, at(c.now)); out.Word != c.want {
			t.Errorf("%+v: %s", c, out.Word)
		}
	}
}

func TestLeaseWithoutATimeTellsAPersonWhatToDo(t *testing.T) {
	d := NewDocument()
	Acquire(d, "other", 60, at("whenever"))
	err := Acquire(d, "me", 60, at(noon)).Err("acquire", "x")
	if !errors.Is(err, beeyard.ErrLocked) || !strings.Contains(err.Error(), `"other"`) || !strings.Contains(beeyard.HintOf(err), "ledger release") {
		t.Errorf("%v; %s", err, beeyard.HintOf(err))
	}
	if s := StatusOf(d, at(noon)); s.Lease == nil || s.Lease.Writer != "other" || s.Lease.Until != "" || !strings.Contains(s.Lease.Note, "ledger release") {
		t.Errorf("%+v", s.Lease)
	}
}

// TestWriterThatLostTheLeaseWritesNothing: times injected, no waiting.
func TestWriterThatLostTheLeaseWritesNothing(t *testing.T) {
	for _, spelling := range []Spelling{Compat, Native} {
		f, err := OpenFile(filepath.Join(t.TempDir(), "state.yml"), spelling)
		if err != nil {
			t.Fatal(err)
		}
		do := func(change func(*Document) Outcome) Word {
			t.Helper()
			out, err := f.Update(t.Context(), change)
			if err != nil {
				t.Fatal(err)
			}
			return out.Word
		}
		put := func(writer, now string) Word {
			return do(func(d *Document) Outcome {
				if spelling == Compat {
					if o, ok := d.owned(writer); !ok {
						return o
					}
					return upsert(d, Upsert{Writer: writer, Source: "s", ID: writer, Fields: &Map{}}, at(now))
				}
				return Put(d, Upsert{Writer: writer, Source: "s", ID: writer, Fields: &Map{}}, at(now))
			})
		}
		do(func(d *Document) Outcome { return Acquire(d, "first", 1, at("2026-07-02T12:00:00Z")) })
		if w := put("first", "2026-07-02T12:00:30Z"); w != OK { // re-stamps
			t.Fatal(w)
		}
		if w := do(func(d *Document) Outcome { return Acquire(d, "second", 1, at("2026-07-02T12:01:20Z")) }); w != Locked {
			t.Fatalf("the write did not renew the lease: %s", w)
		}
		if w := do(func(d *Document) Outcome { return Acquire(d, "second", 1, at("2026-07-02T12:01:31Z")) }); w != StaleReclaimed {
			t.Fatal(w)
		}
		if w := put("second", "2026-07-02T12:01:32Z"); w != OK {
			t.Fatal(w)
		}
		before, err := os.ReadFile(f.Path())
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*Document) Outcome{
			"cursor": func(d *Document) Outcome {
				return Advance(d, CursorMove{Writer: "first", Source: "s", To: "1", PastItem: "first"}, at(noon))
			},
			"release": func(d *Document) Outcome { return Release(d, "first") },
			"close":   func(d *Document) Outcome { return Close(d, "s:first", "first", Evidence{"#1", sha, noon}, at(noon)) },
			"reopen":  func(d *Document) Outcome { return Reopen(d, "s:first", "first", "", at(noon)) },
		} {
			if w := do(change); w != LeaseLost {
				t.Errorf("%s: %s", name, w)
			}
		}
		if w := put("first", "2026-07-02T12:01:33Z"); w != LeaseLost {
			t.Errorf("upsert: %s", w)
		}
		if after, err := os.ReadFile(f.Path()); err != nil || string(after) != string(before) {
			t.Errorf("a lost writer wrote: %v\n%s", err, after)
		}
	}
}

func TestLockFileContentIsIgnored(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"empty":  func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"brace":  func(p string) error { return os.WriteFile(p, []byte("{"), 0o600) },
		"1 MB":   func(p string) error { return os.WriteFile(p, make1MB(), 0o600) },
		"folder": func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.yml")
			if err := make(path + ".lock"); err != nil {
				t.Fatal(err)
			}
			f, err := OpenFile(path, Native)
			if err != nil {
				t.Fatal(err)
			}
			must(t, OK)(f.Update(t.Context(), func(d *Document) Outcome { return Acquire(d, "w", 60, at(noon)) }))
		})
	}
}

func make1MB() []byte { return []byte(strings.Repeat("x", 1<<20)) }

func TestWaitingForTheLockEnds(t *testing.T) {
	f, err := OpenFile(filepath.Join(t.TempDir(), "state.yml"), Native)
	if err != nil {
		t.Fatal(err)
	}
	must(t, OK)(f.Update(t.Context(), func(d *Document) Outcome {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := f.Update(ctx, func(*Document) Outcome { t.Error("two writers at once"); return Outcome{} })
		if !errors.Is(err, beeyard.ErrTimeout) {
			t.Errorf("%v", err)
		}
		return Acquire(d, "w", 60, at(noon))
	}))
}

func TestForeignLedgerIsCorrupt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can make a file of another user")
	}
	path := filepath.Join(t.TempDir(), "state.yml")
	text := "schema_version: 1\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spelling{Compat, Native} {
		f, err := OpenFile(path, s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); !errors.Is(err, beeyard.ErrCorrupt) {
			t.Errorf("load: %v", err)
		}
		if _, err := f.Update(t.Context(), func(d *Document) Outcome { return Acquire(d, "w", 60, at(noon)) }); !errors.Is(err, beeyard.ErrCorrupt) {
			t.Errorf("update: %v", err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != text {
		t.Errorf("it was written: %v", err)
	}
}

func TestWhatIsNoFileIsCorrupt(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real"), []byte("schema_version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"folder", "link"} {
		f, err := OpenFile(filepath.Join(dir, name), Native)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); !errors.Is(err, beeyard.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewerSchemaIsReadAndNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.yml")
	text := "schema_version: 2\nnew: \"rule\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path, Native)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := f.Load(); err != nil || d.Schema() != 2 {
		t.Fatalf("%v", err)
	}
	must(t, Refused)(f.Update(t.Context(), func(d *Document) Outcome { return Acquire(d, "w", 60, at(noon)) }))
	if data, err := os.ReadFile(path); err != nil || string(data) != text {
		t.Errorf("it was written: %v %s", err, data)
	}
}
