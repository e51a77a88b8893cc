package beeyard

// View is one task as people and programs see it.
type View struct {
	Task    *Task
	Place   Place
	State   State
	Reasons []Reason
	// Claim is who has it, for claimed tasks.
	Claim *ClaimInfo
	// ModTime of the body in seconds since 1970: when it came to this place.
	Since int64
	// Detail says why a quarantined file is no task.
	Detail string
}

// ClaimInfo is what is known of a running claim.
type ClaimInfo struct {
	Worker  string  `json:"worker_id"`
	Token   string  `json:"token,omitempty"`
	Since   string  `json:"since,omitempty"`
	BeatAge float64 `json:"beat_age_seconds"` // -1 without a beat
	Note    string  `json:"note,omitempty"`
	Host    string  `json:"host,omitempty"`
	PID     int     `json:"pid,omitempty"`
	// Alive: yes, no, stopped, unknown (another host's or an older program's).
	Alive string `json:"alive"`
	// Older: claimed by an older program or a compatibility command: no fence.
	Older    bool `json:"older,omitempty"`
	Canceled bool `json:"cancel_requested,omitempty"`
}

// Query chooses tasks to list, in the order of the queue (Before) for open
// ones and newest first for finished ones.
type Query struct {
	States []State
	Types  []string
	Tiers  []string
	Labels []string
	Text   string // substring of id, type or payload
	Limit  int    // 0: 200
	Cursor string // Page.Next of the page before
}

// Page is a part of a list.
type Page struct {
	Tasks []*View
	Next  string // "" at the end
	Total int    // matching the query, all pages
}

// Counts are tasks by state.
type Counts struct {
	ByState        map[State]int  `json:"by_state"`
	ByWorker       map[string]int `json:"claimed_by_worker"`
	OldestReadyAge float64        `json:"oldest_ready_age_seconds"` // 0 without any
}

// Open is how many tasks have not ended.
func (c Counts) Open() int {
	n := 0
	for s, k := range c.ByState {
		if !s.Finished() && s != StateQuarantined {
			n += k
		}
	}
	return n
}
