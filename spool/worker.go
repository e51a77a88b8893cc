package spool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// worker is an attached claimer of one process.
type worker struct {
	run    *Run
	spec   beeyard.WorkerSpec
	picker *picker // nil for a single claim
	group  *group

	mu       sync.Mutex
	dirs     []*claimDir
	live     map[string]*liveClaim // by task id
	lastBeat time.Time
	closed   bool
}

var _ beeyard.Worker = (*worker)(nil)

// Attach makes a claimer. One id is one process: two that beat for each other
// would hide each other's death.
func (r *Run) Attach(ctx context.Context, spec beeyard.WorkerSpec) (beeyard.Worker, error) {
	if err := r.writable("attach worker"); err != nil {
		return nil, err
	}
	if err := errors.Join(beeyard.CheckID("worker", spec.ID), r.knownSchema()); err != nil {
		return nil, err
	}
	if spec.Kind == "" {
		spec.Kind = beeyard.KindProcess
	}
	if spec.StaleAfter <= 0 {
		spec.StaleAfter = defaultStaleAfter
	}
	w := &worker{run: r, spec: spec, live: map[string]*liveClaim{}, group: &group{run: r}}
	if spec.Kind == beeyard.KindProcess {
		if err := w.takeOver(ctx); err != nil {
			return nil, err
		}
		w.picker = r.newPicker()
		if err := r.keepReconciled(ctx); err != nil {
			return nil, errors.Join(err, w.Close(ctx))
		}
	}
	// A single claim makes its directory when there is something to claim.
	// A run that is closed has no worker: who forgot to close it must not keep
	// its claims alive.
	r.onClose(func() error { return w.Close(context.WithoutCancel(ctx)) })
	return w, nil
}

// takeOver refuses an id that is live, makes our first directory, and takes an
// earlier, dead life's claims back: one death each.
func (w *worker) takeOver(ctx context.Context) error {
	for try := 0; ; try++ {
		live, err := w.first(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, beeyard.ErrWorkerLive) {
			return err
		}
		// A worker that was killed between fork and exec leaves its lock to the
		// child for an instant: exec closes it.
		gone := w.run.host.Gone != nil && live.Boot == w.run.host.Boot && w.run.host.Gone(live.PID, live.Start)
		if !gone || try == 100 {
			return &beeyard.Error{Op: "start worker", ID: w.spec.ID,
				Err:  fmt.Errorf("%w: process %d on %s", beeyard.ErrWorkerLive, live.PID, live.Host),
				Hint: "stop that worker first, or choose another --worker-id"}
		}
		if err := clock.Sleep(ctx, w.run.clk, 50*time.Millisecond); err != nil {
			return err
		}
	}
	_, err := w.run.reap(ctx, beeyard.ReapOptions{Worker: w.spec.ID, Limits: w.spec.Limits, StaleAfter: w.spec.StaleAfter}, true)
	return err
}

// first makes our first directory if nobody of the id lives; else it says who.
// The look and the new directory are under one lock, or two who start at once
// would both pass.
func (w *worker) first(ctx context.Context) (live beatText, err error) {
	unlock, err := w.run.lockQueue(ctx)
	if err != nil {
		return live, err
	}
	defer unlock()
	err = w.run.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		if id, _, ours := beeyard.ParseClaimDir(name); !ours || id != w.spec.ID {
			return true, nil
		}
		l, err := w.run.liveness(ctx, name, dir)
		if err == nil && (l.State == lifeAlive || l.State == lifeStopped) {
			live = l.Beat
			return false, beeyard.ErrWorkerLive
		}
		return true, err
	})
	if err != nil {
		return live, err
	}
	_, err = w.freshDirLocked(ctx)
	return live, err
}

func (w *worker) ID() string { return w.spec.ID }

func (w *worker) freshDirLocked(ctx context.Context) (*claimDir, error) {
	d, err := w.run.newClaimDir(ctx, w.spec.ID, w.spec.Kind)
	if err != nil {
		return nil, err
	}
	w.dirs = append(w.dirs, d)
	w.lastBeat = w.run.clk.Now()
	return d, nil
}

// dirFor gives a directory in which id was never claimed.
func (w *worker) dirFor(ctx context.Context, id string) (*claimDir, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.dirs {
		d.mu.Lock()
		used := d.used[id]
		d.mu.Unlock()
		if !used {
			return d, nil
		}
	}
	return w.freshDirLocked(ctx)
}

// drop forgets a directory that was removed under us.
func (w *worker) drop(gone *claimDir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, d := range w.dirs {
		if d == gone {
			w.dirs = append(w.dirs[:i:i], w.dirs[i+1:]...)
			_ = d.close() // its names are gone already
			return
		}
	}
}

