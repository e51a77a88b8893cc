package spool

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// An older enqueue renames a new body over a pending one: same name, new inode.
func TestPickNoticesOverwrite(t *testing.T) {
	for _, how := range []string{"heard", "listed"} {
		t.Run(how, func(t *testing.T) {
			r := pickRun(t)
			pickPut(t, r, dirPending, pickTask(1), pickTask(2), pickTask(3))
			p := pickPicker(t, r)
			if got := pickNext(t, p, beeyard.Filter{}); got != "task-000001" {
				t.Fatalf("first is %q", got)
			}
			if how == "listed" {
				pickDeafen(t, p)
			}
			pickPut(t, r, dirPending, pickTask(3, pickPriority(5)), pickTask(2, func(t *beeyard.Task) { t.Type = "other" }))
			if how == "heard" {
				r.pickHint("task-000003", beeyard.PlacePending)
				r.pickHint("task-000002", beeyard.PlacePending)
			} else {
				p.polled = true
			}
			if got := pickAll(t, p, beeyard.Filter{Types: []string{"work"}}); !slices.Equal(got, []string{"task-000003"}) {
				t.Errorf("took %v, want the overwritten task-000003 alone", got)
			}
			if got := pickNext(t, p, beeyard.Filter{}); got != "task-000002" {
				t.Errorf("then %q, want task-000002", got)
			}
		})
	}
}

// pickDeafen stops the events of a picker, as if all of them were lost.
func pickDeafen(t *testing.T, p *picker) {
	t.Helper()
	p.mu.Lock()
	pickMust(t, p.startWatch())
	p.mu.Unlock()
	p.watch.Close()
	<-p.pumped
	p.hints.take()
}

// The poll finds what no event told: a new task, one that was overwritten, a
// dependency that ended, a held one that came.
func TestPickPollCoversLostEvents(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirPending, pickTask(9, pickNeeds("task-000001")))
	p := pickPicker(t, r)
	pickDeafen(t, p)
	if got := pickNext(t, p, beeyard.Filter{}); got != "" {
		t.Fatalf("took %q", got)
	}
	pickPut(t, r, dirPending, pickTask(5))
	pickEnd(t, r, dirDone, "task-000001")
	pickPut(t, r, dirHeld, pickTask(3, pickNotBefore(time.Now().Add(-time.Second))))
	var got []string
	for range 3 {
		pickMust(t, p.wait(pickContext(t), time.Millisecond))
		got = append(got, pickAll(t, p, beeyard.Filter{})...)
	}
	slices.Sort(got)
	if want := []string{"task-000003", "task-000005", "task-000009"}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
}

// What is no task never stops the queue, never hangs it, and goes to
// quarantine once it is old enough. Hidden names count, as for older programs.
func TestPickStrangeFiles(t *testing.T) {
	clk := clock.NewFake(time.Now())
	var mu sync.Mutex
	said := map[string]int{}
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{Warn: func(msg string) {
		mu.Lock()
		defer mu.Unlock()
		said[msg]++
	}}, clk)
	pending := filepath.Join(r.path, dirPending)
	bad := map[string]string{"empty.json": "", "open.json": "{", "list.json": "[1]", "bytes.json": "\xff\xff", "large.json": strings.Repeat(" ", 17<<20),
		"other.json": `{"task_id": "evil", "task_type": "x"}`, "untyped.json": `{"task_id": "untyped"}`, ".json": "{}"}
	for name, text := range bad {
		pickRaw(t, r, dirPending, name, []byte(text))
	}
	pickMust(t, os.Mkdir(filepath.Join(pending, "folder.json"), 0o700))
	pickMust(t, os.Symlink("/nowhere/at/all", filepath.Join(pending, "link.json")))
	pickMust(t, syscall.Mkfifo(filepath.Join(pending, "fifo.json"), 0o600))
	pickMust(t, os.WriteFile(filepath.Join(pending, ".temp-half"), []byte("{"), 0o600))
	pickMust(t, os.WriteFile(filepath.Join(pending, "README"), []byte("not ours"), 0o600))
	hidden := pickTask(7)
	hidden.ID = ".hidden"
	pickPut(t, r, dirPending, hidden, pickTask(8))
	p := pickPicker(t, r)
	if got, want := pickAll(t, p, beeyard.Filter{}), []string{".hidden", "task-000008"}; !slices.Equal(got, want) {
		t.Errorf("took %v, want %v", got, want)
	}
	pickPut(t, r, dirPending, hidden)
	if got := pickOnceID(t, r, beeyard.Filter{}); got != ".hidden" {
		t.Errorf("a one-shot claim took %q, want .hidden", got)
	}
	names := func() (n []string) {
		list, err := os.ReadDir(pending)
		pickMust(t, err)
		for _, e := range list {
			n = append(n, e.Name())
		}
		return n
	}
	if got := names(); len(got) != len(bad)+5 {
		t.Errorf("young strangers were moved: %v are left", got)
	}
	clk.Advance(2 * time.Minute)
	for range 2 { // the second has nothing more to say
		p.polled = true
		if got := pickNext(t, p, beeyard.Filter{}); got != "" {
			t.Errorf("took %q", got)
		}
	}
	if got, want := names(), []string{".temp-half", "README"}; !slices.Equal(got, want) {
		t.Errorf("left in pending: %v, want %v", got, want)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) != len(bad)+3 {
		t.Errorf("%d warnings, want one for each of %d files: %v", len(said), len(bad)+3, said)
	}
	for msg, n := range said {
		if n != 1 {
			t.Errorf("said %d times: %s", n, msg)
		}
	}
}

