package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

func enqEnded(t *testing.T, r *Run, id string, to beeyard.Place, out beeyard.Outcome) {
	t.Helper()
	enqueueOne(t, r, enqTask(id))
	enqFinish(t, r, id, to, out)
}

func TestPruneChooses(t *testing.T) {
	for _, c := range []struct {
		o    beeyard.PruneOptions
		want []string
	}{
		{beeyard.PruneOptions{}, []string{"d1", "d2"}},
		{beeyard.PruneOptions{OlderThan: time.Hour}, []string{"d2"}},
		{beeyard.PruneOptions{States: []beeyard.State{beeyard.StateFailed}}, []string{"f1"}},
		{beeyard.PruneOptions{States: []beeyard.State{beeyard.StateCanceled, beeyard.StateDone}}, []string{"c1", "d1", "d2"}},
		{beeyard.PruneOptions{IDs: []string{"d1", "f1"}, States: []beeyard.State{beeyard.StateFailed, beeyard.StateDone}}, []string{"d1", "f1"}},
		{beeyard.PruneOptions{IDs: []string{"d1"}, Delete: true}, []string{"d1"}},
	} {
		r := enqRun(t, Options{})
		enqEnded(t, r, "d1", beeyard.PlaceDone, beeyard.OutcomeDone)
		enqEnded(t, r, "d2", beeyard.PlaceDone, beeyard.OutcomeDone)
		enqEnded(t, r, "f1", beeyard.PlaceFailed, beeyard.OutcomeFailed)
		enqEnded(t, r, "c1", beeyard.PlaceFailed, beeyard.OutcomeCanceled)
		enqueueOne(t, r, enqTask("open"))
		enqMust(t, r.done.Chtimes("d2.json", time.Now().Add(-2*time.Hour)))
		c.o.DryRun = true
		got, err := r.Prune(enqContext(t), c.o)
		enqMust(t, err)
		if !slices.Equal(got.Pruned, c.want) || !got.DryRun {
			t.Errorf("%+v would prune %v", c.o, got)
		}
		if len(enqNames(t, r, dirDone)) != 2 || len(enqNames(t, r, dirFailed)) != 2 {
			t.Fatal("a dry run moved something")
		}
		c.o.DryRun = false
		got, err = r.Prune(enqContext(t), c.o)
		enqMust(t, err)
		if !slices.Equal(got.Pruned, c.want) {
			t.Errorf("%+v pruned %v", c.o, got.Pruned)
		}
		archive, _ := os.ReadDir(filepath.Join(r.path, dirMeta, dirArchive))
		if want := len(c.want); !c.o.Delete && len(archive) != want || c.o.Delete && len(archive) != 0 {
			t.Errorf("%+v: the archive holds %v", c.o, archive)
		}
		for _, id := range c.want {
			_, err := r.Enqueue(enqContext(t), []*beeyard.Task{enqTask(id)}, beeyard.EnqueueOptions{})
			enqIs(t, err, beeyard.ErrExists)
			met, err := newDepGraph(enqContext(t), r).met(id)
			enqMust(t, err)
			if met != strings.HasPrefix(id, "d") {
				t.Errorf("%s meets dependencies: %v", id, met)
			}
		}
	}
}

func TestPruneRefuses(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("open"))
	_, err := r.Prune(enqContext(t), beeyard.PruneOptions{States: []beeyard.State{beeyard.StateReady}})
	enqIs(t, err, beeyard.ErrUsage)
	_, err = r.Prune(enqContext(t), beeyard.PruneOptions{IDs: []string{"ghost"}})
	enqIs(t, err, beeyard.ErrNotFound)
	_, err = r.Prune(enqContext(t), beeyard.PruneOptions{IDs: []string{"open"}})
	enqIs(t, err, beeyard.ErrConflict)
}

// The id is on the list, and the list flushed, before the body moves.
func TestPruneListsFirst(t *testing.T) {
	for _, remove := range []bool{false, true} {
		log := &enqLog{}
		r := enqRun(t, Options{Wrap: log.wrap})
		enqEnded(t, r, "d1", beeyard.PlaceDone, beeyard.OutcomeDone)
		log.failWith(nil)
		_, err := r.Prune(enqContext(t), beeyard.PruneOptions{Delete: remove})
		enqMust(t, err)
		flushed := log.index(func(op durable.Op) bool { return op.Op == durable.OpSync && op.Name == filePruned })
		moved := log.index(func(op durable.Op) bool {
			return op.Name == "d1.json" && (op.Op == durable.OpRenameExcl || op.Op == durable.OpRemove)
		})
		if flushed < 0 || moved < flushed {
			t.Errorf("list flushed at step %d, body moved at %d", flushed, moved)
		}
		for _, fault := range []string{durable.OpSync, durable.OpWrite, durable.OpAppend} {
			enqEnded(t, r, fault, beeyard.PlaceDone, beeyard.OutcomeDone)
			log.failWith(func(op durable.Op) error {
				if op.Op == fault && op.Name == filePruned {
					return syscall.ENOSPC
				}
				return nil
			})
			got, err := r.Prune(enqContext(t), beeyard.PruneOptions{Delete: remove, IDs: []string{fault}})
			enqIs(t, err, syscall.ENOSPC)
			log.failWith(nil)
			if ok, _ := r.done.Exists(fault + ".json"); !ok || len(got.Pruned) != 0 {
				t.Errorf("%s: the body moved though its id is not listed", fault)
			}
		}
	}
}

