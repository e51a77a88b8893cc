package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Another user's file is passed over with one warning; everything else shows.
func TestViewPassesOverWhatItMayNotRead(t *testing.T) {
	var warned atomic.Int64
	o := Options{
		Wrap: func(d durable.Dir) durable.Dir {
			return durable.Hooked(d, func(op durable.Op) error {
				if op.Name == "secret.json" && (op.Op == durable.OpReadFile || op.Op == durable.OpOpen) {
					return fs.ErrPermission
				}
				return nil
			})
		},
		Warn: func(msg string) {
			if strings.Contains(msg, "secret") {
				warned.Add(1)
			}
		},
	}
	for _, folder := range []string{dirPending, dirDone, dirFailed} {
		warned.Store(0)
		r := viewRun(t, o)
		viewPut(t, r, folder, viewTask("secret"))
		viewPut(t, r, folder, viewTask("plain"))
		for range 2 {
			p, err := r.List(viewContext(t), beeyard.Query{})
			viewMust(t, err)
			viewWantIDs(t, p, "plain")
			c, err := r.Counts(viewContext(t))
			viewMust(t, err)
			if folder == dirPending && c.ByState[beeyard.StateReady] != 1 {
				t.Errorf("counts %v", c.ByState)
			}
		}
		if n := warned.Load(); n < 1 || n > 2 {
			t.Errorf("%s: warned %d times", folder, n)
		}
		if _, err := r.Get(viewContext(t), "secret"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: get: %v", folder, err)
		}
		if v, err := r.Get(viewContext(t), "plain"); err != nil || v.Task.ID != "plain" {
			t.Errorf("%s: get another: %v", folder, err)
		}
	}
}

// One bad file hides no other: a FIFO does not hang a look, a link is not
// followed, and each is shown as what it is.
func TestViewOfStrangeFiles(t *testing.T) {
	r := viewRun(t, Options{})
	viewPut(t, r, dirPending, viewTask("good"))
	viewPutRaw(t, r, dirPending, "empty.json", nil)
	viewPutRaw(t, r, dirPending, "list.json", []byte("[]"))
	viewPutRaw(t, r, dirPending, "bytes.json", []byte("{\"task_id\": \"\xff\"}"))
	viewPutRaw(t, r, dirPending, "other.json", []byte(`{"task_id":"../../evil","task_type":"x"}`))
	viewPutRaw(t, r, dirPending, "big.json", make([]byte, beeyard.MaxTaskBytes+1))
	viewMust(t, os.Mkdir(filepath.Join(r.path, dirPending, "folder.json"), 0o700))
	viewMust(t, os.Symlink("/etc/hostname", filepath.Join(r.path, dirPending, "link.json")))
	viewMust(t, os.Symlink("/nowhere", filepath.Join(r.path, dirPending, "dangling.json")))
	viewMust(t, syscall.Mkfifo(filepath.Join(r.path, dirPending, "fifo.json"), 0o600))
	p, err := r.List(viewContext(t), beeyard.Query{States: []beeyard.State{beeyard.StateReady}})
	viewMust(t, err)
	viewWantIDs(t, p, "good")
	p, err = r.List(viewContext(t), beeyard.Query{States: []beeyard.State{beeyard.StateQuarantined}})
	viewMust(t, err)
	if p.Total != 9 || len(p.Tasks) != 9 {
		t.Errorf("%d of %d: %v", len(p.Tasks), p.Total, viewIDs(p))
	}
	for _, v := range p.Tasks {
		if v.Detail == "" {
			t.Errorf("%s: nothing says why", v.Task.ID)
		}
	}
	c, err := r.Counts(viewContext(t))
	viewMust(t, err)
	if c.ByState[beeyard.StateReady] != 1 || c.ByState[beeyard.StateQuarantined] != 9 || c.Open() != 1 {
		t.Errorf("counts %v", c.ByState)
	}
}

// An error of the disk is an answer, not an empty list.
func TestViewTellsOfErrors(t *testing.T) {
	for _, op := range []string{durable.OpEach, durable.OpReadFile} {
		var fail atomic.Bool
		o := Options{Wrap: func(d durable.Dir) durable.Dir {
			return durable.Hooked(d, func(at durable.Op) error {
				if fail.Load() && at.Op == op && strings.HasSuffix(at.Dir, "/"+dirPending) {
					return syscall.EIO
				}
				return nil
			})
		}}
		r := viewRun(t, o)
		viewPut(t, r, dirPending, viewTask("t1"))
		fail.Store(true)
		if _, err := r.List(viewContext(t), beeyard.Query{}); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: list: %v", op, err)
		}
		if _, err := r.Counts(viewContext(t)); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: counts: %v", op, err)
		}
		if _, err := r.Get(viewContext(t), "t1"); op == durable.OpReadFile && !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: get: %v", op, err)
		}
		fail.Store(false)
	}
}

// A damaged checkpoint changes no state: done/ is the record.
func TestViewWithADamagedCheckpoint(t *testing.T) {
	r := viewRun(t, Options{})
	viewPut(t, r, dirDone, viewTask("a"))
	viewPut(t, r, dirPending, viewTask("b", "a"))
	for _, damage := range []string{"", strings.Repeat("\x00", 4096), `{"a":`} {
		viewPutRaw(t, r, ".", fileStatus, []byte(damage))
		v, err := r.Get(viewContext(t), "b")
		if err != nil || v.State != beeyard.StateReady {
			t.Errorf("%q: %+v, %v", damage, v, err)
		}
		if c, err := r.Counts(viewContext(t)); err != nil || c.ByState[beeyard.StateReady] != 1 || c.ByState[beeyard.StateDone] != 1 {
			t.Errorf("%q: %v, %v", damage, c, err)
		}
	}
}

func TestViewGetOfAPrunedTask(t *testing.T) {
	r := viewRun(t, Options{})
	viewPutRaw(t, r, dirMeta, filePruned, []byte(`{"id":"p1","outcome":"done"}`+"\n"+`{"id":"p2","outcome":"canceled"}`+"\n"))
	for id, want := range map[string]beeyard.State{"p1": beeyard.StateDone, "p2": beeyard.StateCanceled} {
		v, err := r.Get(viewContext(t), id)
		if err != nil || v.State != want || v.Place != beeyard.PlaceArchive || v.Detail == "" {
			t.Errorf("%s: %+v, %v", id, v, err)
		}
	}
}

func TestRootCreateTogether(t *testing.T) {
	s := OpenStore(filepath.Join(t.TempDir(), "yard"), Options{Host: viewHost()}, clock.Real())
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			r, err := s.CreateRun(viewContext(t), "audit", beeyard.Checkpoint{})
			switch {
			case err == nil:
				won.Add(1)
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			case !errors.Is(err, beeyard.ErrExists):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d made the run", won.Load())
	}
}
