package ledger

import "slices"

// The statuses that the rules name. All others are kept as they are.
const (
	StatusClosed     = "closed"
	StatusFixPending = "fix_pending"
)

// evidence is what a closed item must carry.
var evidence = [...]string{"fix_ref", "verified_merge_sha", "verified_at"}

// validateCompat makes every closed item that lacks a piece of evidence
// fix_pending.
func validateCompat(d *Document) Outcome {
	var down []string
	for key, v := range d.Items().All() {
		if v.m.str("status") != StatusClosed {
			continue
		}
		for _, piece := range evidence {
			if v.m.get(piece).falsy() {
				v.m.Set("status", StringValue(StatusFixPending))
				down = append(down, key)
				break
			}
		}
	}
	slices.Sort(down)
	return Outcome{Word: OK, Payload: fields("downgraded", down), changed: len(down) > 0}
}