// A list that a power cut tore says nothing wrong, and what is appended later counts.
func TestPrunedListTorn(t *testing.T) {
	r := enqRun(t, Options{})
	for i := range 3 {
		enqEnded(t, r, fmt.Sprintf("d%d", i), beeyard.PlaceDone, beeyard.OutcomeDone)
	}
	prune := func(id string) {
		_, err := r.Prune(enqContext(t), beeyard.PruneOptions{IDs: []string{id}, Delete: true})
		enqMust(t, err)
	}
	prune("d0")
	path := filepath.Join(r.path, dirMeta, filePruned)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	enqMust(t, err)
	_, err = f.WriteString("\x00\x00\x00\x00" + `{"id":"torn","outcome":"do`)
	enqMust(t, err)
	enqMust(t, f.Close())
	for range 2 {
		got, err := r.pruned()
		enqMust(t, err)
		if len(got) != 1 || got["d0"] != beeyard.OutcomeDone {
			t.Errorf("pruned: %v", got)
		}
	}
	prune("d1")
	got, err := r.pruned()
	enqMust(t, err)
	other := enqOpen(t, r.path, Options{})
	fresh, err := other.pruned()
	enqMust(t, err)
	if len(got) != 2 || len(fresh) != 2 || got["d1"] != beeyard.OutcomeDone || fresh["d1"] != beeyard.OutcomeDone {
		t.Errorf("pruned: %v, read anew: %v", got, fresh)
	}
}

// A decision on the id is carried out before its body moves; one that appears
// afterwards leaves the body where it is.
func TestPruneFinishesDecisionsFirst(t *testing.T) {
	r := enqRun(t, Options{})
	enqueueOne(t, r, enqTask("d1"))
	ref, dir := enqClaim(t, r, "d1")
	old, _, err := readTask(dir, "d1.json", "d1")
	enqMust(t, err)
	// Published, and not yet unlinked.
	next, err := old.Settle(beeyard.Settlement{Outcome: beeyard.OutcomeDone}, ref.Token.String(), time.Now(), 0)
	enqMust(t, err)
	body, err := next.Encode()
	enqMust(t, err)
	taken := tagged("d1", tagTaken, "abcdefgh")
	enqMust(t, dir.Rename("d1.json", dir, taken))
	enqMust(t, durable.WriteFile(r.done, "d1.json", body, fileMode))
	got, err := r.pruneSome(enqContext(t), []outgoing{{id: "d1", from: beeyard.PlaceDone, state: beeyard.StateDone}}, false)
	enqMust(t, err)
	if len(got) != 0 {
		t.Error("a task whose decision is not carried out was pruned")
	}
	report, err := r.Prune(enqContext(t), beeyard.PruneOptions{})
	enqMust(t, err)
	if ok, _ := dir.Exists(taken); ok || !slices.Equal(report.Pruned, []string{"d1"}) {
		t.Errorf("pruned %v, the decision is still there: %v", report.Pruned, ok)
	}
}

// A later life of an archived id (an older program enqueued it again) takes the
// name; the earlier record is kept.
func TestPruneArchivesTwoLives(t *testing.T) {
	r := enqRun(t, Options{})
	for i := range 2 {
		body := fmt.Sprintf(`{"task_id": "x", "task_type": "older", "created_at": "2026-01-0%dT00:00:00Z"}`, i+1)
		enqMust(t, os.WriteFile(filepath.Join(r.path, dirDone, "x.json"), []byte(body), 0o600))
		_, err := r.Prune(enqContext(t), beeyard.PruneOptions{})
		enqMust(t, err)
	}
	archive, err := r.archiveDir()
	enqMust(t, err)
	got, _, err := readTask(archive, "x.json", "x")
	enqMust(t, err)
	if !strings.HasPrefix(got.CreatedAt, "2026-01-02") {
		t.Errorf("the archive keeps %s", got.CreatedAt)
	}
	if names := enqNames(t, r, dirQuarantine); len(names) != 2 {
		t.Errorf("quarantine/ holds %v", names)
	}
}

// Many go in chunks, each with three flushes.
func TestPruneMany(t *testing.T) {
	var counter *durable.Counter
	r := enqRun(t, Options{Wrap: func(d durable.Dir) durable.Dir {
		d, counter = durable.Counting(d)
		return d
	}})
	n := 2*pruneChunk + 1
	for i := range n {
		body, err := enqTask(fmt.Sprintf("d%d", i)).Encode()
		enqMust(t, err)
		enqMust(t, os.WriteFile(filepath.Join(r.path, dirDone, fmt.Sprintf("d%d.json", i)), body, 0o600))
	}
	counter.Reset()
	report, err := r.Prune(enqContext(t), beeyard.PruneOptions{})
	enqMust(t, err)
	if len(report.Pruned) != n || len(enqNames(t, r, dirDone)) != 0 {
		t.Errorf("%d of %d pruned", len(report.Pruned), n)
	}
	if syncs := counter.Syncs(); syncs > 3*3+6 {
		t.Errorf("%d flushes", syncs)
	}
	got, err := r.pruned()
	enqMust(t, err)
	if len(got) != n {
		t.Errorf("%d ids are listed", len(got))
	}
}
