package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// until receives hints until all names of a folder were seen.
func until(t *testing.T, w *Watcher, d Dir, want ...string) {
	t.Helper()
	seen := map[string]bool{}
	deadline := time.After(bound)
	for {
		if !slices.ContainsFunc(want, func(n string) bool { return !seen[n] }) {
			return
		}
		select {
		case h, ok := <-w.Hints():
			if !ok {
				t.Fatal("closed")
			}
			for _, n := range h.Names {
				if IsTemp(n) {
					t.Errorf("hint of the temporary %s", n)
				}
				if h.Dir == d {
					seen[n] = true
				}
			}
		case <-deadline:
			t.Fatalf("no hint of %v, saw %v", want, seen)
		}
	}
}

func TestWatch(t *testing.T) {
	d, e := testDir(t), testDir(t)
	hooked := Hooked(e, nil)
	w := Watch(context.Background(), d, hooked)
	defer w.Close()
	must(t, w.Degraded())
	must(t, WriteFile(d, "t1.json", []byte("x"), 0o600))
	until(t, w, d, "t1.json")
	must(t, d.Rename("t1.json", e, "t2.json"))
	until(t, w, hooked, "t2.json")
	// Nobody receives: what comes is gathered.
	for i := range 50 {
		put(t, d, fmt.Sprint(i), "")
	}
	must(t, d.Remove("7"))
	until(t, w, d, "7", "49")
	// From another program, by path.
	must(t, os.WriteFile(e.Path()+"/foreign.json", []byte("x"), 0o600))
	until(t, w, hooked, "foreign.json")
	w.Close()
	w.Close()
	for range w.Hints() {
	}
}

func TestWatchBeatsAreNoHints(t *testing.T) {
	d := testDir(t)
	put(t, d, ".heartbeat", "")
	w := Watch(context.Background(), d)
	defer w.Close()
	for range 20 {
		must(t, d.Touch(".heartbeat"))
	}
	put(t, d, "after", "")
	for h := range w.Hints() {
		if slices.Contains(h.Names, ".heartbeat") {
			t.Error("a beat gave a hint")
		}
		if slices.Contains(h.Names, "after") {
			break
		}
	}
}

func TestWatchStartsAndStops(t *testing.T) {
	d := testDir(t)
	pairs := 500
	if testing.Short() {
		pairs = 50
	}
	descriptors := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(names)
	}
	before := descriptors()
	for i := range pairs {
		ctx, cancel := context.WithCancel(context.Background())
		w := Watch(ctx, d)
		must(t, w.Degraded())
		put(t, d, fmt.Sprint(i), "")
		if i%2 == 0 {
			cancel()
			for range w.Hints() {
			}
		}
		w.Close()
		for range w.Hints() { // ends: the channel is closed
		}
		cancel()
	}
	if after := descriptors(); after > before+2 {
		t.Fatalf("%d descriptors before %d starts and stops, %d after", before, pairs, after)
	}
}

func TestWatchDegrades(t *testing.T) {
	d := testDir(t)
	must(t, d.Mkdir("sub", 0o700))
	sub, err := d.OpenDir("sub")
	must(t, err)
	w := Watch(context.Background(), sub)
	defer w.Close()
	must(t, sub.Close())
	must(t, d.Rmdir("sub"))
	for h := range w.Hints() {
		if h.All {
			break
		}
	}
	if err := w.Degraded(); err == nil {
		t.Error("a removed folder gives hints?")
	}

	closed := Watch(context.Background(), sub, d)
	defer closed.Close()
	if err := closed.Degraded(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed folder: %v", err)
	}
	put(t, d, "still", "")
	until(t, closed, d, "still")
	for err, limit := range map[error]error{unix.ENOSPC: unix.ENOSPC, fmt.Errorf("x: %w", unix.EMFILE): unix.EMFILE} {
		got := limitError(err, limit, "fs.inotify.some_limit")
		if !errors.Is(got, limit) || got.Error() == err.Error() {
			t.Errorf("%v", got)
		}
	}
}

// The limit of watchers of a user is reached for real.
func TestWatchLimit(t *testing.T) {
	d := testDir(t)
	var all []*Watcher
	defer func() {
		for _, w := range all {
			w.Close()
		}
	}()
	for range 200 {
		w := Watch(context.Background(), d)
		all = append(all, w)
		if err := w.Degraded(); err != nil {
			wantErr(t, "limit", err, unix.EMFILE)
			select {
			case h := <-w.Hints():
				t.Errorf("hint %v", h)
			default:
			}
			return
		}
	}
	t.Skip("SKIPPED, NOT TESTED: fs.inotify.max_user_instances is above 200 here")
}

func TestHintsOverflow(t *testing.T) {
	d := testDir(t)
	w := &Watcher{}
	var waiting queue
	byPath := map[string]Dir{"/proc/self/fd/9": d}
	for i := range hintNames + 10 {
		w.take(fsnotify.Event{Name: fmt.Sprintf("/proc/self/fd/9/%d", i), Op: fsnotify.Create}, byPath, &waiting)
		w.take(fsnotify.Event{Name: "/proc/self/fd/9/0", Op: fsnotify.Write}, byPath, &waiting)
		w.take(fsnotify.Event{Name: "/elsewhere/0", Op: fsnotify.Create}, byPath, &waiting)
		w.take(fsnotify.Event{Name: "", Op: fsnotify.Create}, byPath, &waiting)
	}
	if len(waiting) != 1 {
		t.Fatalf("%d folders", len(waiting))
	}
	if h := waiting[0].hint(); !h.All || len(h.Names) != hintNames || h.Dir != d || !slices.IsSorted(h.Names) {
		t.Errorf("%v, %d names", h.All, len(h.Names))
	}
}
