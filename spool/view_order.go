package spool

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"time"

	"beeyard"
)

// The groups of a list, in its order.
const (
	groupOpen        = iota // in the order of the queue
	groupEnded              // newest first
	groupQuarantined        // newest first
)

// rowKey is where a row stands in a list. It is what a cursor holds: a page
// goes on after a key, not after a number of rows, so rows that come or go in
// front of it shift nothing.
//
// For open tasks it orders as beeyard.Before does, with the instants parsed
// once and not at each comparison.
type rowKey struct {
	Group    int    `json:"g"`
	Priority int    `json:"p,omitempty"`
	NoTime   bool   `json:"x,omitempty"` // created_at cannot be read
	Sec      int64  `json:"s,omitempty"` // created_at, or the modification time
	Nsec     int    `json:"n,omitempty"`
	Text     string `json:"t,omitempty"` // created_at as written, when it cannot be read
	ID       string `json:"i"`
	Where    string `json:"w,omitempty"` // tells two ends of one id apart
}

func openKey(b *sightedBody) rowKey {
	k := rowKey{Group: groupOpen, Priority: b.task.Ext.Priority, ID: b.task.ID}
	at, ok := b.created()
	switch {
	case ok:
		k.Sec, k.Nsec = at.Unix(), at.Nanosecond()
	case b.cand != nil:
		k.NoTime, k.Text = true, b.cand.created
	default:
		k.NoTime, k.Text = true, b.task.CreatedAt
	}
	return k
}

func timeKey(group int, at time.Time, id, where string) rowKey {
	return rowKey{Group: group, Sec: at.Unix(), Nsec: at.Nanosecond(), ID: id, Where: where}
}

func compareKeys(a, b *rowKey) int {
	if c := cmp.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if a.Group != groupOpen {
		a, b = b, a // newest first
		if c := cmp.Or(cmp.Compare(a.Sec, b.Sec), cmp.Compare(a.Nsec, b.Nsec)); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(b.ID, a.ID), cmp.Compare(b.Where, a.Where))
	}
	if a.Priority != b.Priority {
		return cmp.Compare(b.Priority, a.Priority)
	}
	if a.NoTime != b.NoTime {
		if b.NoTime {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Sec, b.Sec), cmp.Compare(a.Nsec, b.Nsec), cmp.Compare(a.Text, b.Text),
		cmp.Compare(a.ID, b.ID), cmp.Compare(a.Where, b.Where))
}

// cursor is opaque to callers: they hand back what they were given.
func (k *rowKey) cursor() (string, error) {
	b, err := json.Marshal(k)
	return base64.RawURLEncoding.EncodeToString(b), err
}

func parseCursor(s string) (*rowKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	k := &rowKey{}
	if err == nil {
		err = json.Unmarshal(b, k)
	}
	if err != nil || k.ID == "" {
		return nil, &beeyard.Error{Op: "list tasks", Err: beeyard.Because(beeyard.ErrUsage, "the cursor is not one that a list gave"),
			Hint: "pass the cursor of the page before exactly as it was given, or none"}
	}
	return k, nil
}
