package beeyard

import (
	"context"
	"io"
	"time"
)

// Run is one workflow as a store offers it. Its methods may be called from
// many goroutines. Every method that takes an id returns ErrNotFound when
// there is no such task, and ErrCorrupt when what is stored cannot be read.
type Run interface {
	ID() string
	// Location is what opens the run again: a path or a URL.
	Location() string

	Queue
	Checkpoints
	Artifacts
	Events

	// Close stops what the run started and waits for it. Idempotent.
	Close() error
}

// Queue moves tasks.
type Queue interface {
	// Enqueue publishes tasks. On nil every one reported as new is durable. Not
	// atomic as a whole: after an error some may be published; the results say
	// which, and the same call with IfAbsent completes it. ErrExists for an id
	// in use anywhere in the run, ErrCycle with the path, ErrUsage for bad ids.
	Enqueue(ctx context.Context, tasks []*Task, o EnqueueOptions) ([]Enqueued, error)

	// Attach registers a claimer. ErrWorkerLive when the id is live. Claims of
	// an earlier, dead process of the same id are taken back first.
	Attach(ctx context.Context, w WorkerSpec) (Worker, error)

	// Settle ends a claim. On nil the record is durable and published.
	// ErrClaimLost when the token is no longer current: nothing changed, the
	// staged output is kept aside.
	Settle(ctx context.Context, ref Ref, s Settlement) (Settled, error)

	// Heartbeat proves the life of a single claim. ErrClaimLost.
	Heartbeat(ctx context.Context, ref Ref, note string) error

	// Reap ends the claims of the dead, and finishes what was decided.
	Reap(ctx context.Context, o ReapOptions) (ReapReport, error)

	// Hold, Unhold, Cancel, Retry and Replace are claims followed by settles.
	// ErrConflict when the task is in no state for it.
	Hold(ctx context.Context, id string, h Hold) error
	Unhold(ctx context.Context, id string) error
	// Cancel of a running task asks its owner to end it and returns
	// CancelRequested; whoever settles first wins.
	Cancel(ctx context.Context, id, by, reason string) (CancelResult, error)
	Retry(ctx context.Context, id string, o RetryOptions) error
	Replace(ctx context.Context, id string, with *Task) error

	// Get, List, Why, Counts and Graph look. They take no lock and block nobody.
	Get(ctx context.Context, id string) (*View, error)
	List(ctx context.Context, q Query) (*Page, error)
	Counts(ctx context.Context) (Counts, error)

	// Prune moves finished tasks out of the way; their ids stay used.
	Prune(ctx context.Context, o PruneOptions) (PruneReport, error)
	// Changed returns a channel that gets a value some time after anything
	// changed; hints may be merged, late or, rarely, missing. It ends with ctx.
	Changed(ctx context.Context) (<-chan struct{}, error)
}

// Worker is an attached claimer.
type Worker interface {
	ID() string
	// Claim takes the best ready task, or returns nil, nil when there is none.
	Claim(ctx context.Context, f Filter) (*Claim, error)
	// Settle is Queue.Settle; settles that arrive together share their flushes.
	Settle(ctx context.Context, ref Ref, s Settlement) (Settled, error)
	// Beat proves that the worker lives. It returns the claims among held
	// whose cancel has been asked for, and those that are lost.
	Beat(ctx context.Context, held []Ref, note string) (BeatReport, error)
	// Check is Beat's look without the beat: cheap enough for once a second.
	Check(ctx context.Context, held []Ref) (BeatReport, error)
	// Log opens the handler's log of this claim for writing, earlier attempts'
	// logs moved aside. It is also read by others while it grows.
	Log(ctx context.Context, c *Claim) (LogFile, error)
	// StagedArtifact measures and flushes what the handler left; nil when nothing.
	StagedArtifact(ctx context.Context, c *Claim) (*Artifact, error)
	// Result reads what the handler left at ResultPath; nil when nothing.
	Result(ctx context.Context, c *Claim) (*Result, error)
	// FollowUps reads what was enqueued under the claim while it ran.
	FollowUps(ctx context.Context, c *Claim) ([]*Task, error)
	// Wait returns when a claim may succeed again: a hint, a due time, or the
	// poll. It returns ctx's cause when ctx ends.
	Wait(ctx context.Context, poll time.Duration) error
	// Drained reports whether nothing is left that this worker could ever
	// claim without somebody else's doing: no ready, waiting or claimed task.
	Drained(ctx context.Context, f Filter) (bool, error)
	// Flush writes what the worker still owes the checkpoint.
	Flush(ctx context.Context) error
	// Close flushes, releases the worker's proof of life and what it holds.
	Close(ctx context.Context) error
}

// LogFile is a log under way. WriteAt is for a writer that keeps head and tail
// within a bound and so writes the end again.
type LogFile interface {
	io.WriteCloser
	io.WriterAt
}

