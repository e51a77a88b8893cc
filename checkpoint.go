package beeyard

import (
	"encoding/json"
	"time"
)

// SchemaVersion is what is written into a checkpoint.
const SchemaVersion = "0.1"

// ErrSchema is the ErrCorrupt of a checkpoint whose schema this program does
// not know: it may be whole and newer, so it is refused and never rebuilt.
var ErrSchema = Because(ErrCorrupt, "unknown schema")

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
