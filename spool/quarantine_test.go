package spool

import (
	"context"
	"fmt"
	"io/fs"
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

// enqWarnings collects what a run warns of.
type enqWarnings struct {
	mu  sync.Mutex
	all []string
}

func (w *enqWarnings) warn(msg string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, msg)
}

func (w *enqWarnings) about(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, m := range w.all {
		if strings.Contains(m, text) {
			n++
		}
	}
	return n
}

// enqAging opens the run with a clock that the test moves, at the real time.
func enqAging(t *testing.T, o Options) (*Run, *clock.Fake) {
	t.Helper()
	r := enqRun(t, o)
	fake := clock.NewFake(time.Now())
	r.clk = fake
	_, err := r.serverNow() // measures how far it is from the file server's
	enqMust(t, err)
	return r, fake
}

// One bad file stops the queue: whatever lies in pending/ and is no task is
// quarantined, with its reason, and reported once.
func TestQuarantineKinds(t *testing.T) {
	var warnings enqWarnings
	r, now := enqAging(t, Options{Warn: warnings.warn})
	pending := filepath.Join(r.path, dirPending)
	file := func(name, text string) { enqMust(t, os.WriteFile(filepath.Join(pending, name), []byte(text), 0o600)) }
	file("empty.json", "")
	file("brace.json", "{")
	file("array.json", "[1]")
	file("bytes.json", "\xff\xff")
	file("zeros.json", strings.Repeat("\x00", 4096))
	file("large.json", `{"task_id": "large", "task_type": "x", "payload": "`+strings.Repeat("x", 20<<20)+`"}`)
	file("named.json", `{"task_id": "../../evil", "task_type": "x"}`)
	file("twice.json", `{"task_id": "twice", "task_id": "twice", "task_type": "x"}`)
	enqMust(t, os.Mkdir(filepath.Join(pending, "folder.json"), 0o700))
	enqMust(t, os.Symlink("nowhere", filepath.Join(pending, "dangling.json")))
	enqMust(t, os.Symlink("/etc/hostname", filepath.Join(pending, "link.json")))
	enqMust(t, syscall.Mkfifo(filepath.Join(pending, "fifo.json"), 0o600))
	enqueueOne(t, r, enqTask("good"))
	bad := []string{"array", "brace", "bytes", "dangling", "empty", "fifo", "folder", "large", "link", "named", "twice", "zeros"}
	all := func() {
		for _, id := range append(bad, "good", "gone") {
			enqMust(t, r.quarantineFile(enqContext(t), r.pending, id+".json", "seen"))
		}
	}
	all()
	if names := enqNames(t, r, dirPending); len(names) != len(bad)+1 {
		t.Fatalf("fresh files were touched: %v are left", names)
	}
	now.Advance(strangeAgePending + time.Second)
	all()
	all()
	if names := enqNames(t, r, dirPending); !slices.Equal(names, []string{"good.json"}) {
		t.Errorf("pending/ holds %v", names)
	}
	for _, id := range bad {
		reason, err := os.ReadFile(filepath.Join(r.path, dirQuarantine, id+".json.reason"))
		if err != nil || len(reason) < 10 {
			t.Errorf("%s: reason %q, %v", id, reason, err)
		}
		if n := warnings.about("/" + id + ".json"); n == 0 {
			t.Errorf("%s was not reported", id)
		}
	}
	if n := warnings.about("was moved to quarantine/"); n != len(bad) {
		t.Errorf("%d reports of %d files", n, len(bad))
	}
}

// A second file of the same name does not push the first out.
func TestQuarantineSameNameAgain(t *testing.T) {
	r, now := enqAging(t, Options{})
	for i := range 3 {
		enqMust(t, os.WriteFile(filepath.Join(r.path, dirPending, "x.json"), fmt.Appendf(nil, "{%d", i), 0o600))
		now.Advance(2 * strangeAgePending)
		enqMust(t, r.quarantineFile(enqContext(t), r.pending, "x.json", ""))
	}
	names := enqNames(t, r, dirQuarantine)
	if len(names) != 6 {
		t.Errorf("quarantine/ holds %v", names)
	}
	// A name near the limit leaves room for the suffixes.
	long := strings.Repeat("n", beeyard.MaxIDBytes)
	for range 2 {
		enqMust(t, os.WriteFile(filepath.Join(r.path, dirPending, long+".json"), []byte("{"), 0o600))
		now.Advance(2 * strangeAgePending)
		enqMust(t, r.quarantineFile(enqContext(t), r.pending, long+".json", ""))
	}
	if names := enqNames(t, r, dirPending); len(names) != 0 {
		t.Errorf("pending/ holds %v", names)
	}
}

