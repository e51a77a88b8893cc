package ledger

import "beeyard"

// Word is the answer to an operation.
type Word string

// The words, and the error each is at the command line (see Outcome.Err).
const (
	OK             Word = "OK"
	NoState        Word = "NO-STATE"
	Corrupt        Word = "CORRUPT"
	Failed         Word = "ERROR"
	Locked         Word = "LOCKED"
	StaleReclaimed Word = "STALE-RECLAIMED"
	LeaseLost      Word = "LEASE-LOST"
	Refused        Word = "REFUSED"
)

// Outcome is what an operation answers.
type Outcome struct {
	Word    Word
	Payload *Map   // nil for none
	Reason  string // why it was not OK; never holds a value of an item
	Next    string // a safe next step
	changed bool   // the document must be written
}

// OK reports whether the operation was carried out.
func (o Outcome) OK() bool { return o.Word == OK || o.Word == StaleReclaimed }

// Changed reports whether the document was changed.
func (o Outcome) Changed() bool { return o.changed }

// Err is nil for an operation carried out, and else an error that wraps the
// sentinel whose exit code the word has.
func (o Outcome) Err(op, id string) error {
	sentinel := map[Word]error{
		NoState: beeyard.ErrNotFound, NotFound: beeyard.ErrNotFound, Corrupt: beeyard.ErrCorrupt, Failed: beeyard.ErrUsage,
		Locked: beeyard.ErrLocked, LeaseLost: beeyard.ErrClaimLost, Refused: beeyard.ErrConflict,
	}[o.Word]
	if sentinel == nil {
		return nil
	}
	reason := string(o.Word)
	if o.Reason != "" {
		reason += ": " + o.Reason
	}
	return &beeyard.Error{Op: op, ID: id, Err: beeyard.Because(sentinel, reason), Hint: o.Next}
}

func done(payload *Map) Outcome { return Outcome{Word: OK, Payload: payload, changed: true} }

func refuse(w Word, reason, next string) Outcome {
	return Outcome{Word: w, Reason: reason, Next: next}
}

// fields builds a payload.
func fields(kv ...any) *Map {
	m := &Map{pairs: make([]pair, 0, len(kv)/2)}
	for i := 0; i < len(kv); i += 2 {
		v, ok := kv[i+1].(Value)
		if !ok {
			switch x := kv[i+1].(type) {
			case string:
				v = StringValue(x)
			case int:
				v = IntValue(int64(x))
			case bool:
				v = BoolValue(x)
			case []string:
				v = stringList(x)
			}
		}
		m.Set(kv[i].(string), v)
	}
	return m
}

func stringList(ss []string) Value {
	vs := make([]Value, len(ss))
	for i, s := range ss {
		vs[i] = StringValue(s)
	}
	return listValue(vs)
}
