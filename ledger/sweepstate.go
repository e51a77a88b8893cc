package ledger

import (
	"context"
	"errors"

	"beeyard"
)

// SweepState is one command of the older engine, its arguments as text. Run
// answers in that engine's words; a command line prints them.
type SweepState struct {
	Command string
	File    *File // opened with Compat
	Now     Now

	ID, Source, Writer, JSON   string
	To, PastItem               string
	TTLMinutes                 int64
	Outcome, Counts, Timestamp string
	Legacy                     []byte // the content of --file
	Channels                   map[string]string
}

// SweepStateCommands are the commands that Run knows.
var SweepStateCommands = []string{"read", "validate", "upsert-item", "cursor-get", "cursor-advance",
	"lease-acquire", "lease-release", "run-record", "import-legacy"}

// Run carries the command out. An error is of the file system alone; all else is
// a word. The payload of read is the whole document.
func (c SweepState) Run(ctx context.Context) (Outcome, error) {
	out, err := c.run(ctx)
	if errors.Is(err, beeyard.ErrCorrupt) {
		return Outcome{Word: Corrupt, Reason: err.Error(), Next: beeyard.HintOf(err)}, nil
	}
	return out, err
}

func (c SweepState) run(ctx context.Context) (Outcome, error) {
	switch c.Command {
	case "read", "cursor-get":
		d, err := c.File.Load()
		if err != nil {
			return Outcome{}, err
		}
		if c.Command == "cursor-get" {
			if d == nil {
				d = NewDocument()
			}
			return Cursor(d, c.Source), nil
		}
		if d == nil {
			return Outcome{Word: NoState}, nil
		}
		return Outcome{Word: OK, Payload: d.root}, nil
	}
	return c.File.Update(ctx, c.change)
}

func (c SweepState) change(d *Document) Outcome {
	switch c.Command {
	case "validate":
		return validateCompat(d)
	case "upsert-item":
		return c.upsert(d)
	case "cursor-advance":
		return Advance(d, CursorMove{Writer: c.Writer, Source: c.Source, To: c.To, PastItem: c.PastItem}, c.Now)
	case "lease-acquire":
		return Acquire(d, c.Writer, c.TTLMinutes, c.Now)
	case "lease-release":
		return Release(d, c.Writer)
	case "run-record":
		counts, err := parseJSON([]byte(c.Counts), true)
		if err != nil {
			counts = MapValue(&Map{}) // the older engine's answer to counts it cannot read
		}
		return Record(d, Run{Writer: c.Writer, Outcome: c.Outcome, Timestamp: c.Timestamp, Counts: counts})
	case "import-legacy":
		legacy, err := parseJSON(c.Legacy, true)
		if err != nil || legacy.m == nil {
			return refuse(Failed, "the file is not a JSON object", "")
		}
		return ImportLegacy(d, legacy.m, c.Channels)
	}
	return refuse(Failed, "unknown command", "")
}

// upsert checks the lease before it looks at the JSON, as the older engine does.
func (c SweepState) upsert(d *Document) Outcome {
	if o, ok := d.owned(c.Writer); !ok {
		return o
	}
	v, err := parseJSON([]byte(c.JSON), true)
	if err != nil || v.m == nil {
		return refuse(Failed, "--json is not a JSON object", "")
	}
	return upsert(d, Upsert{Writer: c.Writer, Source: c.Source, ID: c.ID, Fields: v.m}, c.Now)
}
