package beeyard

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// SchemaVersion is what is written into a checkpoint.
const SchemaVersion = "0.1"

// Checkpoint says where a workflow stands, for whoever comes next. In a run
// directory it is status.json.
type Checkpoint struct {
	SchemaVersion  string
	RunID          string
	Summary        string
	NextStep       string
	NextTaskID     *string // nil: the workflow is complete
	ResumeCommand  *string
	Risk           string
	CompletedTasks []string // ids that have run; a cache of done/, which is the record
	CurrentWorker  *string
	Timestamp      string
	Metadata       map[string]json.RawMessage
	// Revision is the SHA-256 of the file's bytes in hex, "" when there is none.
	Revision string
	// Unknown and UnknownCheckpoint are other programs' keys, kept.
	Unknown           map[string]json.RawMessage
	UnknownCheckpoint map[string]json.RawMessage
}

// CheckpointEdit names what a write changes; nil keeps. The revision seen, if
// given, must still be the current one, else ErrConflict.
type CheckpointEdit struct {
	Summary       *string
	NextStep      *string
	NextTaskID    *string
	Complete      bool // sets NextTaskID to null
	ResumeCommand *string
	Risk          *string
	CurrentWorker *string
	Metadata      map[string]json.RawMessage // merged additively
	IfRevision    string
}

// DecodeCheckpoint reads a checkpoint; fallbackRun is the run's name where the
// file has none. The error is ErrCorrupt, also for a major version that this
// program does not know.
func DecodeCheckpoint(data []byte, fallbackRun string) (*Checkpoint, error) {
	bad := func(why string) error { return Because(ErrCorrupt, why) }
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil || top == nil {
		return nil, bad("it is not a JSON object")
	}
	c := &Checkpoint{SchemaVersion: "0.x"}
	take := func(m map[string]json.RawMessage, key string, to any) error {
		raw, ok := m[key]
		if !ok {
			return nil
		}
		delete(m, key)
		if bytes.Equal(raw, []byte("null")) {
			return nil
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return bad(key + " has the wrong type")
		}
		return nil
	}
	var inner map[string]json.RawMessage
	for _, f := range []struct {
		key string
		to  any
	}{{"schema_version", &c.SchemaVersion}, {"run_id", &c.RunID}, {"checkpoint", &inner}, {"metadata", &c.Metadata}} {
		if err := take(top, f.key, f.to); err != nil {
			return nil, err
		}
	}
	if major, _, _ := strings.Cut(c.SchemaVersion, "."); major != "0" {
		return nil, bad("schema_version " + Quote(c.SchemaVersion) + " is newer than this program")
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
	if len(top) > 0 {
		c.Unknown = top
	}
	if len(inner) > 0 {
		c.UnknownCheckpoint = inner
	}
	return c, nil
}

// Encode writes every field, indented by two, known keys in the order of the
// contract's table.
func (c *Checkpoint) Encode() ([]byte, error) {
	done := c.CompletedTasks
	if done == nil {
		done = []string{}
	}
	meta := c.Metadata
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	inner, err := orderedObject([]field{
		{"summary", c.Summary}, {"next_step", c.NextStep}, {"next_task_id", c.NextTaskID}, {"risk", c.Risk},
		{"completed_tasks", done}, {"current_worker", c.CurrentWorker}, {"timestamp", c.Timestamp},
		{"resume_command", c.ResumeCommand},
	}, c.UnknownCheckpoint)
	if err != nil {
		return nil, err
	}
	all, err := orderedObject([]field{
		{"schema_version", SchemaVersion}, {"run_id", c.RunID}, {"checkpoint", inner}, {"metadata", meta},
	}, c.Unknown)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, all, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

type field struct {
	key   string
	value any
}

func orderedObject(fields []field, unknown map[string]json.RawMessage) (json.RawMessage, error) {
	b := []byte{'{'}
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		v, err := marshal(f.value)
		if err != nil {
			return nil, err
		}
		b = append(b, '"')
		b = append(append(append(b, f.key...), '"', ':'), v...)
	}
	if len(unknown) > 0 {
		rest, err := appendObject(nil, unknown)
		if err != nil {
			return nil, err
		}
		b = append(append(b, ','), rest[1:len(rest)-1]...)
	}
	return append(b, '}'), nil
}

// Apply changes a copy of the checkpoint as a native write does: what is not
// named is kept.
func (c Checkpoint) Apply(e CheckpointEdit, now time.Time) Checkpoint {
	set := func(to *string, v *string) {
		if v != nil {
			*to = *v
		}
	}
	set(&c.Summary, e.Summary)
	set(&c.NextStep, e.NextStep)
	set(&c.Risk, e.Risk)
	if e.NextTaskID != nil {
		c.NextTaskID = e.NextTaskID
	}
	if e.Complete {
		c.NextTaskID = nil
	}
	if e.ResumeCommand != nil {
		c.ResumeCommand = e.ResumeCommand
	}
	if e.CurrentWorker != nil {
		c.CurrentWorker = e.CurrentWorker
	}
	if len(e.Metadata) > 0 {
		merged := make(map[string]json.RawMessage, len(c.Metadata)+len(e.Metadata))
		for k, v := range c.Metadata {
			merged[k] = v
		}
		for k, v := range e.Metadata {
			merged[k] = v
		}
		c.Metadata = merged
	}
	c.Timestamp = FormatTime(now)
	return c
}
