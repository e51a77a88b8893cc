package spool

import (
	"slices"
	"strings"
	"time"
	"unique"

	"beeyard"
	"beeyard/internal/durable"
)

// candidate is what choosing needs of one body in pending/ or held/. A run may
// have 100,000 of them in memory, so it holds nothing else, and texts that
// repeat are kept once.
type candidate struct {
	id        string
	typ, tier string
	labels    []string
	deps      []string
	created   string // created_at, only where it cannot be read as a time
	sec       int64  // created_at otherwise
	nsec      int32
	timed     bool // created_at can be read
	hold      bool // a person's
	never     bool // its not-before or retry time cannot be read: it never comes due
	waits     bool // due is set
	due       time.Time
	prio      int

	// Which file it was read from. A name and an inode number can come again
	// with another content; with the time and the size they do not.
	ino   uint64
	mtime int64 // ns since 1970
	size  int64

	// The picker's own.
	state pickState
	held  bool          // it lies in held/
	unmet int32         // dependencies that it is registered for
	seen  uint32        // the listing that saw it last
	wake  time.Time     // in the heap of times: when to look at it again
	given time.Duration // when next handed it out, by clock.Elapsed
}

// pickState is where a candidate of pending/ stands with one picker.
type pickState uint8

const (
	pickReady   pickState = iota // in the lanes
	pickBlocked                  // registered with its unmet dependencies
	pickLater                    // in the heap of times
	pickOff                      // on hold, or never due, or waiting for itself
	pickGone                     // handed out, replaced, moved or removed: whoever still has it drops it
)

func newCandidate(t *beeyard.Task, ino uint64, info durable.Info) *candidate {
	c := &candidate{
		id: t.ID, typ: shared(t.Type), tier: shared(t.TierHint), prio: t.Ext.Priority,
		labels: sharedAll(t.Ext.Labels), deps: sharedAll(t.DependsOn),
		hold: t.Ext.Hold != nil,
		ino:  ino, mtime: info.ModTime.UnixNano(), size: info.Size,
	}
	if at, ok := t.Created(); ok {
		c.sec, c.nsec, c.timed = at.Unix(), int32(at.Nanosecond()), true
	} else {
		c.created = shared(t.CreatedAt)
	}
	due, err := t.Due()
	c.never, c.waits, c.due = err != nil, err == nil && !due.IsZero(), due
	return c
}

// shared is the one copy of a text that many candidates have.
func shared(s string) string {
	if s == "" {
		return ""
	}
	return unique.Make(s).Value()
}

func sharedAll(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = shared(s)
	}
	return out
}

// compare is the order of beeyard.Before on what was read once: parsing two
// times at each comparison would be most of the cost of a sort.
func (c *candidate) compare(d *candidate) int {
	switch {
	case c.prio != d.prio:
		return order(c.prio > d.prio)
	case c.timed != d.timed:
		return order(c.timed)
	case c.timed && c.sec != d.sec:
		return order(c.sec < d.sec)
	case c.timed && c.nsec != d.nsec:
		return order(c.nsec < d.nsec)
	case !c.timed && c.created != d.created:
		return order(c.created < d.created)
	}
	return strings.Compare(c.id, d.id)
}

func order(before bool) int {
	if before {
		return -1
	}
	return 1
}

func sortCandidates(list []*candidate) {
	slices.SortFunc(list, (*candidate).compare)
}

// task is the body as far as choosing knows it, for the functions that decide
// about tasks: they stay the only ones that do.
func (c *candidate) task(t *beeyard.Task) *beeyard.Task {
	t.ID, t.Type, t.TierHint, t.DependsOn = c.id, c.typ, c.tier, c.deps
	t.Ext.Labels, t.Ext.Priority, t.Ext.Hold, t.Ext.NotBefore = c.labels, c.prio, nil, ""
	if c.hold {
		t.Ext.Hold = &beeyard.Hold{}
	}
	switch {
	case c.never:
		t.Ext.NotBefore = "unreadable"
	case c.waits:
		t.Ext.NotBefore = c.due.UTC().Format(time.RFC3339Nano)
	}
	return t
}

// match is Filter.Match without a task a call.
func (c *candidate) match(f *beeyard.Filter, scratch *beeyard.Task) bool {
	scratch.ID, scratch.Type, scratch.TierHint, scratch.Ext.Labels = c.id, c.typ, c.tier, c.labels
	return f.Match(scratch)
}

// dueBy reports whether time alone lets it run at now.
func (c *candidate) dueBy(now time.Time) bool {
	return !c.hold && !c.never && (!c.waits || !c.due.After(now))
}

// sameFile reports whether info is the file that c was read from.
func (c *candidate) sameFile(info durable.Info) bool {
	return c.mtime == info.ModTime.UnixNano() && c.size == info.Size
}

// mergeCandidates joins two sorted lists.
func mergeCandidates(a, b []*candidate) []*candidate {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	out := make([]*candidate, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].compare(b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}
