package ledger

import (
	"errors"
	"fmt"

	"beeyard"
)

// Problem is something about a ledger that a person should know. Code is stable.
type Problem struct {
	Code   string
	Bad    bool // wrong, and not merely worth knowing
	Detail string
	Next   string // a safe next step
}

// Check looks at a ledger by the very rules that writers go by, so that what it
// says and what an acquire does never differ. It changes nothing.
func Check(f *File, now Now) ([]Problem, error) {
	d, err := f.Load()
	if errors.Is(err, beeyard.ErrCorrupt) {
		return []Problem{{"ledger-corrupt", true, err.Error(), beeyard.HintOf(err)}}, nil
	}
	if err != nil {
		return nil, err
	}
	if d == nil {
		return []Problem{{"ledger-missing", false, "there is no ledger yet", "'beeyard ledger acquire' starts one"}}, nil
	}
	var ps []Problem
	if l, held := d.Lease(); held {
		switch s := leaseStatus(l, now); {
		case s.Until == "":
			ps = append(ps, Problem{"ledger-lease-unreadable", true, "the lease of " + clip(l.Writer) + " has a time that cannot be read, so it does not run out", locked(l).Next})
		case s.Stale:
			ps = append(ps, Problem{"ledger-lease-stale", false, "the lease of " + clip(l.Writer) + " ran out at " + s.Until, "the next writer takes it"})
		}
	}
	unprovenItems, privateItems := 0, 0
	for key, v := range d.Items().All() {
		if v.m.str("status") == StatusClosed && !proven(v.m, now) {
			unprovenItems++
		}
		if v.m != nil && d.sensitive(v.m, sourceOf(key, v.m)) && holdsPrivate(v.m) {
			privateItems++
		}
	}
	if unprovenItems > 0 {
		ps = append(ps, Problem{"ledger-unproven", true, fmt.Sprintf("%d items are closed without proof", unprovenItems), "'beeyard ledger validate' makes them fix_pending"})
	}
	if privateItems > 0 {
		ps = append(ps, Problem{"ledger-private", true, fmt.Sprintf("%d sensitive items still hold a body or a quote", privateItems), "'beeyard ledger redact' cleans them"})
	}
	return ps, nil
}

func holdsPrivate(item *Map) bool {
	for _, key := range private {
		if _, ok := item.Get(key); ok {
			return true
		}
	}
	return false
}
