package spool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"beeyard"
)

func TestViewGetShowsEachState(t *testing.T) {
	r := viewRun(t, Options{})
	later := beeyard.FormatTime(time.Now().Add(time.Hour))
	sooner := beeyard.FormatTime(time.Now().Add(-time.Hour))
	put := func(folder, id string, change func(*beeyard.Task)) {
		task := viewTask(id)
		if change != nil {
			change(task)
		}
		viewPut(t, r, folder, task)
	}
	put(dirPending, "ready", nil)
	put(dirPending, "blocked", func(x *beeyard.Task) { x.DependsOn = []string{"failed", "done"} })
	put(dirPending, "ghostly", func(x *beeyard.Task) { x.DependsOn = []string{"ghost"} })
	put(dirHeld, "waiting", func(x *beeyard.Task) { x.Ext.NotBefore = later })
	put(dirHeld, "backoff", func(x *beeyard.Task) { x.Ext.RetryAt = later })
	put(dirHeld, "due", func(x *beeyard.Task) { x.Ext.NotBefore = sooner })
	put(dirHeld, "held", func(x *beeyard.Task) { x.Ext.Hold = &beeyard.Hold{By: "ann", Reason: "later"} })
	put(dirHeld, "never", func(x *beeyard.Task) { x.Ext.NotBefore = "tomorrow" })
	put(dirDone, "done", func(x *beeyard.Task) { x.Ext.Outcome = beeyard.OutcomeDone })
	put(dirFailed, "failed", func(x *beeyard.Task) { x.Ext.Outcome, x.Ext.Reason = beeyard.OutcomeFailed, "exit 3" })
	put(dirFailed, "canceled", func(x *beeyard.Task) { x.Ext.Outcome = beeyard.OutcomeCanceled })
	put(dirFailed, "olderfailed", nil)
	put(".beeyard/archive", "archived", func(x *beeyard.Task) { x.Ext.Outcome = beeyard.OutcomeDone })
	viewClaim(t, r, "w1", true, viewTask("claimed"))
	viewPutRaw(t, r, dirPending, "broken.json", []byte("{"))
	viewPutRaw(t, r, dirQuarantine, "strange.json", []byte("["))
	viewPutRaw(t, r, dirQuarantine, "strange.json.reason", []byte("it is not a JSON object\n"))

	for _, c := range []struct {
		id    string
		state beeyard.State
		place beeyard.Place
		says  string // in a reason or the detail
	}{
		{"ready", beeyard.StateReady, beeyard.PlacePending, ""},
		{"blocked", beeyard.StateBlocked, beeyard.PlacePending, "failed, which failed"},
		{"ghostly", beeyard.StateBlocked, beeyard.PlacePending, "ghost, which does not exist"},
		{"waiting", beeyard.StateWaiting, beeyard.PlaceHeld, "not before"},
		{"backoff", beeyard.StateWaiting, beeyard.PlaceHeld, "backing off"},
		{"due", beeyard.StateReady, beeyard.PlaceHeld, ""},
		{"held", beeyard.StateHeld, beeyard.PlaceHeld, "held by ann: later"},
		{"never", beeyard.StateWaiting, beeyard.PlaceHeld, "not a time"},
		{"done", beeyard.StateDone, beeyard.PlaceDone, ""},
		{"failed", beeyard.StateFailed, beeyard.PlaceFailed, "exit 3"},
		{"canceled", beeyard.StateCanceled, beeyard.PlaceFailed, "canceled"},
		{"olderfailed", beeyard.StateFailed, beeyard.PlaceFailed, "failed"},
		{"archived", beeyard.StateDone, beeyard.PlaceArchive, ""},
		{"claimed", beeyard.StateClaimed, beeyard.PlaceClaimed, "a worker has it"},
		{"broken", beeyard.StateQuarantined, beeyard.PlacePending, "want a key"},
		{"strange", beeyard.StateQuarantined, beeyard.PlaceQuarantine, "not a JSON object"},
	} {
		v, err := r.Get(viewContext(t), c.id)
		if err != nil {
			t.Errorf("%s: %v", c.id, err)
			continue
		}
		if v.State != c.state || v.Place != c.place || v.Task.ID != c.id {
			t.Errorf("%s: state %s in %s, want %s in %s", c.id, v.State, v.Place, c.state, c.place)
		}
		said := v.Detail
		for _, reason := range v.Reasons {
			said += "; " + reason.Text
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: says %q, want %q in it", c.id, said, c.says)
		}
		if v.Since < time.Now().Add(-time.Hour).Unix() {
			t.Errorf("%s: since %d", c.id, v.Since)
		}
	}
	if _, err := r.Get(viewContext(t), "nobody"); !errors.Is(err, beeyard.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
	if _, err := r.Get(viewContext(t), "../run/status"); !errors.Is(err, beeyard.ErrUsage) {
		t.Errorf("an id that leads out: %v", err)
	}
}

func TestViewGetSaysWhoHasIt(t *testing.T) {
	r := viewRun(t, Options{})
	task := viewTask("t1")
	task.Ext.Rev = 4
	dir := viewClaim(t, r, "w1", true, task)
	viewPutRaw(t, r, "claimed/"+dir, fileBeatNote, []byte("half way"))
	viewPutRaw(t, r, "claimed/"+dir, tagged("t1", tagCancel, ""), []byte("{}"))
	v, err := r.Get(viewContext(t), "t1")
	viewMust(t, err)
	c := v.Claim
	if c == nil || c.Worker != "w1" || c.Token != "4:"+dir || c.Alive != "yes" || c.Note != "half way" || !c.Canceled || c.Older {
		t.Fatalf("claim %+v", c)
	}
	if c.BeatAge < 0 || c.BeatAge > viewWait.Seconds() || c.PID != r.host.PID || c.Host != "here" {
		t.Errorf("claim %+v", c)
	}
	if at, ok := beeyard.ParseTime(c.Since); !ok || time.Since(at) > viewWait {
		t.Errorf("claimed since %q", c.Since)
	}

	viewClaim(t, r, "w2", false, viewTask("t2"))
	if v, err = r.Get(viewContext(t), "t2"); err != nil || v.Claim.Alive != "no" {
		t.Errorf("a dead owner's: %+v, %v", v, err)
	}
	viewPut(t, r, "claimed/old-worker", viewTask("t3"))
	if v, err = r.Get(viewContext(t), "t3"); err != nil || v.Claim.Worker != "old-worker" || !v.Claim.Older || v.Claim.Token != "" || v.Claim.BeatAge != -1 {
		t.Errorf("an older program's: %+v, %v", v.Claim, err)
	}
}

// A decided claim counts as claimed until it is carried out; of two copies of
// one life the higher rev counts, and of equal ones the one that came furthest.
func TestViewGetPicksTheCopyThatCounts(t *testing.T) {
	r := viewRun(t, Options{})
	dir := viewClaim(t, r, "w1", true)
	data, err := viewTask("taken").Encode()
	viewMust(t, err)
	viewPutRaw(t, r, "claimed/"+dir, tagged("taken", tagTaken, "abcd1234"), data)
	if v, err := r.Get(viewContext(t), "taken"); err != nil || v.State != beeyard.StateClaimed {
		t.Errorf("decided: %+v, %v", v, err)
	}

	at := func(id, folder string, rev int64, life string) {
		task := viewTask(id)
		task.Ext.Rev, task.Ext.UID = rev, life
		viewPut(t, r, folder, task)
	}
	at("higher", dirPending, 3, "a")
	at("higher", dirDone, 2, "a")
	at("equal", dirPending, 2, "a")
	at("equal", dirFailed, 2, "a")
	at("lives", dirPending, 0, "b")
	at("lives", dirDone, 5, "a")
	viewAge(t, r, dirDone, "lives.json", time.Hour)
	for id, want := range map[string]beeyard.Place{"higher": beeyard.PlacePending, "equal": beeyard.PlaceFailed, "lives": beeyard.PlacePending} {
		v, err := r.Get(viewContext(t), id)
		viewMust(t, err)
		if v.Place != want {
			t.Errorf("%s: %s, want %s", id, v.Place, want)
		}
	}
	v, err := r.Get(viewContext(t), "lives")
	viewMust(t, err)
	if !strings.Contains(v.Detail, "done/") {
		t.Errorf("the other life is not named: %q", v.Detail)
	}
	// Both lives are tasks, and a copy is none.
	p, err := r.List(viewContext(t), beeyard.Query{})
	viewMust(t, err)
	viewWantIDs(t, p, "higher", "lives", "taken", "equal", "lives")
}
