package beeyard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestCheckpointKeepsWhatItDoesNotKnow(t *testing.T) {
	const text = `{"run_id":"r","x":[1,{"y":"\u00e9 <b>"}],"checkpoint":{"summary":"a\nb","z":{"k":1e2},
		"completed_tasks":["t1","é","q\"uote"],"next_task_id":null},"metadata":{"n":12345678901234567890}}`
	c, err := DecodeCheckpoint([]byte(text), "folder")
	if err != nil {
		t.Fatal(err)
	}
	if c.SchemaVersion != "0.x" || c.RunID != "r" || c.Summary != "a\nb" || c.NextTaskID != nil {
		t.Errorf("read %+v", c)
	}
	if want := []string{"t1", "é", `q"uote`}; !reflect.DeepEqual(c.CompletedTasks, want) {
		t.Errorf("completed_tasks %q, want %q", c.CompletedTasks, want)
	}
	out, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := DecodeCheckpoint(out, "")
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, out)
	}
	if again.SchemaVersion != SchemaVersion {
		t.Errorf("schema_version %q was written", again.SchemaVersion)
	}
	for key, want := range map[string]string{"x": `[1,{"y":"\u00e9 <b>"}]`} {
		if got := compact(t, again.Unknown[key]); got != want {
			t.Errorf("unknown %s: %s, want %s", key, got, want)
		}
	}
	if got := compact(t, again.UnknownCheckpoint["z"]); got != `{"k":1e2}` {
		t.Errorf("unknown checkpoint.z: %s", got)
	}
	if got := string(again.Metadata["n"]); got != "12345678901234567890" {
		t.Errorf("metadata.n was retyped: %s", got)
	}
}

func compact(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b.String()
}

// The writer's layout is that of an indent by two, which older readers show.
func TestCheckpointLayout(t *testing.T) {
	for _, c := range []Checkpoint{{}, {CompletedTasks: []string{"a"}, Metadata: map[string]json.RawMessage{"m": []byte(`{"a":[1,2]}`)},
		Unknown: map[string]json.RawMessage{"u": []byte(`[]`)}, UnknownCheckpoint: map[string]json.RawMessage{"v": []byte(`"x"`)}}} {
		got, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(compact(t, got)), "", "  "); err != nil {
			t.Fatal(err)
		}
		if want.WriteByte('\n'); want.String() != string(got) {
			t.Errorf("got\n%s\nwant\n%s", got, want.String())
		}
	}
	bad := Checkpoint{Metadata: map[string]json.RawMessage{"m": []byte(`{`)}}
	if _, err := bad.Encode(); !errors.Is(err, ErrUsage) {
		t.Errorf("metadata that is not JSON: %v", err)
	}
}

func TestCheckpointSchema(t *testing.T) {
	for text, want := range map[string]error{
		`{}`:                                     nil,
		`{"schema_version":null}`:                nil,
		`{"schema_version":"0.x"}`:               nil,
		`{"schema_version":"0.9"}`:               nil,
		`{"schema_version":"1.0"}`:               ErrSchema,
		`{"schema_version":"10"}`:                ErrSchema,
		`{"schema_version":""}`:                  ErrSchema,
		`{"schema_version":1}`:                   ErrSchema,
		`[]`:                                     ErrCorrupt,
		``:                                       ErrCorrupt,
		"\x00\x00":                               ErrCorrupt,
		`{"a":`:                                  ErrCorrupt,
		`{"checkpoint":[]}`:                      ErrCorrupt,
		`{"checkpoint":null}`:                    nil,
		`{"checkpoint":{"summary":1}}`:           ErrCorrupt,
		`{"checkpoint":{"summary":null}}`:        nil,
		`{"metadata":[]}`:                        ErrCorrupt,
		`{"checkpoint":{"completed_tasks":[1]}}`: ErrCorrupt,
	} {
		_, err := DecodeCheckpoint([]byte(text), "r")
		if !errors.Is(err, want) || (want == ErrCorrupt) && errors.Is(err, ErrSchema) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		if want != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v is not ErrCorrupt", text, err)
		}
	}
}

// FuzzMembers holds the splitter to encoding/json: same members, same lists.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1,"b":[{"c":"}"}],"a" : "\"" }`, `[1]`, `{"l":["x", "y"]}`, `{"\u0061":null}`, ` { "n" : -1.5e3 } `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil {
			want = nil
		}
		got := members(data)
		if len(got) != len(want) || (got == nil) != (want == nil) {
			t.Fatalf("%q: %q, want %q", data, got, want)
		}
		for k, v := range want {
			if !bytes.Equal(got[k], v) {
				t.Errorf("%q: %q is %q, want %q", data, k, got[k], v)
			}
			var list []string
			if plain, ok := plainList(v); ok {
				if err := json.Unmarshal(v, &list); err != nil || len(list) != len(plain) || len(list) > 0 && !reflect.DeepEqual(list, plain) {
					t.Errorf("%q: list %q, want %q (%v)", v, plain, list, err)
				}
			}
		}
	})
}

func bigCheckpoint(n int) *Checkpoint {
	c := &Checkpoint{RunID: "big", Summary: strings.Repeat("x", 200)}
	for i := range n {
		c.CompletedTasks = append(c.CompletedTasks, fmt.Sprintf("task-%08d-abcdefgh", i))
	}
	return c
}

func BenchmarkCheckpoint100k(b *testing.B) {
	c := bigCheckpoint(100_000)
	data, err := c.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeCheckpoint(data, ""); err != nil {
				b.Fatal(err)
			}
		}
	})
}
