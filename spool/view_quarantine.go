package spool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// quarantined is a file in quarantine/.
type quarantined struct {
	name string
	id   string // of the task that its name stood for, or the name
	at   time.Time
	why  string
}

const reasonSuffix = ".reason"

// eachQuarantined calls f for what is no task, until it returns false. Bodies
// of tasks that lost to a later record, which lie there too, are left out:
// their tasks are elsewhere.
func (r *Run) eachQuarantined(ctx context.Context, f func(quarantined) bool) error {
	var names []string
	err := r.quarantine.Each(func(e durable.Entry) bool {
		if !durable.IsTemp(e.Name) && !strings.HasSuffix(e.Name, reasonSuffix) && !isLate(e.Name) {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list quarantine: %w", err)
	}
	for _, n := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := r.quarantine.Stat(n)
		if missing(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at quarantined file: %w", err)
		}
		q := quarantined{name: n, id: asideID(n), at: info.ModTime}
		if why, _, err := r.quarantine.ReadFile(reasonName(n), reasonMax+1); err == nil {
			q.why = strings.TrimSpace(string(why))
		}
		if !f(q) {
			return nil
		}
	}
	return nil
}

// isLate: what setAside and keepAside name. An id may look like that as well;
// then it is shown nowhere but by doctor.
func isLate(name string) bool {
	at := strings.LastIndex(name, ".late-")
	if at <= 0 {
		return false
	}
	r, _, ok := strings.Cut(name[at+len(".late-"):], ".")
	return ok && len(r) == recordNonce
}

// asideID is the id that a quarantined name was one of.
func asideID(name string) string {
	id, isBody := taskIDOf(name)
	if !isBody {
		return name
	}
	if at := len(id) - recordNonce - 1; at > 0 && id[at] == '~' {
		id = id[:at]
	}
	return id
}

func (r *Run) viewQuarantined(q quarantined) *beeyard.View {
	t := &beeyard.Task{ID: q.id}
	verdict := beeyard.Judge(t, beeyard.PlaceQuarantine, time.Time{}, nil)
	why := q.why
	if why == "" {
		why = "it is in quarantine/ without a reason beside it"
	}
	return &beeyard.View{Task: t, Place: beeyard.PlaceQuarantine, State: verdict.State, Reasons: verdict.Reasons,
		Since: q.at.Unix(), Detail: why}
}
