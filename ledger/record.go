package ledger

// Outcomes are what a run may end as.
var Outcomes = []string{"completed", "aborted-locked", "partial", "failed"}

// Run is what a run says of itself at its end.
type Run struct {
	Writer, Outcome, Timestamp string
	Counts                     Value
}

// Record stores a run. It needs no lease: a run that never got the lease says so
// too. The time is the caller's.
func Record(d *Document, r Run) Outcome {
	m := d.LastRun()
	if m == nil {
		m = &Map{ord: runOrder}
		d.root.Set(keyRun, MapValue(m))
	}
	m.Set("timestamp", StringValue(r.Timestamp))
	m.Set("outcome", StringValue(r.Outcome))
	m.Set("writer", StringValue(r.Writer))
	m.Set("counts", r.Counts)
	return done(nil)
}