// Reader sees half-written file: a foreign producer that writes slowly is left
// alone until 60 s after its last change; elsewhere 10 s are enough.
func TestQuarantineSlowProducer(t *testing.T) {
	for _, c := range []struct {
		place beeyard.Place
		limit time.Duration
	}{{beeyard.PlacePending, strangeAgePending}, {beeyard.PlaceHeld, strangeAge}} {
		r, now := enqAging(t, Options{})
		dir, name := r.place(c.place), "slow.json"
		f, err := dir.Create(name, fileMode)
		enqMust(t, err)
		_, err = f.Write([]byte(`{"task_id": "slow", `))
		enqMust(t, err)
		now.Advance(c.limit - time.Second)
		enqMust(t, r.quarantineFile(enqContext(t), dir, name, ""))
		if ok, err := dir.Exists(name); err != nil || !ok {
			t.Fatalf("quarantined too early (%v)", err)
		}
		// Whole by now: a task.
		_, err = f.Write([]byte(`"task_type": "x"}`))
		enqMust(t, err)
		enqMust(t, f.Close())
		now.Advance(2 * c.limit)
		enqMust(t, r.quarantineFile(enqContext(t), dir, name, ""))
		if _, _, err := readTask(dir, name, "slow"); err != nil {
			t.Errorf("a whole task was taken away: %v", err)
		}
	}
}

// It becomes a task between the look and the move: it is put back, and an
// enqueue of its id does not slip in meanwhile.
func TestQuarantinePutsBack(t *testing.T) {
	gate := newEnqGate(func(op durable.Op) bool {
		return op.Op == durable.OpRenameExcl && filepath.Base(op.To) == dirQuarantine
	})
	var warnings enqWarnings
	r, now := enqAging(t, Options{Wrap: gate.wrap, Warn: warnings.warn})
	path := filepath.Join(r.path, dirPending, "x.json")
	enqMust(t, os.WriteFile(path, []byte("{"), 0o600))
	now.Advance(2 * strangeAgePending)
	done := make(chan error, 1)
	go func() { done <- r.quarantineFile(context.Background(), r.pending, "x.json", "") }()
	enqHear(t, gate.reached, "the move")
	if !enqLocked(t, r) {
		t.Error("the queue is not locked while the id is away")
	}
	enqMust(t, os.WriteFile(path, []byte(`{"task_id": "x", "task_type": "late"}`), 0o600))
	close(gate.open)
	enqMust(t, <-done)
	if _, _, err := readTask(r.pending, "x.json", "x"); err != nil {
		t.Errorf("it was not put back: %v", err)
	}
	if names := enqNames(t, r, dirQuarantine); len(names) != 0 || warnings.about("x.json") != 0 {
		t.Errorf("quarantine/ holds %v, warnings %q", names, warnings.all)
	}
}

// A file that another user made and that cannot be read is skipped with one warning.
func TestQuarantineUnreadable(t *testing.T) {
	var warnings enqWarnings
	log := &enqLog{}
	r, now := enqAging(t, Options{Wrap: log.wrap, Warn: warnings.warn})
	enqMust(t, os.WriteFile(filepath.Join(r.path, dirPending, "x.json"), []byte(`{"task_id": "x", "task_type": "t"}`), 0o600))
	log.failWith(func(op durable.Op) error {
		if op.Op == durable.OpReadFile && op.Name == "x.json" {
			return fs.ErrPermission
		}
		return nil
	})
	now.Advance(2 * strangeAgePending)
	for range 3 {
		enqMust(t, r.quarantineFile(enqContext(t), r.pending, "x.json", "it cannot be read"))
	}
	if names := enqNames(t, r, dirPending); len(names) != 1 {
		t.Errorf("pending/ holds %v", names)
	}
	if n := warnings.about("x.json"); n != 1 {
		t.Errorf("%d warnings: %q", n, warnings.all)
	}
}
