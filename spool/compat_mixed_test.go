package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

// mixed is one run that older programs, compatibility commands and beeyard
// workers drain together, and what each did.
type mixed struct {
	t     *testing.T
	dir   string
	older olderProgram
	stop  chan struct{}

	mu      sync.Mutex
	ran     map[string][]string // id → created_at of each life that ran
	by      map[string]int      // kind of worker → tasks it ran
	settled map[string]bool     // claims whose settle was answered as done
	lost    map[string]bool     // claims whose settle was refused
	robbed  int
	again   map[string]string // id → created_at of its last enqueue by an older program
	stolen  int               // by the older reaper
}

func (m *mixed) began(kind, id, created string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran[id] = append(m.ran[id], created)
	m.by[kind]++
}

func (m *mixed) stopped() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// loop calls step until it is stopped; step says whether it did something.
func (m *mixed) loop(name string, pause time.Duration, step func() (bool, error)) func() {
	return func() {
		for !m.stopped() {
			did, err := step()
			if err != nil {
				m.t.Errorf("%s: %v", name, err)
				return
			}
			if !did {
				time.Sleep(pause)
			}
		}
	}
}

func (m *mixed) open() *Run {
	r, err := Open(m.dir, Options{Host: coreHost()}, clock.Real())
	enqMust(m.t, err)
	return r
}

// beeyard is a worker with tokens. Every tenth claim it falls asleep: its beat
// looks old, and it waits until a reaper has taken the claim.
func (m *mixed) beeyard(ctx context.Context, id string) func() {
	return func() {
		r := m.open()
		defer func() {
			if err := r.Close(); err != nil {
				m.t.Errorf("%s: %v", id, err)
			}
		}()
		w, err := r.Attach(ctx, beeyard.WorkerSpec{ID: id})
		if err != nil {
			m.t.Errorf("%s: %v", id, err)
			return
		}
		n := 0
		m.loop(id, 2*time.Millisecond, func() (bool, error) {
			c, err := w.Claim(ctx, beeyard.Filter{})
			if err != nil || c == nil {
				return false, err
			}
			n++
			m.began("beeyard", c.Task.ID, c.Task.CreatedAt)
			return true, m.work(ctx, r, w, c, n%10 == 0)
		})()
	}
}

func (m *mixed) work(ctx context.Context, r *Run, w beeyard.Worker, c *beeyard.Claim, sleep bool) error {
	claim := claimText(c.Task.ID, c.Token.String())
	ref := c.Ref()
	follows := strings.HasSuffix(c.Task.ID, "5")
	if _, err := r.StageArtifact(ctx, ref, strings.NewReader(claim)); err != nil && !errors.Is(err, beeyard.ErrClaimLost) {
		return err
	}
	if follows {
		payload, _ := json.Marshal(claim)
		_, err := r.Enqueue(ctx, []*beeyard.Task{{ID: "f-" + c.Task.ID, Type: "t", Payload: payload}}, beeyard.EnqueueOptions{Under: &ref})
		if err != nil && !errors.Is(err, beeyard.ErrExists) && !errors.Is(err, beeyard.ErrClaimLost) {
			return err
		}
	}
	dir := filepath.Dir(c.ArtifactPath)
	file := filepath.Join(dir, c.Task.ID+".json")
	if sleep {
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, ".heartbeat"), past, past); err != nil {
			return err
		}
		for end := time.Now().Add(enqWait); time.Now().Before(end) && !m.stopped(); time.Sleep(time.Millisecond) {
			if _, err := os.Lstat(file); err != nil {
				break
			}
		}
	}
	_, gone := os.Lstat(file)
	s := beeyard.Settlement{Outcome: beeyard.OutcomeDone}
	var err error
	if s.Artifact, err = w.StagedArtifact(ctx, c); err == nil {
		s.FollowUps, err = w.FollowUps(ctx, c)
	}
	if err != nil {
		return err
	}
	_, err = w.Settle(ctx, ref, s)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil && gone != nil:
		m.t.Errorf("claim %s settled after it was taken away", claim)
	case err == nil:
		if m.settled[claim] {
			m.t.Errorf("claim %s settled twice", claim)
		}
		m.settled[claim] = true
	case errors.Is(err, beeyard.ErrClaimLost):
		m.lost[claim] = true
		m.robbed++
	default:
		return err
	}
	if sleep {
		_, err = w.Beat(ctx, nil, "")
		return err
	}
	return nil
}

// claimText names a claim: one process uses a directory, and so a token, for
// many tasks.
func claimText(id, token string) string { return id + " " + token }

// olderWorker now and then claims under another id and dies with the claim.
func (m *mixed) olderWorker(id string) func() {
	n := 0
	return m.loop(id, 2*time.Millisecond, func() (bool, error) {
		if err := m.older.beat(id); err != nil {
			return false, err
		}
		if n++; n%25 == 0 {
			if err := os.MkdirAll(m.older.path("claimed", id+"-dead"), 0o755); err != nil {
				return false, err
			}
			_, err := m.older.claim(id + "-dead")
			return false, err
		}
		b, err := m.older.claim(id)
		if err != nil || b == nil {
			return false, err
		}
		m.began("older", b.TaskID, b.CreatedAt)
		time.Sleep(time.Millisecond)
		return true, m.older.complete(id, b.TaskID)
	})
}