// Claim takes the best ready task: see beeyard.Worker.
func (w *worker) Claim(ctx context.Context, f beeyard.Filter) (*beeyard.Claim, error) {
	// A claim under an old beat could be judged by it.
	if last := w.beatTime(); !last.IsZero() && w.run.clk.Now().Sub(last) > w.spec.StaleAfter/3 {
		if err := w.touch(); err != nil {
			return nil, err
		}
	}
	if w.picker == nil {
		var won *beeyard.Claim
		err := w.run.pickOnce(ctx, f, func(id string) (bool, error) {
			c, err := w.claim(ctx, f, id)
			won = c
			return c != nil, err
		})
		return won, err
	}
	for {
		id, ok, err := w.picker.next(ctx, f)
		if err != nil || !ok {
			return nil, err
		}
		c, err := w.claim(ctx, f, id)
		if err != nil {
			w.picker.returned(id)
			return nil, err
		}
		if c != nil {
			return c, nil
		}
	}
}

// claim tries for one id; nil, nil when somebody else has it or it may not run.
func (w *worker) claim(ctx context.Context, f beeyard.Filter, id string) (*beeyard.Claim, error) {
	var t *beeyard.Task
	var d *claimDir
	for try := 0; ; try++ {
		var err error
		if d, err = w.dirFor(ctx, id); err != nil {
			return nil, err
		}
		var again bool
		t, again, err = w.run.take(ctx, d, id)
		if err == nil {
			break
		}
		if again && d.gone() {
			w.drop(d)
		}
		if !again || try == 3 {
			if errors.Is(err, errNotWon) && unwrapsOnly(err) {
				return nil, nil
			}
			return nil, err
		}
	}
	c := &beeyard.Claim{
		Task: t, Token: d.token(t.Ext.Rev), At: w.run.clk.Now(), RunDir: w.run.path,
		ArtifactPath: filepath.Join(w.run.path, dirClaimed, d.name, tagged(id, tagArtifact, "")),
		ResultPath:   filepath.Join(w.run.path, dirClaimed, d.name, tagged(id, tagResult, "")),
		LogPath:      filepath.Join(w.run.path, dirArtifacts, id+".log"),
	}
	w.mu.Lock()
	w.live[id] = &liveClaim{claim: c, dir: d}
	w.mu.Unlock()
	// What was claimed may differ from what was picked: an older enqueue can
	// have replaced it, and the list may be stale. The body read after the
	// rename decides.
	ready := w.run.judgeClaimed(ctx, t, f)
	if !ready {
		if _, err := w.Settle(ctx, c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeRelease, Reason: "claimed before it was ready"}); err != nil {
			return nil, err
		}
		return nil, nil
	}
	w.run.event("claimed", t, c.Token.String(), w.spec.ID)
	return c, nil
}

// unwrapsOnly reports whether err is errNotWon and nothing more that a caller
// should hear of.
func unwrapsOnly(err error) bool {
	if err == errNotWon { //nolint:errorlint // identity is the question
		return true
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // same
		for _, e := range j.Unwrap() {
			if e != nil && !errors.Is(e, errNotWon) {
				return false
			}
		}
		return true
	}
	return false
}

// judgeClaimed asks the one function whether the body that was claimed may run.
func (r *Run) judgeClaimed(ctx context.Context, t *beeyard.Task, f beeyard.Filter) bool {
	if !f.Match(t) {
		return false
	}
	if len(t.DependsOn) == 0 && t.Ext.Hold == nil && t.Ext.NotBefore == "" && t.Ext.RetryAt == "" {
		return true
	}
	deps := r.newDeps(ctx)
	return beeyard.Judge(t, beeyard.PlacePending, r.clk.Now(), deps.dep).State == beeyard.StateReady
}

// Settle is Queue.Settle for a claim of this worker, whose body is at hand;
// settles that arrive together share their flushes.
func (w *worker) Settle(ctx context.Context, ref beeyard.Ref, s beeyard.Settlement) (beeyard.Settled, error) {
	w.mu.Lock()
	lc := w.live[ref.TaskID]
	w.mu.Unlock()
	if lc == nil || lc.claim.Token != ref.Token {
		return w.run.Settle(ctx, ref, s)
	}
	if s.Report.StartedAt == "" {
		s.Report.StartedAt = beeyard.FormatTime(lc.claim.At)
	}
	p, err := w.settle(ctx, lc, ref, s)
	if err == nil || errors.Is(err, beeyard.ErrClaimLost) {
		w.mu.Lock()
		delete(w.live, ref.TaskID)
		w.mu.Unlock()
	}
	if err != nil {
		return beeyard.Settled{}, err
	}
	return p.answer(), w.run.recorded(ctx, p, w.spec.Kind == beeyard.KindSingle)
}

