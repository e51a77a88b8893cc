package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Run is a run in a directory. It implements beeyard.Run.
type Run struct {
	id     string
	path   string
	schema string // status.json's, as far as it was read at the open
	host   Host
	ro     bool
	warn   func(string)
	clk    clock.Clock
	// jitter is random in [0,1); a field so that tests decide.
	jitter func() float64

	root durable.Dir
	// One open descriptor a folder: a protocol step is one system call on two
	// of them, and nothing that is renamed above us can redirect it.
	pending, held, claimed, done, failed durable.Dir
	artifacts, quarantine, events, meta  durable.Dir

	noted   sync.Map // what has been warned about, once each
	netOnce sync.Once
	net     bool

	opMu  sync.Mutex
	opDir *claimDir // this process's directory for operations, made when needed

	seenMu  sync.Mutex
	seen    map[string]seen // beats ahead of the clock, by claim directory
	seenNew bool

	janitorAt time.Time // when temporary files were last looked for
	mu        sync.Mutex
	closers   []func() error
	closed    bool
	parts
}

// lockWait bounds how long an operation waits for the queue or status lock.
// They are held for a few system calls, or for one batch's renames.
const lockWait = 60 * time.Second

// Create makes a run's folders and its checkpoint. ErrExists when there is a
// run at path already. On nil folders and checkpoint are durable.
func Create(path string, c beeyard.Checkpoint, o Options, clk clock.Clock) (*Run, error) {
	dir, err := durable.MkdirAll(path, folderMode)
	if err != nil {
		return nil, fmt.Errorf("make run folder: %w", err)
	}
	if err := dir.Close(); err != nil {
		return nil, fmt.Errorf("close run folder: %w", err)
	}
	r, err := openRun(path, o, clk, true)
	if err != nil {
		return nil, err
	}
	if c.RunID == "" {
		c.RunID = filepath.Base(r.path)
	}
	if _, err := r.InitCheckpoint(context.Background(), c); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.id = c.RunID
	return r, nil
}

// Open opens a run: a folder with a status.json or a pending/. ErrNotFound
// when it is neither; ErrNotAllowed when the folder is unsafe.
func Open(path string, o Options, clk clock.Clock) (*Run, error) { return openRun(path, o, clk, false) }

func openRun(path string, o Options, clk clock.Clock, create bool) (*Run, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", path, err)
	}
	var opts []durable.RootOption
	if o.ReadOnly {
		opts = append(opts, durable.ReadOnly())
	}
	root, err := durable.OpenRoot(abs, opts...)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &beeyard.Error{Op: "open run", ID: path, Err: beeyard.Because(beeyard.ErrNotFound, "there is no such folder"),
			Hint: "beeyard ls lists the runs; beeyard run new makes one"}
	case errors.Is(err, durable.ErrUnsafe):
		return nil, &beeyard.Error{Op: "open run", ID: path, Err: fmt.Errorf("%w: %w", beeyard.ErrNotAllowed, err)}
	case err != nil:
		return nil, fmt.Errorf("open run: %w", err)
	}
	if o.Wrap != nil {
		root = o.Wrap(root)
	}
	r := &Run{path: abs, host: o.Host, ro: o.ReadOnly, warn: o.Warn, clk: clk, root: root, jitter: rand.Float64}
	if r.warn == nil {
		r.warn = func(string) {}
	}
	if err := r.openFolders(create); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.id = r.readRunID()
	r.initParts()
	return r, nil
}

func (r *Run) openFolders(create bool) error {
	if !create {
		status, err1 := r.root.Exists(fileStatus)
		pending, err2 := r.root.Exists(dirPending)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("look for a run: %w", err)
		}
		if !status && !pending {
			return &beeyard.Error{Op: "open run", ID: r.path,
				Err:  beeyard.Because(beeyard.ErrNotFound, "the folder has neither a status.json nor a pending/"),
				Hint: "beeyard run new makes a run; beeyard ls lists the runs"}
		}
	}
	made := false
	for _, f := range []struct {
		name string
		to   *durable.Dir
	}{
		{dirPending, &r.pending}, {dirHeld, &r.held}, {dirClaimed, &r.claimed}, {dirDone, &r.done},
		{dirFailed, &r.failed}, {dirArtifacts, &r.artifacts}, {dirQuarantine, &r.quarantine},
		{dirEvents, &r.events}, {dirMeta, &r.meta},
	} {
		d, err := r.root.OpenDir(f.name)
		if errors.Is(err, fs.ErrNotExist) {
			if r.ro {
				*f.to = absent{filepath.Join(r.path, f.name)}
				continue
			}
			if err := r.root.Mkdir(f.name, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make folder: %w", err)
			}
			made = true
			d, err = r.root.OpenDir(f.name)
		}
		if err != nil {
			return &beeyard.Error{Op: "open run", ID: r.path, Err: fmt.Errorf("%w: %w", beeyard.ErrNotAllowed, err),
				Hint: f.name + "/ must be a folder of this run and not a link"}
		}
		*f.to = d
	}
	if made {
		// A task published into a folder whose own name is lost is lost with it.
		if err := r.root.Sync(); err != nil {
			return fmt.Errorf("sync run folder: %w", err)
		}
	}
	if r.ro {
		return nil
	}
	// A rename between two file systems is a copy: nothing here would hold.
	if err := durable.SameFS(r.root, r.pending, r.held, r.claimed, r.done, r.failed, r.artifacts, r.quarantine, r.meta); err != nil {
		return &beeyard.Error{Op: "open run", ID: r.path, Err: fmt.Errorf("%w: %w", beeyard.ErrNotAllowed, err),
			Hint: "put all folders of a run on one file system"}
	}
	return nil
}

// ID is status.json's run_id, else the folder's name.
func (r *Run) ID() string { return r.id }

// Location is the run's absolute path.
func (r *Run) Location() string { return r.path }

// onClose registers work for Close, run last first.
func (r *Run) onClose(f func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closers = append(r.closers, f)
}

// Close stops what the run started, waits for it and releases its folders.
func (r *Run) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	closers := r.closers
	r.mu.Unlock()
	var errs []error
	for i := len(closers) - 1; i >= 0; i-- {
		errs = append(errs, closers[i]())
	}
	for _, d := range []durable.Dir{r.pending, r.held, r.claimed, r.done, r.failed, r.artifacts, r.quarantine, r.events, r.meta, r.root} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// lockQueue takes .queue.lock (invariant 7 of ADR 0002): held while anything
// enters pending or held, comes back out of failed or done, is taken from
// another's directory, or is dropped as a copy.
func (r *Run) lockQueue(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, errors.New(fileQueueLock+" was not free for "+lockWait.String()))
	defer cancel()
	unlock, err := r.root.Lock(ctx, fileQueueLock)
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", beeyard.ErrLocked, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock queue: %w", err)
	}
	return unlock, nil
}

// note warns once for each distinct message.
func (r *Run) note(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if _, seen := r.noted.LoadOrStore(msg, true); !seen {
		r.warn(msg)
	}
}

// place is the folder of a state.
func (r *Run) place(p beeyard.Place) durable.Dir {
	switch p {
	case beeyard.PlacePending:
		return r.pending
	case beeyard.PlaceHeld:
		return r.held
	case beeyard.PlaceDone:
		return r.done
	case beeyard.PlaceFailed:
		return r.failed
	case beeyard.PlaceQuarantine:
		return r.quarantine
	}
	return nil
}