// A file that passes for a task until it is claimed must not come back at once
// for as long as it is too young for quarantine.
func TestPickUnreadableIsNotOfferedForEver(t *testing.T) {
	clk := clock.NewFake(time.Now())
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{}, clk)
	body := `{"task_id": "half", "task_type": "work", "created_at": "2026-01-02T03:04:05Z", "run_id": 7}`
	pickRaw(t, r, dirPending, "half.json", []byte(body))
	w, err := r.Attach(pickContext(t), beeyard.WorkerSpec{ID: "w1", StaleAfter: time.Hour})
	pickMust(t, err)
	defer func() { pickMust(t, w.Close(pickContext(t))) }()
	p := pickPicker(t, r)
	offered := 0
	for range 5 {
		c, err := w.Claim(pickContext(t), beeyard.Filter{})
		pickMust(t, err)
		if c != nil {
			t.Fatalf("claimed %+v", c.Task)
		}
		if _, ok, err := p.next(pickContext(t), beeyard.Filter{}); err != nil {
			t.Fatal(err)
		} else if ok {
			offered++
		}
		clk.Advance(givenFor)
	}
	if offered > 1 {
		t.Errorf("offered %d times", offered)
	}
	if there, err := r.pending.Exists("half.json"); err != nil || !there {
		t.Errorf("the young file is gone: %v", err)
	}
}

// A task whose claim fails for its own reasons is tried again, and does not
// stand in the way meanwhile.
func TestPickReturned(t *testing.T) {
	clk := clock.NewFake(time.Now())
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{}, clk)
	pickPut(t, r, dirPending, pickTask(1), pickTask(2))
	p := pickPicker(t, r)
	ctx := pickContext(t)
	id, _, err := p.next(ctx, beeyard.Filter{})
	pickMust(t, err)
	p.returned(id)
	if got := pickAll(t, p, beeyard.Filter{}); !slices.Equal(got, []string{"task-000002"}) {
		t.Errorf("after a failed claim of %s: took %v", id, got)
	}
	if gone, err := p.drained(ctx, beeyard.Filter{}); err != nil || gone {
		t.Errorf("drained %v, %v with a task to try again", gone, err)
	}
	clk.Advance(returnedFor)
	if got := pickAll(t, p, beeyard.Filter{}); !slices.Equal(got, []string{id}) {
		t.Errorf("later: took %v, want %s", got, id)
	}
}

// A file that was handed out and never claimed is offered again.
func TestPickForgottenIsOfferedAgain(t *testing.T) {
	clk := clock.NewFake(time.Now())
	r := pickRunAt(t, filepath.Join(t.TempDir(), "run"), Options{}, clk)
	pickPut(t, r, dirPending, pickTask(1))
	p := pickPicker(t, r)
	ctx := pickContext(t)
	for range 2 {
		if id, ok, err := p.next(ctx, beeyard.Filter{}); err != nil || !ok {
			t.Fatalf("next: %q %v %v", id, ok, err)
		}
		if id, ok, err := p.next(ctx, beeyard.Filter{}); err != nil || ok {
			t.Fatalf("while it is being claimed: %q %v %v", id, ok, err)
		}
		clk.Advance(givenFor)
	}
}

// A body that the disk will not give stops neither a worker nor a one-shot
// claim from taking another; with nothing else to take it is told.
func TestPickSickDisk(t *testing.T) {
	base := pickRun(t)
	pickPut(t, base, dirPending, pickTask(1), pickTask(2), pickTask(3))
	eio := syscall.EIO
	r, err := Open(base.path, Options{Wrap: func(d durable.Dir) durable.Dir {
		return durable.Hooked(d, func(op durable.Op) error {
			if op.Op == durable.OpReadFile && op.Name == "task-000001.json" {
				return eio
			}
			return nil
		})
	}}, base.clk)
	pickMust(t, err)
	defer func() { pickMust(t, r.Close()) }()
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "task-000002" {
		t.Errorf("a one-shot claim took %q", got)
	}
	p := r.newPicker()
	ctx := pickContext(t)
	if got := pickNext(t, p, beeyard.Filter{}); got != "task-000003" {
		t.Errorf("a worker took %q", got)
	}
	for range 2 {
		if id, ok, err := p.next(ctx, beeyard.Filter{}); ok || !errors.Is(err, eio) {
			t.Errorf("with only the unreadable one left: %q, %v", id, err)
		}
		if gone, err := p.drained(ctx, beeyard.Filter{}); gone || !errors.Is(err, eio) {
			t.Errorf("drained: %v, %v", gone, err)
		}
	}
	err = r.pickOnce(ctx, beeyard.Filter{}, func(string) (bool, error) { return true, nil })
	if !errors.Is(err, eio) {
		t.Errorf("a one-shot claim with only the unreadable one left: %v", err)
	}
	pickMust(t, p.close())
}

