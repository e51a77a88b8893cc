package ledger

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"beeyard"
	"beeyard/internal/strict"
)

// Bounds of a stream of operations.
const (
	maxOperation  = 16 << 20
	maxOperations = 256 << 20 // bytes in all: what one ledger may hold
)

// RolledBack answers the operations of an atomic stream in which another failed.
const RolledBack Word = "ROLLED-BACK"

// Operation is one line of a stream: an upsert or a cursor move.
type Operation struct {
	Line   int
	upsert *Upsert
	move   *CursorMove
	bad    string // why the line is no operation
}

// Answer is what became of an operation.
type Answer struct {
	Line    int
	Outcome Outcome
}

// MarshalJSON gives {"line": 1, "word": "OK", …payload or reason}.
func (a Answer) MarshalJSON() ([]byte, error) {
	m := fields("line", a.Line, "word", string(a.Outcome.Word))
	for k, v := range a.Outcome.Payload.All() {
		m.Set(k, v)
	}
	if a.Outcome.Reason != "" {
		m.Set("reason", StringValue(a.Outcome.Reason))
	}
	return appendJSON(nil, MapValue(m)), nil
}

// ReadOperations reads JSON lines:
//
//	{"op": "upsert", "source": "gh-issues", "id": "12", "item": {…}, "reopen": false}
//	{"op": "cursor", "source": "gh-issues", "to": "12", "past_item": "12", "force": false}
//
// A line that is neither becomes an operation that is answered ERROR. All lines
// are read before the ledger is locked, so that a slow writer of the stream
// keeps nobody waiting. Blank lines are skipped.
func ReadOperations(r io.Reader, writer string) ([]Operation, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var ops []Operation
	total := 0
	for line := 1; ; line++ {
		text, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read operations: line %d: %w", line, err)
		}
		if total += len(text); total > maxOperations {
			return nil, fmt.Errorf("read operations: %w", beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("more than %d bytes in one stream", maxOperations)))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			ops = append(ops, parseOperation(line, text, writer))
		}
		if err != nil {
			return ops, nil
		}
	}
}

// readLine returns one line, which the next call may overwrite.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	long := bytes.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = in.ReadSlice('\n')
		if long = append(long, text...); len(long) > maxOperation {
			return nil, beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("longer than %d bytes", maxOperation))
		}
	}
	return long, err
}

func parseOperation(line int, text []byte, writer string) Operation {
	op := Operation{Line: line}
	v, err := ParseJSON(text)
	var bad *strict.Error
	switch {
	case errors.As(err, &bad):
		op.bad = bad.Reason
	case err != nil || v.m == nil:
		op.bad = "not a JSON object"
	default:
		op.bad = op.take(v.m, writer)
	}
	return op
}

// The keys of the two operations.
var (
	upsertKeys = [...]string{"op", "source", "id", "item", "reopen"}
	cursorKeys = [...]string{"op", "source", "to", "past_item", "force"}
)

// take fills the operation from its JSON and refuses a key that it does not
// know: a misspelled "force" or "reopen" must not pass for none.
func (op *Operation) take(m *Map, writer string) (bad string) {
	var known []string
	switch m.str("op") {
	case "upsert":
		known = upsertKeys[:]
	case "cursor":
		known = cursorKeys[:]
	default:
		return `"op" is neither "upsert" nor "cursor"`
	}
	for _, k := range known {
		v, there := m.Get(k)
		want := String
		switch k {
		case "reopen", "force":
			want = Bool
			if !there {
				continue
			}
		case "item":
			want = Mapping
		}
		if v.kind != want {
			return fmt.Sprintf("%q is missing or of the wrong kind", k)
		}
	}
	for k := range m.All() {
		if !slices.Contains(known, k) {
			return strict.Unknown("key", k, known)
		}
	}
	if known[2] == "to" {
		op.move = &CursorMove{Writer: writer, Source: m.str("source"), To: m.str("to"), PastItem: m.str("past_item"), Force: m.get("force").True()}
		return ""
	}
	source, id := m.get("source"), m.get("id")
	op.upsert = &Upsert{Writer: writer, Source: unquote(source.text), ID: unquote(id.text), Fields: m.get("item").m, Reopen: m.get("reopen").True(),
		source: source, id: id}
	return ""
}

func (op *Operation) run(d *Document, now Now) Outcome {
	switch {
	case op.bad != "":
		return refuse(Failed, op.bad, "")
	case op.move != nil:
		return Advance(d, *op.move, now)
	}
	// The answer to an item that simply went in needs no more than its line.
	return put(d, *op.upsert, now, nil)
}

// Apply carries out operations in order on the document. Each stands for itself,
// unless atomic is set: then the first that fails undoes all, and the outcome
// says not to write.
func Apply(d *Document, ops []Operation, atomic bool, now Now) ([]Answer, Outcome) {
	answers := make([]Answer, len(ops))
	total := Outcome{Word: OK}
	for i := range ops {
		out := ops[i].run(d, now)
		answers[i] = Answer{ops[i].Line, out}
		total.changed = total.changed || out.changed
		if out.OK() {
			continue
		}
		if total.OK() {
			total.Word, total.Reason, total.Next = out.Word, fmt.Sprintf("line %d: %s", ops[i].Line, out.Reason), out.Next
		}
		if atomic {
			for j := range ops {
				if j != i {
					answers[j] = Answer{ops[j].Line, Outcome{Word: RolledBack}}
				}
			}
			total.changed = false
			return answers, total
		}
	}
	return answers, total
}

// Apply carries out operations under one lock and with one write. The answers
// are true once it has returned: what is answered OK is durable.
func (f *File) Apply(ctx context.Context, ops []Operation, atomic bool, now Now) ([]Answer, Outcome, error) {
	var answers []Answer
	out, err := f.Update(ctx, func(d *Document) (out Outcome) {
		answers, out = Apply(d, ops, atomic, now)
		return out
	})
	return answers, out, err
}
