package beeyard

import "time"

// Claim is the exclusive right to do one task now.
type Claim struct {
	Task  *Task // the body that was claimed: this one runs, whatever is written later
	Token Token
	At    time.Time
	// Where the handler works. For a store that is not a directory the worker
	// lays these out and stores what it finds at the settle.
	RunDir       string
	ArtifactPath string // staged: becomes visible only if this claim settles as done
	LogPath      string
	ResultPath   string // the handler may leave its Result here as JSON
}

// Ref names a claim to the store: enough to beat, stage and settle from
// another process than the one that claimed.
type Ref struct {
	TaskID string
	Token  Token
}

// Ref names the claim.
func (c *Claim) Ref() Ref { return Ref{c.Task.ID, c.Token} }

// Settled tells what a settle did.
type Settled struct {
	TaskID  string  `json:"task_id"`
	Outcome Outcome `json:"outcome"`
	State   State   `json:"state"`
	Rev     int64   `json:"rev"`
	Attempt int     `json:"attempt"`
	RetryAt string  `json:"retry_at,omitempty"`
	// Published and Skipped are follow-ups: enqueued, and left out because the id was in use.
	Published []string `json:"published,omitempty"`
	Skipped   []string `json:"skipped,omitempty"`
}

// Kind says how a claimer's life is proven.
type Kind string

// KindProcess holds a lock for as long as it lives; KindSingle is a claim made
// by a command that exits at once, alive while it beats.
const (
	KindProcess Kind = "process"
	KindSingle  Kind = "single"
)

// WorkerSpec says who claims.
type WorkerSpec struct {
	ID   string // native id
	Kind Kind
	// StaleAfter is the limit that reapers use here; a beat comes well before it. 300 s.
	StaleAfter time.Duration
	// Limits of the tasks that this worker takes back from an earlier life of the same id.
	Limits Limits
}

// Filter says what a claimer can do. Empty fields take everything.
type Filter struct {
	Types  []string
	Tiers  []string
	Labels []string
	IDs    []string // only these tasks
	// Strict reads every pending task before choosing, so that a one-shot
	// claim's order is exact however many there are.
	Strict bool
}

// Match reports whether the task is one that the filter takes.
func (f *Filter) Match(t *Task) bool {
	return oneOf(f.Types, t.Type) && oneOf(f.Tiers, t.TierHint) && oneOf(f.IDs, t.ID) && allIn(f.Labels, t.Ext.Labels)
}

func oneOf(set []string, v string) bool {
	if len(set) == 0 {
		return true
	}
	for _, s := range set {
		if s == v {
			return true
		}
	}
	return false
}

func allIn(want, have []string) bool {
	for _, w := range want {
		if len(have) == 0 || !oneOf(have, w) {
			return false
		}
	}
	return true
}