// A list is read once and kept: what a claim costs does not grow with it,
// whether events come or not.
func TestPickCostsAreFlat(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for _, n := range []int{200, 4000} {
			base := pickRun(t)
			pickFill(t, base, dirPending, n)
			var count *durable.Counter
			r, err := Open(base.path, Options{Wrap: func(d durable.Dir) durable.Dir {
				d, count = durable.Counting(d)
				return d
			}}, base.clk)
			pickMust(t, err)
			p := r.newPicker()
			if deaf {
				pickDeafen(t, p)
			}
			count.Reset()
			for range n {
				if pickNext(t, p, beeyard.Filter{}) == "" {
					t.Fatal("a task is missing")
				}
			}
			if reads := count.Of(durable.OpReadFile); reads > n+n/10+10 {
				t.Errorf("deaf %v: %d tasks cost %d reads", deaf, n, reads)
			}
			// A small folder may be listed for each claim, at less than that costs.
			if lists := count.Of(durable.OpEach); lists > 20+n/10 && n > 1000 {
				t.Errorf("deaf %v: %d tasks cost %d listings", deaf, n, lists)
			}
			if all := count.Of(durable.OpReadFile, durable.OpEach, durable.OpStat, durable.OpExists, durable.OpInfo, durable.OpOpen); all > 8*n {
				t.Errorf("deaf %v: %d tasks cost %d calls", deaf, n, all)
			}
			pickMust(t, p.close())
			pickMust(t, r.Close())
		}
	}
}

// With nothing ready a small run is looked at itself: what another process did
// is found without its event and without the poll.
func TestPickDryLooks(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirPending, pickTask(9, pickNeeds("task-000001")))
	p := pickPicker(t, r)
	pickDeafen(t, p)
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, ""},
		{func() { pickPut(t, r, dirPending, pickTask(5)) }, "task-000005"},
		{func() { pickEnd(t, r, dirDone, "task-000001") }, "task-000009"},
		{func() { pickPut(t, r, dirHeld, pickTask(3, pickNotBefore(time.Now().Add(-time.Second)))) }, "task-000003"},
		{func() { pickPut(t, r, dirPending, pickTask(5)) }, "task-000005"},
	} {
		step.do()
		if got := pickNext(t, p, beeyard.Filter{}); got != step.want {
			t.Errorf("took %q, want %q", got, step.want)
		}
	}
}

// A task that waits for itself never runs, though an earlier life of it is done.
func TestPickSelf(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirPending, pickTask(1, pickNeeds("task-000001")))
	pickEnd(t, r, dirDone, "task-000001")
	if got := pickNext(t, pickPicker(t, r), beeyard.Filter{}); got != "" {
		t.Errorf("a worker took %q", got)
	}
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "" {
		t.Errorf("a one-shot claim took %q", got)
	}
}

// A worker keeps what it reads for long, so it does not trust the index blindly.
func TestPickStaleIndex(t *testing.T) {
	r := pickRun(t)
	pickFill(t, r, dirPending, 100)
	pickIndex(t, r)
	data, err := pickTask(70, pickPriority(1)).Encode()
	pickMust(t, err)
	path := filepath.Join(r.path, dirPending, "task-000070.json")
	pickMust(t, os.WriteFile(path, data, 0o600)) // the same inode
	pickMust(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	if got := pickNext(t, pickPicker(t, r), beeyard.Filter{}); got != "task-000070" {
		t.Errorf("took %q", got)
	}
}

// A producer that writes slowly, straight into pending/, is done at last. No
// name changes by that, so only the poll looks again.
func TestPickPollFindsFinishedWriting(t *testing.T) {
	r := pickRun(t)
	p := pickPicker(t, r)
	pickDeafen(t, p)
	path := filepath.Join(r.path, dirPending, "task-000001.json")
	data, err := pickTask(1).Encode()
	pickMust(t, err)
	pickMust(t, os.WriteFile(path, data[:len(data)/2], 0o600))
	if got := pickNext(t, p, beeyard.Filter{}); got != "" {
		t.Fatalf("took half of %q", got)
	}
	pickMust(t, os.WriteFile(path, data, 0o600))
	if got := pickNext(t, p, beeyard.Filter{}); got != "" {
		t.Fatalf("took %q before the poll", got)
	}
	pickMust(t, p.wait(pickContext(t), time.Millisecond))
	if got := pickNext(t, p, beeyard.Filter{}); got != "task-000001" {
		t.Errorf("after the poll took %q", got)
	}
}