func (m *mixed) compatWorker(ctx context.Context, id string) func() {
	return func() {
		r := m.open()
		defer func() {
			if err := r.Close(); err != nil {
				m.t.Errorf("%s: %v", id, err)
			}
		}()
		c := r.Compat()
		m.loop(id, 2*time.Millisecond, func() (bool, error) {
			if err := c.Heartbeat(ctx, id, ""); err != nil {
				return false, err
			}
			task, err := c.Claim(ctx, id, nil)
			if err != nil || task == nil {
				return false, err
			}
			m.began("compat", task.ID, task.CreatedAt)
			return true, c.Complete(ctx, id, task.ID, true)
		})()
	}
}

func (m *mixed) python(t *testing.T) func() {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("SKIPPED PART: there is no python3; a second older worker in Go runs instead")
		return m.olderWorker("older-2")
	}
	control := t.TempDir()
	script, log := filepath.Join(control, "older.py"), filepath.Join(control, "log")
	enqMust(t, os.WriteFile(script, []byte(olderPython), 0o600))
	cmd := exec.Command(python, script, m.dir, "python", log)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	enqMust(t, cmd.Start())
	return func() {
		<-m.stop
		if err := os.WriteFile(filepath.Join(control, "stop"), nil, 0o600); err != nil {
			t.Error(err)
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("python: %v\n%s", err, out.String())
		}
		text, _ := os.ReadFile(log) // none: it ran nothing
		for line := range strings.Lines(string(text)) {
			id, created, _ := strings.Cut(strings.TrimSpace(line), " ")
			m.began("python", id, created)
		}
	}
}

const mixedTasks = 300

func mixedID(i int) string { return fmt.Sprintf("t%03d", i) }

// The list "still true" of "With older programs in the run" (ADR 0002): no
// beeyard claim settles after it was taken away, under any worker id; one settle
// a claim; an artifact and follow-ups only of the deciding claim; a held,
// waiting or canceled task is not run; no task is lost except by the older
// enqueue's own overwrite.
func TestOlderProgramsAndBeeyardDrainOneRun(t *testing.T) {
	r := coreRun(t, Options{})
	m := &mixed{t: t, dir: r.path, older: olderProgram{dir: r.path, enqueues: &sync.Mutex{}}, stop: make(chan struct{}),
		ran: map[string][]string{}, by: map[string]int{}, settled: map[string]bool{}, lost: map[string]bool{}, again: map[string]string{}}
	ctx := enqContext(t)
	later := beeyard.FormatTime(time.Now().Add(time.Hour))
	var tasks []*beeyard.Task
	for i := range mixedTasks {
		task := enqTask(mixedID(i))
		if i >= 25 {
			task.DependsOn = []string{mixedID(i - 25)}
		}
		if i%3 == 0 && i >= 50 {
			task.DependsOn = append(task.DependsOn, mixedID(i-50))
		}
		tasks = append(tasks, task)
	}
	for i := range 5 {
		held, waits := enqTask(fmt.Sprintf("a-held%d", i)), enqTask(fmt.Sprintf("a-waits%d", i))
		held.Ext.Hold, waits.Ext.NotBefore = &beeyard.Hold{By: "someone"}, later
		tasks = append(tasks, held, waits, enqTask(fmt.Sprintf("a-gone%d", i)))
	}
	_, err := r.Enqueue(ctx, tasks, beeyard.EnqueueOptions{})
	enqMust(t, err)
	for i := range 5 {
		_, err := r.Cancel(ctx, fmt.Sprintf("a-gone%d", i), "someone", "")
		enqMust(t, err)
	}

	var wg sync.WaitGroup
	for _, part := range []func(){
		m.beeyard(ctx, "bee-1"), m.beeyard(ctx, "bee-2"), m.olderWorker("older-1"), m.python(t), m.compatWorker(ctx, "compat-1"),
		m.loop("older reaper", time.Millisecond, func() (bool, error) {
			taken, err := m.older.reap(300 * time.Second)
			m.mu.Lock()
			m.stolen += len(taken)
			m.mu.Unlock()
			return false, err
		}),
		m.loop("compatibility reaper", 20*time.Millisecond, func() (bool, error) {
			_, err := r.Compat().Reap(ctx, 300*time.Second)
			return false, err
		}),
		m.loop("reaper", 30*time.Millisecond, func() (bool, error) {
			_, err := r.Reap(ctx, beeyard.ReapOptions{})
			return false, err
		}),
	} {
		wg.Go(part)
	}
	m.enqueueAgain()
	m.waitDrained(r)
	close(m.stop)
	wg.Wait()
	if t.Failed() {
		return
	}
	m.check(ctx, r)
}

// enqueueAgain uses ids again while they are pending, run, or have run.
func (m *mixed) enqueueAgain() {
	for n := range 40 {
		id := mixedID(n * 7 % 120)
		created, err := m.older.enqueue(id)
		enqMust(m.t, err)
		m.again[id] = created
		time.Sleep(15 * time.Millisecond)
	}
}

