package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"beeyard"
)

// Without an index only 1,024 names are read, but no task of a priority above 0
// is overlooked, wherever its name comes.
func TestPickOnceFindsMarked(t *testing.T) {
	r := pickRun(t)
	pickFill(t, r, dirPending, 3000)
	var tasks []*beeyard.Task
	for i := range 40 {
		tasks = append(tasks, pickTask(5000+i, pickPriority(i%7)))
	}
	for _, task := range tasks {
		if task.Ext.Priority > 0 {
			pickMust(t, r.markPriority(task.ID))
			pickMust(t, r.markPriority(task.ID)) // twice is once
		}
	}
	pickMust(t, r.markPriority("long-gone"))
	pickMust(t, r.markPriority("task-000900-done"))
	pickEnd(t, r, dirDone, "task-000900-done")
	pickPut(t, r, dirPending, tasks...)
	want := pickSort(slices.DeleteFunc(tasks, func(t *beeyard.Task) bool { return t.Ext.Priority == 0 }))
	for i, id := range want {
		pickMust(t, ignoreMissing(r.meta.Remove(fileIndex)))
		if got := pickOnceID(t, r, beeyard.Filter{}); got != id {
			t.Fatalf("claim %d took %q, want %q", i, got, id)
		}
	}
	d, err := r.priorityDir(false)
	pickMust(t, err)
	if there, err := d.Exists("task-000900-done"); err != nil || there {
		t.Errorf("the marker of a task that has ended is still there: %v", err)
	}
	if there, err := d.Exists("long-gone"); err != nil || !there {
		t.Errorf("a marker of a task that may be about to come was removed: %v", err)
	}
}

// With an index of the rest, or with Strict, the order is exact among all.
func TestPickOnceExactAmongAll(t *testing.T) {
	r := pickRun(t)
	const n = 3000
	pickFill(t, r, dirPending, n)
	if got := pickOnceID(t, r, beeyard.Filter{Strict: true}); got != "task-000000" {
		t.Fatalf("strict took %q", got)
	}
	for i := 1; i < 5; i++ {
		if got := pickOnceID(t, r, beeyard.Filter{}); got != pickTask(i).ID {
			t.Fatalf("with an index: took %q, want %q", got, pickTask(i).ID)
		}
	}
	// An index grows by what each claim reads, until it knows all.
	pickMust(t, r.meta.Remove(fileIndex))
	for range n/onceNames + 1 {
		pickMust(t, r.pickOnce(pickContext(t), beeyard.Filter{}, func(string) (bool, error) { return true, nil }))
	}
	if got := pickOnceID(t, r, beeyard.Filter{}); got != pickTask(5).ID {
		t.Errorf("with an index made by claims: took %q, want %q", got, pickTask(5).ID)
	}
}

// A name and an inode number can come again with another content. Writing in
// place makes that happen without waiting for chance.
func TestPickOnceStaleIndex(t *testing.T) {
	r := pickRun(t)
	rewrite := func(task *beeyard.Task) {
		data, err := task.Encode()
		pickMust(t, err)
		path := filepath.Join(r.path, dirPending, bodyName(task.ID))
		pickMust(t, os.WriteFile(path, data, 0o600))
		pickMust(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	}
	pickPut(t, r, dirPending, pickTask(1), pickTask(2), pickTask(3, pickNeeds("never")))
	pickIndex(t, r)
	rewrite(pickTask(1, pickPriority(-1)))
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "task-000002" {
		t.Errorf("took %q: the entry of task-000001 is out of date", got)
	}
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "task-000001" {
		t.Errorf("took %q, want task-000001 in its new place", got)
	}
	rewrite(pickTask(3))
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "task-000003" {
		t.Errorf("took %q: an entry that wrongly says blocked must not say so for ever", got)
	}
}

func TestPickOnceAnswers(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirPending, pickTask(1), pickTask(2), pickTask(3, pickNotBefore(time.Now().Add(time.Hour))),
		pickTask(4, func(t *beeyard.Task) { t.Ext.Hold = &beeyard.Hold{} }))
	var tried []string
	lose := func(id string) (bool, error) { tried = append(tried, id); return false, nil }
	pickMust(t, r.pickOnce(pickContext(t), beeyard.Filter{}, lose))
	if want := []string{"task-000001", "task-000002"}; !slices.Equal(tried, want) {
		t.Errorf("tried %v, want each ready one once: %v", tried, want)
	}
	broken := errors.New("broken")
	err := r.pickOnce(pickContext(t), beeyard.Filter{}, func(string) (bool, error) { return false, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error of try: %v", err)
	}
	if got := pickOnceID(t, r, beeyard.Filter{IDs: []string{"task-000002", "../x", "none"}}); got != "task-000002" {
		t.Errorf("by id took %q", got)
	}
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprint(i))
	}
	if got := pickOnceID(t, r, beeyard.Filter{IDs: append(many, "task-000001")}); got != "task-000001" {
		t.Errorf("by one of many ids took %q", got)
	}
}

