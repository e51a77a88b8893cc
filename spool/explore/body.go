package explore

import "fmt"

// outcome says how a claim ended. The zero value is a body that no claim of
// ours has settled yet.
type outcome uint8

const (
	fresh outcome = iota
	succeeded
	retried
	failedForGood
	canceled
	onHold
	released
)

var outcomeNames = [...]string{"fresh", "done", "retry", "failed", "canceled", "hold", "release"}

// counts reports whether a claim that ends so costs an attempt (invariant 8).
func (o outcome) counts() bool { return o == succeeded || o == retried || o == failedForGood }

// body is one version of a task as a file holds it, packed so that a state
// stays small and comparable. Zero means that there is no file.
//
// The fields are: life, rev, attempt, the claim whose settle wrote it (the
// token), its outcome, whether that settle carried an artifact and a follow-up,
// and who wrote the record (its <r>).
type body uint32

const (
	revShift, attemptShift, tokenShift   = 3, 7, 10
	outcomeShift, artShift, followShift  = 14, 17, 18
	writerShift, targetShift, stateShift = 19, 21, 24
	bodyMask                             = 1<<targetShift - 1
)

func newBody(life uint8) body { return body(life) }

func (b body) life() uint8      { return uint8(b & 7) }
func (b body) rev() uint8       { return uint8(b >> revShift & 15) }
func (b body) attempt() uint8   { return uint8(b >> attemptShift & 7) }
func (b body) token() uint8     { return uint8(b >> tokenShift & 15) }
func (b body) outcome() outcome { return outcome(b >> outcomeShift & 7) }
func (b body) art() bool        { return b>>artShift&1 == 1 }
func (b body) follow() bool     { return b>>followShift&1 == 1 }
func (b body) writer() uint8    { return uint8(b >> writerShift & 3) }

func (b body) by(r uint8) body { return b | body(r)<<writerShift }

// sameSettle reports whether two bodies are the very same published version:
// the token is <rev>:<directory>.
func (b body) sameSettle(c body) bool {
	return b.life() == c.life() && b.rev() == c.rev() && b.token() == c.token()
}

// settled is the next version of b, as the claim numbered token writes it.
func (b body) settled(o outcome, token uint8, art, follow bool) body {
	att := b.attempt()
	if o.counts() {
		att++
	}
	n := body(b.life()) | body(b.rev()+1)<<revShift | body(att)<<attemptShift |
		body(token)<<tokenShift | body(o)<<outcomeShift
	if art {
		n |= 1 << artShift
	}
	if follow {
		n |= 1 << followShift
	}
	return n
}

func (b body) String() string {
	if b == 0 {
		return "-"
	}
	s := fmt.Sprintf("life %d rev %d attempt %d", b.life(), b.rev(), b.attempt())
	if b.outcome() != fresh {
		s += fmt.Sprintf(" %s by claim %d", outcomeNames[b.outcome()], b.token())
	}
	return s
}

// target is the folder a record is to be published in.
type target uint8

const (
	toPending target = iota
	toHeld
	toDone
	toFailed
)

var targetNames = [...]string{"pending", "held", "done", "failed"}

func targetOf(o outcome) target {
	switch o {
	case succeeded:
		return toDone
	case failedForGood, canceled:
		return toFailed
	case onHold:
		return toHeld
	}
	return toPending
}

// record is a prepared x~out.<r>: a body, where it goes, and whether the file
// is whole or still being written. Zero means that there is no file.
type record uint32

const (
	torn  record = 1 << stateShift
	whole record = 2 << stateShift
)

func newRecord(b body, t target) record { return record(b) | record(t)<<targetShift | whole }

func (r record) body() body     { return body(r & bodyMask) }
func (r record) target() target { return target(r >> targetShift & 7) }
func (r record) whole() bool    { return r&whole != 0 }

func (r record) String() string {
	switch {
	case r == 0:
		return "-"
	case !r.whole():
		return "torn"
	}
	return fmt.Sprintf("{%v → %s}", r.body(), targetNames[r.target()])
}
