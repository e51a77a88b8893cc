package ledger

import (
	"math"
	"strconv"
	"time"
)

// DefaultTTL is the minutes that a lease lasts when nothing else is said.
const DefaultTTL = 60

// Lease says who may write now.
type Lease struct {
	Writer    string
	Timestamp string // as stored
	Since     time.Time
	Until     time.Time // zero when the timestamp is no time: such a lease does not end
	TTL       time.Duration
}

// Lease returns the lease in force or run out; ok is false when nobody has it.
func (d *Document) Lease() (l Lease, ok bool) {
	m := d.root.get(keyLease).m
	if m.Len() == 0 {
		return Lease{}, false
	}
	l = Lease{Writer: m.str("writer"), Timestamp: m.str("timestamp"), TTL: ttlOf(m.get("ttl_minutes"))}
	if t, parsed := ParseTime(l.Timestamp); parsed {
		l.Since, l.Until = t, t.Add(l.TTL)
	}
	return l, true
}

// Stale reports whether the lease is proven to have run out: both times are
// times, and more than the TTL lies between them.
func (l Lease) Stale(now Now) bool {
	return !l.Until.IsZero() && now.ok && now.at.After(l.Until)
}

// ttlOf reads what a file says; what is no number of minutes is the default.
func ttlOf(v Value) time.Duration {
	minutes := float64(DefaultTTL)
	text := v.text
	if s, ok := v.Str(); ok {
		text = s
	}
	if v.kind == Int || v.kind == Float || v.kind == String {
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) {
			minutes = f
		}
	}
	const most = 1e8 // 190 years, near what a Duration holds
	return time.Duration(min(max(minutes, -most), most) * float64(time.Minute))
}

func (d *Document) holds(writer string) bool {
	l, ok := d.Lease()
	return ok && l.Writer == writer
}

// Acquire takes the lease when it is free, run out, or the writer's own.
func Acquire(d *Document, writer string, ttlMinutes int64, now Now) Outcome {
	l, held := d.Lease()
	m := d.root.get(keyLease).m
	out := done(nil)
	switch {
	case !held:
		m = &Map{ord: leaseOrder}
	case l.Writer == writer:
	case l.Stale(now):
		out.Word = StaleReclaimed
		out.Payload = fields("previous_writer", m.get("writer"), "previous_timestamp", m.get("timestamp"))
		m = &Map{ord: leaseOrder}
	default:
		return locked(l)
	}
	m.Set("writer", StringValue(writer))
	m.Set("timestamp", StringValue(now.Text))
	m.Set("ttl_minutes", IntValue(ttlMinutes))
	d.root.Set(keyLease, MapValue(m))
	return out
}

func locked(l Lease) Outcome {
	reason := "held by " + clip(l.Writer) + " since " + clip(l.Timestamp)
	next := "wait until " + FormatTime(l.Until) + ", or let that writer release it"
	if l.Until.IsZero() {
		reason += ", which is no time, so it does not run out"
		next = "find out whether that writer still runs; if not, a person runs 'beeyard ledger release' with its name as --writer"
	}
	return refuse(Locked, reason, next)
}

// Release gives the lease back. Releasing what nobody holds is fine.
func Release(d *Document, writer string) Outcome {
	l, held := d.Lease()
	if !held {
		return Outcome{Word: OK}
	}
	if l.Writer != writer {
		return lost(l, held)
	}
	d.root.Delete(keyLease)
	return done(nil)
}

func lost(l Lease, held bool) Outcome {
	reason := "nobody holds the lease"
	if held {
		reason = "the lease is held by " + clip(l.Writer)
	}
	return refuse(LeaseLost, reason, "stop writing; acquire the lease again before the next change")
}

// owned checks that writer holds the lease, for a change that needs it.
func (d *Document) owned(writer string) (o Outcome, ok bool) {
	if d.holds(writer) {
		return Outcome{}, true
	}
	return lost(d.Lease()), false
}

// stamp renews the lease of the writer who just changed something.
func (d *Document) stamp(now Now) {
	d.root.get(keyLease).m.Set("timestamp", StringValue(now.Text))
}
