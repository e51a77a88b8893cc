package ledger

import "slices"

// The statuses that the rules name. All others are kept as they are.
const (
	StatusClosed     = "closed"
	StatusFixPending = "fix_pending"
)

// Statuses are those of schema version 1. An unknown one is kept, not refused.
var Statuses = []string{"ingested", "ack_deferred", "acknowledged", "needs_download", "needs_analysis", "manual_stuck",
	"analyzed", "in_plan", StatusFixPending, StatusClosed, "source_gone"}

// validateCompat makes every closed item that lacks a piece of evidence
// fix_pending.
func validateCompat(d *Document) Outcome {
	return downgrade(d, func(item *Map) (missing []string) {
		for _, piece := range evidence {
			if item.get(piece).falsy() {
				missing = append(missing, piece)
			}
		}
		return missing
	})
}

// Validate makes every closed item fix_pending whose evidence is missing or
// malformed; the payload says which and why. The fields themselves stay. It
// needs no lease.
func Validate(d *Document, now Now) Outcome {
	reasons := &Map{}
	out := downgrade(d, func(item *Map) []string { return unproven(item, now, skew) })
	for _, v := range out.Payload.get("downgraded").elements() {
		key, _ := v.Str()
		reasons.Set(key, stringList(unproven(d.Item(key), now, skew)))
	}
	out.Payload.Set("reasons", MapValue(reasons))
	return out
}

func downgrade(d *Document, problems func(*Map) []string) Outcome {
	var down []string
	for key, v := range d.Items().All() {
		if v.m.str("status") == StatusClosed && len(problems(v.m)) > 0 {
			v.m.Set("status", StringValue(StatusFixPending))
			down = append(down, key)
		}
	}
	slices.Sort(down)
	return Outcome{Word: OK, Payload: fields("downgraded", down), changed: len(down) > 0}
}
