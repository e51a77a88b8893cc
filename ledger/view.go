package ledger

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is a summary of a ledger.
type Status struct {
	Schema  int64          `json:"schema_version"`
	Items   int            `json:"items"`
	Open    int            `json:"open"`
	Closed  int            `json:"closed"`
	Gone    int            `json:"source_gone"`
	Sources []SourceStatus `json:"sources"`
	Lease   *LeaseStatus   `json:"lease"`
	LastRun Value          `json:"last_run"`
	Oldest  []Row          `json:"oldest_open"`
}

// SourceStatus counts one source's items.
type SourceStatus struct {
	Source    string         `json:"source"`
	Cursor    Value          `json:"cursor"`
	Sensitive bool           `json:"sensitive"`
	Statuses  map[string]int `json:"statuses"`
	Open      int            `json:"open"`
}

// LeaseStatus says who may write, since when and until when.
type LeaseStatus struct {
	Writer string `json:"writer"`
	Since  string `json:"since"`
	Until  string `json:"until"` // "" when the lease does not run out by itself
	Stale  bool   `json:"stale"`
	Note   string `json:"note,omitempty"`
}

// Row is one item in a list.
type Row struct {
	Key    string `json:"key"`
	Source string `json:"source"`
	Status string `json:"status"`
	Title  string `json:"title"`
	At     string `json:"at,omitempty"` // when it came in, as far as it says
	FixRef string `json:"fix_ref,omitempty"`

	at time.Time
	id string
}

// Filter picks items. Empty fields pick all.
type Filter struct {
	Sources, Statuses []string
	Open              bool // neither closed nor gone
	Text              string
	Limit             int
}

const oldestShown = 10

// StatusOf summarises a document.
func StatusOf(d *Document, now Now) Status {
	s := Status{Schema: d.Schema(), LastRun: d.root.get(keyRun), Sources: []SourceStatus{}, Oldest: Rows(d, Filter{Open: true, Limit: oldestShown})}
	by := map[string]*SourceStatus{}
	of := func(id string) *SourceStatus {
		if by[id] == nil {
			entry := d.Sources().get(id).m
			by[id] = &SourceStatus{Source: id, Cursor: entry.get("cursor"), Sensitive: entry.get("sensitive").True(), Statuses: map[string]int{}}
		}
		return by[id]
	}
	for id := range d.Sources().All() {
		of(id)
	}
	for key, v := range d.Items().All() {
		src, status := of(sourceOf(key, v.m)), v.m.str("status")
		src.Statuses[status]++
		s.Items++
		switch status {
		case StatusClosed:
			s.Closed++
		case "source_gone":
			s.Gone++
		default:
			s.Open++
			src.Open++
		}
	}
	for _, src := range by {
		s.Sources = append(s.Sources, *src)
	}
	slices.SortFunc(s.Sources, func(a, b SourceStatus) int { return strings.Compare(a.Source, b.Source) })
	if l, held := d.Lease(); held {
		s.Lease = leaseStatus(l, now)
	}
	return s
}

func leaseStatus(l Lease, now Now) *LeaseStatus {
	s := &LeaseStatus{Writer: l.Writer, Since: l.Timestamp, Stale: l.Stale(now)}
	switch {
	case l.Until.IsZero():
		o := locked(l)
		s.Note = "its time cannot be read, so it does not run out; " + o.Next
	case s.Stale:
		s.Until = FormatTime(l.Until)
		s.Note = "run out: the next writer may take it"
	default:
		s.Until = FormatTime(l.Until)
	}
	return s
}

// Rows lists the items that the filter picks, oldest first; those that say no
// time come last, by their id.
func Rows(d *Document, f Filter) []Row {
	rows := []Row{}
	for key, v := range d.Items().All() {
		if r := rowOf(key, v.m); f.picks(r, v.m) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		if a.at.IsZero() != b.at.IsZero() {
			return cmp.Compare(btoi(a.at.IsZero()), btoi(b.at.IsZero()))
		}
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		// Numbers first: among both, the order of cursors would go in circles.
		if x, y := digitsOnly(a.id), digitsOnly(b.id); x != y {
			return cmp.Compare(btoi(y), btoi(x))
		}
		switch {
		case cursorLess(a.id, b.id):
			return -1
		case cursorLess(b.id, a.id):
			return 1
		}
		return strings.Compare(a.Key, b.Key)
	})
	if f.Limit > 0 && len(rows) > f.Limit {
		rows = rows[:f.Limit]
	}
	return rows
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rowOf(key string, item *Map) Row {
	r := Row{Key: key, Source: sourceOf(key, item), Status: item.str("status"), Title: item.str("title"),
		FixRef: item.str(fieldFixRef), at: itemTime(item), id: item.str("id")}
	if !r.at.IsZero() {
		r.At = FormatTime(r.at)
	}
	return r
}

func (f Filter) picks(r Row, item *Map) bool {
	if len(f.Sources) > 0 && !slices.Contains(f.Sources, r.Source) || len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.Status) {
		return false
	}
	if f.Open && (r.Status == StatusClosed || r.Status == "source_gone") {
		return false
	}
	if f.Text == "" {
		return true
	}
	text := strings.ToLower(f.Text)
	return strings.Contains(strings.ToLower(r.Key), text) || strings.Contains(strings.ToLower(r.Title), text)
}

// itemTime is when an item came in, by the first of the fields in which
// connectors say so; zero when none does.
func itemTime(item *Map) time.Time {
	for _, field := range [...]string{"ingested_at", "received_at", "created_at", "date", "timestamp", "ts"} {
		v := item.get(field)
		s, ok := v.Str()
		if !ok {
			s = v.text
		}
		if t, ok := ParseTime(s); ok {
			return t
		}
		// Chat services count seconds since 1970, with a dot.
		if f, err := strconv.ParseFloat(s, 64); err == nil && f > 1e8 && f < 1e11 {
			whole, frac := math.Modf(f)
			return time.Unix(int64(whole), int64(frac*1e9)).UTC()
		}
	}
	return time.Time{}
}

// Change is one entry of an item's history.
type Change struct {
	Key   string `json:"key"`
	Entry Value  `json:"entry"`
}

// History lists what items remember, oldest first; of one item when key is not
// empty.
func History(d *Document, key string) []Change {
	changes := []Change{}
	for k, v := range d.Items().All() {
		if key != "" && k != key {
			continue
		}
		for _, e := range v.m.get(fieldHistory).elements() {
			changes = append(changes, Change{k, e})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		x, _ := ParseTime(a.Entry.m.str("at"))
		y, _ := ParseTime(b.Entry.m.str("at"))
		return x.Compare(y)
	})
	return changes
}
