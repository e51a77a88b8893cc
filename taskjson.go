package beeyard

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// DecodeTask reads one task file. Keys are matched exactly, unknown ones kept,
// the payload stays the text it was. It checks the shape only: bounds, UTF-8
// and duplicate keys are the reader's (internal/strict). The error is ErrNotTask.
func DecodeTask(data []byte) (*Task, error) {
	bad := func(why string) error { return Because(ErrNotTask, why) }
	var m map[string]json.RawMessage
	if err := json.Unmarshal(data, &m); err != nil || m == nil {
		return nil, bad("it is not a JSON object")
	}
	t := &Task{}
	for _, f := range []struct {
		key  string
		to   any
		need bool
	}{
		{"task_id", &t.ID, true}, {"task_type", &t.Type, true}, {"run_id", &t.RunID, false},
		{"created_at", &t.CreatedAt, false}, {"created_by", &t.CreatedBy, false},
		{"depends_on", &t.DependsOn, false}, {"tier_hint", &t.TierHint, false}, {"deadline", &t.Deadline, false},
	} {
		raw, ok := m[f.key]
		if !ok {
			if f.need {
				return nil, bad("it has no " + f.key)
			}
			continue
		}
		delete(m, f.key)
		if err := json.Unmarshal(raw, f.to); err != nil {
			return nil, bad(f.key + " has the wrong type")
		}
	}
	if raw, ok := m["payload"]; ok {
		if !bytes.Equal(raw, []byte("null")) {
			t.Payload = bytes.Clone(raw)
		}
		delete(m, "payload")
	}
	if raw, ok := m["beeyard"]; ok {
		delete(m, "beeyard")
		if err := t.Ext.decode(raw); err != nil {
			return nil, bad("its part \"beeyard\" cannot be read: " + err.Error())
		}
	}
	if len(m) > 0 {
		t.Unknown = m
	}
	if err := CheckStoredID(t.ID); err != nil {
		return nil, bad("its task_id cannot be a file name")
	}
	for _, d := range t.DependsOn {
		if CheckStoredID(d) != nil {
			return nil, bad("depends_on holds " + Quote(d) + ", which cannot be an id")
		}
	}
	return t, nil
}

func (e *Ext) decode(raw json.RawMessage) error {
	type plain Ext
	if err := json.Unmarshal(raw, (*plain)(e)); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	for k := range extKeys() {
		delete(all, k)
	}
	if len(all) > 0 {
		e.Unknown = all
	}
	return nil
}

// extKeys are the keys that Ext knows, read off its tags, since a list beside
// them would drift; on first use, since start-up must stay cheap.
var extKeys = sync.OnceValue(func() map[string]bool {
	keys := map[string]bool{}
	t := reflect.TypeFor[Ext]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			keys[name] = true
		}
	}
	return keys
})

// Encode writes the task file: one line, our keys sorted, unknown keys sorted
// among them, the payload as it came in.
func (t *Task) Encode() ([]byte, error) {
	ext, err := t.Ext.encode()
	if err != nil {
		return nil, err
	}
	payload := t.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	if len(t.Unknown) > 0 {
		return t.encodeWithUnknown(ext, payload)
	}
	// By hand: a claim and a settle encode and decode on the queue's hot path,
	// and a map to sort would be half of what this costs.
	b := make([]byte, 0, 256+len(payload)+len(ext)+32*len(t.DependsOn))
	b = append(b, '{')
	if ext != nil {
		b = append(append(append(b, `"beeyard": `...), ext...), ',', ' ')
	}
	b = appendString(append(b, `"created_at": `...), t.CreatedAt)
	b = appendString(append(b, `, "created_by": `...), t.CreatedBy)
	b = appendOrNull(append(b, `, "deadline": `...), t.Deadline)
	b = append(b, `, "depends_on": [`...)
	for i, d := range t.DependsOn {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, d)
	}
	b = append(append(b, `], "payload": `...), payload...)
	b = appendString(append(b, `, "run_id": `...), t.RunID)
	b = appendString(append(b, `, "task_id": `...), t.ID)
	b = appendString(append(b, `, "task_type": `...), t.Type)
	b = appendOrNull(append(b, `, "tier_hint": `...), t.TierHint)
	return append(b, '}'), nil
}

func (t *Task) encodeWithUnknown(ext, payload json.RawMessage) ([]byte, error) {
	keys := map[string]json.RawMessage{}
	for k, v := range t.Unknown {
		keys[k] = v
	}
	deps := t.DependsOn
	if deps == nil {
		deps = []string{}
	}
	for k, v := range map[string]any{
		"task_id": t.ID, "task_type": t.Type, "run_id": t.RunID, "created_at": t.CreatedAt,
		"created_by": t.CreatedBy, "depends_on": deps, "tier_hint": orNull(t.TierHint), "deadline": orNull(t.Deadline),
	} {
		raw, err := marshal(v)
		if err != nil {
			return nil, err
		}
		keys[k] = raw
	}
	keys["payload"] = payload
	if ext != nil {
		keys["beeyard"] = ext
	}
	return appendObject(nil, keys)
}

func appendOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendString writes s as JSON: as it is where nothing needs an escape.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			raw, err := marshal(s)
			if err != nil { // a string can always be encoded
				panic(err)
			}
			return append(b, raw...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// Nine is the line that handlers and the compatibility claim get: the nine
// fields of the format in the order that older programs print them.
func (t *Task) Nine() ([]byte, error) {
	c := *t
	c.Ext, c.Unknown = Ext{}, nil
	if len(t.Payload) > 0 {
		var line bytes.Buffer
		if err := json.Compact(&line, t.Payload); err != nil {
			return nil, Because(ErrNotTask, "its payload is not JSON")
		}
		c.Payload = line.Bytes()
	}
	return c.Encode()
}

func (e *Ext) encode() (json.RawMessage, error) {
	type plain Ext
	b, err := marshal((*plain)(e))
	if err != nil {
		return nil, err
	}
	if len(e.Unknown) == 0 {
		if string(b) == "{}" {
			return nil, nil
		}
		return b, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	for k, v := range e.Unknown {
		if _, taken := m[k]; !taken && !extKeys()[k] {
			m[k] = v
		}
	}
	return appendObject(nil, m)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// marshal is json.Marshal without the HTML escapes: task text is data, and
// what a person wrote should be found by grep.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func appendObject(b []byte, m map[string]json.RawMessage) ([]byte, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',', ' ')
		}
		name, err := marshal(k)
		if err != nil {
			return nil, err
		}
		b = append(b, name...)
		b = append(b, ':', ' ')
		b = append(b, m[k]...)
	}
	return append(b, '}'), nil
}

// ValidText reports whether s may stand in a task: UTF-8 without NUL.
func ValidText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