// settle decides and finishes, or goes on finishing what an earlier call
// decided and could not publish: a decision is never taken twice.
func (w *worker) settle(ctx context.Context, lc *liveClaim, ref beeyard.Ref, s beeyard.Settlement) (*pass, error) {
	if p := lc.stuck; p != nil {
		return p, w.run.finish(ctx, p)
	}
	p, err := w.run.prepare(lc.dir.dir, lc.claim.Task, ref.Token, s)
	if err != nil {
		return nil, err
	}
	p.extras = lc.extras
	if err = w.group.settle(ctx, p); err != nil && p.decided {
		lc.stuck = p
	}
	return p, err
}

func (w *worker) claimed(c *beeyard.Claim) (*liveClaim, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lc := w.live[c.Task.ID]
	if lc == nil || lc.claim.Token != c.Token {
		return nil, claimLost(c.Task.ID)
	}
	return lc, nil
}

// Log opens the handler's log of this claim.
func (w *worker) Log(ctx context.Context, c *beeyard.Claim) (beeyard.LogFile, error) {
	return w.run.openLog(ctx, c)
}

// left lists once what the handler left in D: its end asks three times, and
// most handlers leave nothing.
func (w *worker) left(c *beeyard.Claim) (*liveClaim, error) {
	lc, err := w.claimed(c)
	if err != nil || lc.listed {
		return lc, err
	}
	lc.extras, lc.artifact = nil, false
	err = lc.dir.dir.Each(func(e durable.Entry) bool {
		id, tag, _ := parseEntry(e.Name)
		switch {
		case id != c.Task.ID:
		case tag == tagArtifact:
			lc.artifact = true
		case tag == tagNext, tag == tagResult, tag == tagCancel:
			lc.extras = append(lc.extras, e.Name)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list claim directory: %w", err)
	}
	lc.listed = true
	return lc, nil
}

// StagedArtifact measures and flushes what the handler left.
func (w *worker) StagedArtifact(_ context.Context, c *beeyard.Claim) (*beeyard.Artifact, error) {
	lc, err := w.left(c)
	if err != nil || !lc.artifact {
		return nil, err
	}
	return w.run.stagedArtifact(lc.dir.dir, c.Task.ID)
}

// Result reads what the handler left at ResultPath.
func (w *worker) Result(_ context.Context, c *beeyard.Claim) (*beeyard.Result, error) {
	lc, err := w.left(c)
	if err != nil || !slices.Contains(lc.extras, tagged(c.Task.ID, tagResult, "")) {
		return nil, err
	}
	return w.run.handlerResult(lc.dir.dir, c.Task.ID)
}

// FollowUps reads what was enqueued under the claim while it ran.
func (w *worker) FollowUps(_ context.Context, c *beeyard.Claim) ([]*beeyard.Task, error) {
	lc, err := w.left(c)
	if err != nil || !slices.ContainsFunc(lc.extras, func(n string) bool { _, tag, _ := parseEntry(n); return tag == tagNext }) {
		return nil, err
	}
	tasks, _, err := w.run.readFollowUps(lc.dir.dir, c.Task.ID)
	return tasks, err
}

// Wait returns when a claim may succeed again.
func (w *worker) Wait(ctx context.Context, poll time.Duration) error {
	if w.picker == nil {
		return clock.Sleep(ctx, w.run.clk, poll)
	}
	return w.picker.wait(ctx, poll)
}

// Drained reports whether nothing is left that could become claimable.
func (w *worker) Drained(ctx context.Context, f beeyard.Filter) (bool, error) {
	p := w.picker
	if p == nil {
		p = w.run.newPicker()
		defer func() { _ = p.close() }()
	}
	return p.drained(ctx, f)
}

// Flush writes what is owed to the checkpoint.
func (w *worker) Flush(ctx context.Context) error { return w.run.flushOwed(ctx) }

// Close flushes and gives the proof of life up. Claims that are still held
// become a dead worker's: whoever closes has settled or released them.
func (w *worker) Close(ctx context.Context) error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	dirs := w.dirs
	w.mu.Unlock()
	errs := []error{w.run.flushOwed(ctx)}
	if w.picker != nil {
		errs = append(errs, w.picker.close())
	}
	for _, d := range dirs {
		errs = append(errs, d.close())
	}
	return errors.Join(errs...)
}