// waitDrained waits until every task has ended and nothing is open but what is held.
func (m *mixed) waitDrained(r *Run) {
	m.t.Helper()
	empty := func() bool {
		names, err := m.older.json("pending")
		enqMust(m.t, err)
		if len(names) > 0 {
			return false
		}
		c, err := r.Compat().Counts(context.Background())
		enqMust(m.t, err)
		if len(c.Claimed) > 0 {
			return false
		}
		// What moved back while the two folders were listed one after the other.
		names, err = m.older.json("pending")
		enqMust(m.t, err)
		return len(names) == 0
	}
	for end := time.Now().Add(2 * enqWait); !empty(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || m.t.Failed() {
			names, _ := m.older.json("pending")
			m.t.Errorf("still not drained; pending: %v", names)
			return
		}
	}
}

func (m *mixed) check(ctx context.Context, r *Run) {
	t := m.t
	t.Logf("tasks run by kind: %v; claims taken by the older reaper %d, refused settles %d, ids used again %d",
		m.by, m.stolen, m.robbed, len(m.again))
	for _, kind := range []string{"beeyard", "older", "compat"} {
		if m.by[kind] == 0 {
			t.Errorf("no %s worker ran anything: the test shows nothing", kind)
		}
	}
	if m.robbed == 0 || m.stolen == 0 {
		t.Error("no claim was taken from a beeyard worker: the test shows nothing")
	}
	for i := range mixedTasks {
		if there, err := r.done.Exists(mixedID(i) + ".json"); err != nil || !there {
			t.Errorf("%s is lost: it is not in done/ (%v)", mixedID(i), err)
		}
	}
	for id, created := range m.again {
		if !slices.Contains(m.ran[id], created) {
			t.Errorf("%s, enqueued again at %s, never ran: %v", id, created, m.ran[id])
		}
	}
	for id := range m.ran {
		if strings.HasPrefix(id, "a-") {
			t.Errorf("%s ran", id)
		}
	}
	for claim := range m.lost {
		if m.settled[claim] {
			t.Errorf("claim %s was refused and settled", claim)
		}
	}
	m.checkRecords()
	m.checkOutput(r)

	enqMust(t, r.flushOwed(ctx))
	enqMust(t, r.reconcile(ctx))
	s, err := r.readStatus()
	enqMust(t, err)
	done, err := m.older.json("done")
	enqMust(t, err)
	if len(s.cp.CompletedTasks) != len(done) {
		t.Errorf("completed_tasks lists %d ids at rest, done/ has %d", len(s.cp.CompletedTasks), len(done))
	}
	for _, id := range s.cp.CompletedTasks {
		if !slices.Contains(done, id+".json") {
			t.Errorf("completed_tasks lists %s, which is not in done/", id)
		}
	}
}

// checkRecords: each claim settled one record, and only if it was not refused.
func (m *mixed) checkRecords() {
	seen := map[string]string{}
	for _, folder := range []string{"done", "failed", "quarantine"} {
		names, err := m.older.json(folder)
		enqMust(m.t, err)
		for _, name := range names {
			data, err := os.ReadFile(m.older.path(folder, name))
			enqMust(m.t, err)
			task, err := parseAny(data)
			if err != nil || task.Ext.Token == "" || task.Ext.Outcome != beeyard.OutcomeDone {
				continue
			}
			where, claim := folder+"/"+name, claimText(task.ID, task.Ext.Token)
			if other, twice := seen[claim]; twice {
				m.t.Errorf("%s and %s were settled by one claim %s", other, where, claim)
			}
			seen[claim] = where
			if !m.settled[claim] {
				m.t.Errorf("%s is of claim %s, whose settle was not answered as done", where, claim)
			}
		}
	}
}

// checkOutput: artifacts and follow-ups are of claims that decided.
func (m *mixed) checkOutput(r *Run) {
	entries, err := os.ReadDir(m.older.path("artifacts"))
	enqMust(m.t, err)
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || strings.Contains(e.Name(), ".late-") {
			continue
		}
		claim, err := os.ReadFile(m.older.path("artifacts", e.Name()))
		enqMust(m.t, err)
		if !m.settled[string(claim)] || !strings.HasPrefix(string(claim), id+" ") {
			m.t.Errorf("artifacts/%s is of claim %s, which did not settle that task", e.Name(), claim)
		}
	}
	followed := 0
	done, err := m.older.json("done")
	enqMust(m.t, err)
	for _, name := range done {
		if !strings.HasPrefix(name, "f-") {
			continue
		}
		followed++
		task, _, err := readTask(r.done, name, strings.TrimSuffix(name, ".json"))
		enqMust(m.t, err)
		var claim string
		enqMust(m.t, json.Unmarshal(task.Payload, &claim))
		if !m.settled[claim] || !strings.HasPrefix(claim, strings.TrimPrefix(task.ID, "f-")+" ") {
			m.t.Errorf("%s is a follow-up of claim %s, which did not settle its task", task.ID, claim)
		}
	}
	if followed == 0 {
		m.t.Error("no follow-up was published: the test shows nothing")
	}
}
