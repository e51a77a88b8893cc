package beeyard

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// DecodeCheckpoint reads a checkpoint; fallbackRun is the run's name where the
// file has none. The error is ErrCorrupt, and ErrSchema too for a major version
// that this program does not know. Like DecodeTask it checks the shape only.
func DecodeCheckpoint(data []byte, fallbackRun string) (*Checkpoint, error) {
	bad := func(why string) error { return Because(ErrCorrupt, why) }
	if !json.Valid(data) {
		return nil, bad("it is not JSON")
	}
	top := members(data)
	if top == nil {
		return nil, bad("it is not a JSON object")
	}
	c := &Checkpoint{SchemaVersion: "0.x"}
	if err := take(top, "schema_version", &c.SchemaVersion); err != nil {
		return nil, Because(ErrSchema, "its schema_version is not text")
	}
	if major, _, _ := strings.Cut(c.SchemaVersion, "."); major != "0" {
		return nil, Because(ErrSchema, "its schema_version "+Quote(c.SchemaVersion)+" is not known to this program")
	}
	if err := take(top, "run_id", &c.RunID); err != nil {
		return nil, err
	}
	if err := take(top, "metadata", &c.Metadata); err != nil {
		return nil, err
	}
	var inner map[string]json.RawMessage
	if raw, ok := top["checkpoint"]; ok {
		delete(top, "checkpoint")
		if inner = members(raw); inner == nil && !isNull(raw) {
			return nil, bad("checkpoint is not an object")
		}
	}
	for _, f := range []struct {
		key string
		to  any
	}{
		{"summary", &c.Summary}, {"next_step", &c.NextStep}, {"next_task_id", &c.NextTaskID},
		{"resume_command", &c.ResumeCommand}, {"risk", &c.Risk}, {"completed_tasks", &c.CompletedTasks},
		{"current_worker", &c.CurrentWorker}, {"timestamp", &c.Timestamp},
	} {
		if err := take(inner, f.key, f.to); err != nil {
			return nil, err
		}
	}
	if c.RunID == "" {
		c.RunID = fallbackRun
	}
	c.Unknown, c.UnknownCheckpoint = kept(top), kept(inner)
	return c, nil
}

// take decodes one member and removes it; null and absent leave to as it is.
func take(m map[string]json.RawMessage, key string, to any) error {
	raw, ok := m[key]
	if !ok {
		return nil
	}
	delete(m, key)
	if isNull(raw) {
		return nil
	}
	if ids, ok := to.(*[]string); ok {
		if list, ok := plainList(raw); ok {
			*ids = list
			return nil
		}
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return Because(ErrCorrupt, key+" has the wrong type")
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// kept copies what is left: the members are views into the file's whole text,
// which would stay in memory with them.
func kept(m map[string]json.RawMessage) map[string]json.RawMessage {
	if len(m) == 0 {
		return nil
	}
	for k, v := range m {
		m[k] = bytes.Clone(v)
	}
	return m
}

// Encode writes every field, indented by two, known keys in the order of the
// contract's table. The error is that of unknown keys that are not JSON.
func (c *Checkpoint) Encode() ([]byte, error) {
	w := checkpointWriter{b: make([]byte, 0, 1024+32*len(c.CompletedTasks))}
	w.open()
	w.field("  ", "schema_version", SchemaVersion)
	w.field("  ", "run_id", c.RunID)
	w.key("  ", "checkpoint")
	w.open()
	const in = "    "
	w.field(in, "summary", c.Summary)
	w.field(in, "next_step", c.NextStep)
	w.field(in, "next_task_id", c.NextTaskID)
	w.field(in, "risk", c.Risk)
	w.key(in, "completed_tasks")
	w.list(in, c.CompletedTasks)
	w.field(in, "current_worker", c.CurrentWorker)
	w.field(in, "timestamp", c.Timestamp)
	w.field(in, "resume_command", c.ResumeCommand)
	w.unknown(in, c.UnknownCheckpoint)
	w.close("  ")
	w.key("  ", "metadata")
	w.open()
	w.unknown(in, c.Metadata)
	w.close("  ")
	w.unknown("  ", c.Unknown)
	w.close("")
	return append(w.b, '\n'), w.err
}

// checkpointWriter writes indented JSON directly: completed_tasks may hold
// 100,000 ids and is written again and again during a drain, which marshaling
// and then indenting would make three times as dear.
type checkpointWriter struct {
	b     []byte
	first bool // nothing in the innermost object yet
	err   error
}

func (w *checkpointWriter) open() { w.b, w.first = append(w.b, '{'), true }

func (w *checkpointWriter) close(indent string) {
	if !w.first {
		w.b = append(append(w.b, '\n'), indent...)
	}
	w.b, w.first = append(w.b, '}'), false
}

func (w *checkpointWriter) key(indent, key string) {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = append(append(w.b, '\n'), indent...)
	w.text(key)
	w.b = append(w.b, ": "...)
}

// field writes text, or null for a nil pointer to text.
func (w *checkpointWriter) field(indent, key string, v any) {
	w.key(indent, key)
	switch v := v.(type) {
	case string:
		w.text(v)
	case *string:
		if v == nil {
			w.b = append(w.b, "null"...)
			return
		}
		w.text(*v)
	}
}

func (w *checkpointWriter) list(indent string, ids []string) {
	if len(ids) == 0 {
		w.b = append(w.b, "[]"...)
		return
	}
	w.b = append(w.b, '[')
	for i, id := range ids {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(append(append(w.b, '\n'), indent...), "  "...)
		w.text(id)
	}
	w.b = append(append(append(w.b, '\n'), indent...), ']')
}

func (w *checkpointWriter) unknown(indent string, m map[string]json.RawMessage) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.key(indent, k)
		b := bytes.NewBuffer(w.b)
		if err := json.Indent(b, m[k], indent, "  "); err != nil {
			w.err = Because(ErrUsage, "the value of "+Quote(k)+" is not JSON")
			return
		}
		w.b = b.Bytes()
	}
}

func (w *checkpointWriter) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, err := marshal(s)
			if err != nil {
				w.err = err
			}
			w.b = append(w.b, quoted...)
			return
		}
	}
	w.b = append(append(append(w.b, '"'), s...), '"')
}
