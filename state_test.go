package beeyard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"beeyard"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// known answers for dependencies by name.
func known(id string) beeyard.Dep {
	switch id {
	case "done":
		return beeyard.Dep{ID: id, Met: true, Known: true, State: beeyard.StateDone}
	case "failed":
		return beeyard.Dep{ID: id, Known: true, State: beeyard.StateFailed}
	case "canceled":
		return beeyard.Dep{ID: id, Known: true, State: beeyard.StateCanceled}
	case "running":
		return beeyard.Dep{ID: id, Known: true, State: beeyard.StateClaimed}
	case "looped":
		return beeyard.Dep{ID: id, Known: true, State: beeyard.StateBlocked, Cycle: []string{"looped", "t", "looped"}}
	}
	return beeyard.Dep{ID: id}
}

func TestJudge(t *testing.T) {
	at := func(d time.Duration) string { return beeyard.FormatTime(now.Add(d)) }
	for _, c := range []struct {
		name  string
		deps  string
		ext   beeyard.Ext
		place beeyard.Place
		state beeyard.State
		says  string
		stuck bool
	}{
		{"free", "", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateReady, "", false},
		{"met", "done", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateReady, "", false},
		{"all must be met, not any", "done running", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateBlocked, "running, which is claimed", false},
		{"failed", "failed", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateBlocked, "failed, which failed", true},
		{"canceled", "canceled", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateBlocked, "which was canceled", true},
		{"never existed", "ghost", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateBlocked, "ghost, which does not exist", true},
		{"itself", "t", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateBlocked, "depends on itself", true},
		{"cycle", "looped", beeyard.Ext{}, beeyard.PlacePending, beeyard.StateBlocked, "looped → t → looped", true},
		{"not before", "", beeyard.Ext{NotBefore: at(time.Hour)}, beeyard.PlaceHeld, beeyard.StateWaiting, "not before", false},
		{"due", "", beeyard.Ext{NotBefore: at(-time.Hour)}, beeyard.PlaceHeld, beeyard.StateReady, "", false},
		{"due to the instant", "", beeyard.Ext{NotBefore: at(0)}, beeyard.PlaceHeld, beeyard.StateReady, "", false},
		{"backing off", "", beeyard.Ext{RetryAt: at(time.Minute)}, beeyard.PlaceHeld, beeyard.StateWaiting, "backing off until", false},
		{"a time that is none", "", beeyard.Ext{NotBefore: "soon"}, beeyard.PlaceHeld, beeyard.StateWaiting, "not a time", true},
		{"held", "failed", beeyard.Ext{Hold: &beeyard.Hold{By: "me", Reason: "later"}}, beeyard.PlaceHeld, beeyard.StateHeld, "held by me: later", true},
		{"claimed", "", beeyard.Ext{}, beeyard.PlaceClaimed, beeyard.StateClaimed, "a worker has it", false},
		{"done", "", beeyard.Ext{}, beeyard.PlaceDone, beeyard.StateDone, "", false},
		{"canceled end", "", beeyard.Ext{Outcome: beeyard.OutcomeCanceled, Reason: "by me"}, beeyard.PlaceFailed, beeyard.StateCanceled, "canceled: by me", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := &beeyard.Task{ID: "t", DependsOn: strings.Fields(c.deps), Ext: c.ext}
			v := beeyard.Judge(task, c.place, now, known)
			if v.State != c.state {
				t.Fatalf("%s, want %s", v.State, c.state)
			}
			if c.says == "" {
				if len(v.Reasons) > 0 {
					t.Fatalf("reasons for nothing: %+v", v.Reasons)
				}
				return
			}
			if len(v.Reasons) == 0 || !strings.Contains(v.Reasons[0].Text, c.says) || v.Reasons[0].Stuck != c.stuck {
				t.Fatalf("%+v, want %q, stuck %v", v.Reasons, c.says, c.stuck)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	a := &beeyard.Task{ID: "a", CreatedAt: "2026-05-01T12:00:00+02:00"}
	b := &beeyard.Task{ID: "b", CreatedAt: "2026-05-01T10:30:00Z"}
	if !beeyard.Before(a, b) || beeyard.Before(b, a) {
		t.Fatal("times are compared as instants, not as text")
	}
	b.Ext.Priority = 1
	if !beeyard.Before(b, a) {
		t.Fatal("priority comes first")
	}
	c := &beeyard.Task{ID: "c", CreatedAt: a.CreatedAt}
	if !beeyard.Before(a, c) || beeyard.Before(c, a) {
		t.Fatal("the id decides last")
	}
}

func TestFindCycle(t *testing.T) {
	graph := map[string][]string{"b": {"c"}, "c": {"a", "d"}, "d": nil}
	deps := func(id string) ([]string, bool) { d, ok := graph[id]; return d, ok }
	if got := strings.Join(beeyard.FindCycle("a", []string{"b"}, deps), " "); got != "a b c a" {
		t.Fatalf("path %q", got)
	}
	if got := beeyard.FindCycle("x", []string{"b"}, deps); got != nil {
		t.Fatalf("no cycle goes through x: %v", got)
	}
	if got := strings.Join(beeyard.FindCycle("a", []string{"a"}, deps), " "); got != "a a" {
		t.Fatalf("path %q", got)
	}
	// A chain of 100,000 costs no stack, and two that share it are walked once.
	long := func(id string) ([]string, bool) {
		var n int
		if _, err := fmt.Sscanf(id, "n%d", &n); err != nil || n > 100000 {
			return nil, false
		}
		return []string{fmt.Sprintf("n%d", n+1), fmt.Sprintf("n%d", n+1)}, true
	}
	if got := beeyard.FindCycle("start", []string{"n0", "n0"}, long); got != nil {
		t.Fatal("a chain is no cycle")
	}
}