// A claim that keeps no list still lets tasks come due.
func TestPickOncePromotes(t *testing.T) {
	r := pickRun(t)
	pickPut(t, r, dirHeld, pickTask(1, pickNotBefore(time.Now().Add(-time.Minute))), pickTask(2, pickNotBefore(time.Now().Add(time.Hour))))
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "task-000001" {
		t.Errorf("took %q, want the one that came due", got)
	}
	if got := pickOnceID(t, r, beeyard.Filter{}); got != "" {
		t.Errorf("took %q, and nothing is due", got)
	}
}

// A task that ended, lost its marker and is retried has it again.
func TestPickMarkedAfterRetry(t *testing.T) {
	r := pickRun(t)
	ctx := pickContext(t)
	_, err := r.Enqueue(ctx, []*beeyard.Task{pickTask(1, pickPriority(3)), pickTask(2)}, beeyard.EnqueueOptions{})
	pickMust(t, err)
	w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: "w1"})
	pickMust(t, err)
	defer func() { pickMust(t, w.Close(ctx)) }()
	c, err := w.Claim(ctx, beeyard.Filter{})
	pickMust(t, err)
	if c == nil || c.Task.ID != "task-000001" {
		t.Fatalf("claimed %+v", c)
	}
	_, err = w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeFailed, Final: true})
	pickMust(t, err)
	d, err := r.priorityDir(false)
	pickMust(t, err)
	pickMust(t, r.unmark(d, []string{"task-000001", "task-000002"}))
	if there, err := d.Exists("task-000001"); err != nil || there {
		t.Fatalf("the marker outlived the task: %v", err)
	}
	pickMust(t, r.Retry(ctx, "task-000001", beeyard.RetryOptions{}))
	if there, err := d.Exists("task-000001"); err != nil || !there {
		t.Errorf("a retried task has no marker: %v", err)
	}
}

// The order among the slots and processes of a whole run: each claim of each
// process is the best that is left, and none is claimed twice.
func TestPickManyProcesses(t *testing.T) {
	r := pickRun(t)
	ctx := pickContext(t)
	const n = 120
	var tasks []*beeyard.Task
	for i := range n {
		tasks = append(tasks, pickTask(i, pickPriority(i%4)))
	}
	pickPut(t, r, dirPending, tasks...)
	want := pickSort(tasks)
	place := map[string]int{}
	for i, id := range want {
		place[id] = i
	}
	var mu sync.Mutex
	taken := map[string]int{}
	var wg sync.WaitGroup
	for k := range 4 {
		other := pickAgain(t, r)
		w, err := other.Attach(ctx, beeyard.WorkerSpec{ID: fmt.Sprintf("w%d", k)})
		pickMust(t, err)
		wg.Go(func() {
			defer func() {
				if err := w.Close(ctx); err != nil {
					t.Error(err)
				}
			}()
			last := -1
			for {
				c, err := w.Claim(ctx, beeyard.Filter{})
				if err != nil {
					t.Error(err)
					return
				}
				if c == nil {
					return
				}
				mu.Lock()
				taken[c.Task.ID]++
				mu.Unlock()
				if at := place[c.Task.ID]; at < last {
					t.Errorf("%s was claimed after %s", c.Task.ID, want[last])
				} else {
					last = at
				}
				if _, err := w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range want {
		if taken[id] != 1 {
			t.Errorf("%s was claimed %d times", id, taken[id])
		}
	}
}