// EnqueueOptions say what happens when an id is in use, and under which claim.
type EnqueueOptions struct {
	IfAbsent bool // an id in use is a no-op
	Replace  bool // the task is replaced while it is pending
	// Under makes the tasks follow-ups of this claim: they are enqueued when it
	// settles as done. ErrClaimLost when it is no longer current.
	Under *Ref
	// OnEach, when set, hears of progress in large batches.
	OnEach func(done int)
}

// Enqueued is the answer for one task.
type Enqueued struct {
	TaskID string `json:"task_id"`
	// Status is enqueued, exists, replaced or follow_up.
	Status string `json:"status"`
	State  State  `json:"state,omitempty"`
}

// ReapOptions choose whose claims are ended.
type ReapOptions struct {
	StaleAfter time.Duration // for those whose death cannot be proven; 300 s
	Limits     Limits
	// Worker restricts to one worker id (take-back).
	Worker string
	DryRun bool
	// KillStopped ends a stopped (SIGSTOP) owner of this host before its claims
	// are taken; without it such claims are deferred and reported.
	KillStopped bool
}

// Reaped is one claim that was looked at.
type Reaped struct {
	TaskID string  `json:"task_id"`
	Worker string  `json:"worker_id"`
	Age    float64 `json:"age_seconds"` // since the newest proof of life; -1 without any
	// Action: requeued, failed, finished (its record was whole), canceled, deferred, dropped.
	Action string `json:"action"`
	Detail string `json:"detail,omitempty"`
}

// ReapReport tells what a reap did and what it left.
type ReapReport struct {
	Reaped  []Reaped `json:"reaped"`
	Skipped []Reaped `json:"skipped_live"`
	// Notes are things found and kept aside or put right on the way.
	Notes []string `json:"notes,omitempty"`
}

// BeatReport is what a worker must act on.
type BeatReport struct {
	Canceled []Ref
	Lost     []Ref
	// Late is how long the worker slept past its own beat, zero normally.
	Late time.Duration
}

// CancelResult tells how far a cancel got.
type CancelResult struct {
	TaskID string `json:"task_id"`
	// Status: canceled, requested (its owner will end it), or already_done.
	Status string `json:"status"`
	Worker string `json:"worker_id,omitempty"`
}

// RetryOptions say how a finished task runs again.
type RetryOptions struct {
	Tier  string
	After time.Duration
	By    string
}

// PruneOptions choose finished tasks.
type PruneOptions struct {
	OlderThan time.Duration
	States    []State // done, failed, canceled; empty is done only
	IDs       []string
	Delete    bool // remove the bodies, keep the ids; else they are archived
	DryRun    bool
}

// PruneReport tells what was moved.
type PruneReport struct {
	Pruned  []string `json:"pruned"`
	Deleted bool     `json:"deleted"`
	DryRun  bool     `json:"dry_run"`
}

// Checkpoints keep the checkpoint.
type Checkpoints interface {
	// Checkpoint reads it, completed_tasks joined with what is done. ErrNotFound
	// when there is none. A damaged one is rebuilt, with a warning in Risk.
	Checkpoint(ctx context.Context) (*Checkpoint, error)
	// WriteCheckpoint changes what is named and returns the new one, durable on
	// nil. ErrConflict when IfRevision is not the current revision.
	WriteCheckpoint(ctx context.Context, e CheckpointEdit) (*Checkpoint, error)
	// InitCheckpoint makes it. ErrExists when there is one.
	InitCheckpoint(ctx context.Context, c Checkpoint) (*Checkpoint, error)
	// Note returns the human's words of a run: BACKLOG.md or portrait.md; "" when absent.
	Note(ctx context.Context, name string) (string, error)
}

// ArtifactInfo names a file that tasks left.
type ArtifactInfo struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Artifacts reads what tasks left.
type Artifacts interface {
	ListArtifacts(ctx context.Context, task string) ([]ArtifactInfo, error)
	// OpenArtifact opens one for reading; the caller closes it.
	OpenArtifact(ctx context.Context, name string) (ArtifactReader, error)
	// StageArtifact stores r as the output of a claim; published when it settles as done.
	StageArtifact(ctx context.Context, ref Ref, r io.Reader) (*Artifact, error)
}

// ArtifactReader reads ranges.
type ArtifactReader interface {
	io.ReadSeekCloser
	io.ReaderAt
	Info() ArtifactInfo
}

// Event is a hint of something that happened. The record is in the tasks.
type Event struct {
	Time   string `json:"time"`
	Kind   string `json:"kind"` // enqueued, claimed, settled, reaped, held, canceled, promoted, quarantined …
	TaskID string `json:"task_id,omitempty"`
	Worker string `json:"worker_id,omitempty"`
	Token  string `json:"token,omitempty"`
	State  State  `json:"state,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Events reads the hints.
type Events interface {
	// ReadEvents yields events in order of time, as far as clocks agree, until
	// yield returns false. Torn and unreadable lines are passed over.
	ReadEvents(ctx context.Context, since time.Time, yield func(Event) bool) error
}
