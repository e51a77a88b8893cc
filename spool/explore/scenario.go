package explore

import "fmt"

// role is the program that a process runs.
type role uint8

const (
	worker role = iota + 1
	reaper
	enqueuer
	holder   // operation: pending to held
	canceler // operation: pending or held to failed, or a request to cancel a running claim
	resumer  // operation: held to pending
	retrier  // operation: failed to pending
	promoter // a due backoff out of held
	olderWorker
	olderReaper
	olderEnqueuer
)

var roleNames = [...]string{"", "worker", "reaper", "enqueue", "hold", "cancel", "resume", "retry", "promote",
	"older worker", "older reaper", "older enqueue"}

func (r role) operation() bool { return r >= holder && r <= retrier }

// Actor is one process of a scenario.
type Actor struct {
	Role     role
	Times    uint8     // claims, visits or runs it may begin; 0 means 1
	Outcomes []outcome // what its handler may come to; default: done
	Art      bool      // its handler's success leaves an artifact
	Follow   bool      // its handler's success asks for the follow-up
	Single   bool      // its claims may be judged gone while it lives
	Task     uint8     // taskX or taskF
	Life     uint8     // what an enqueue publishes
	Late     bool      // starts after the reboot
	Backoff  bool      // its retries go to held
}

// Scenario is one configuration to explore: the processes, what is in the run
// at the start, and how many accidents may happen.
type Scenario struct {
	Name   string
	Actors []Actor

	Pending, Held, Failed, Done uint8 // life of x that starts there, 0 for none
	Crashes, Reboots, Faults    uint8
	MaxAttempts                 uint8 // default 3
	CutLoses                    bool  // the reboot is a power cut: names in D that no fsync covered may be gone
	CutDoubles                  bool  // the restart is a power cut that may bring an old name back beside the new one (btrfs)
	SplitListing                bool  // one directory's listing is no atomic step (NFS)
}

// model is a scenario under a set of rules.
type model struct {
	Scenario
	off      rule
	recIndex [maxProcs]uint8 // index of the records each process writes in directories that are not its own
	older    uint8           // lives that older enqueues publish
}

func newModel(sc Scenario, off rule) *model {
	if len(sc.Actors) >= maxProcs {
		panic(fmt.Sprintf("explore: %s: more than %d processes", sc.Name, maxProcs-1))
	}
	if sc.MaxAttempts == 0 {
		sc.MaxAttempts = 3
	}
	m := &model{Scenario: sc, off: off}
	m.Actors = append([]Actor(nil), sc.Actors...)
	next := uint8(1)
	for i := range m.Actors {
		a := &m.Actors[i]
		if a.Times == 0 {
			a.Times = 1
		}
		if len(a.Outcomes) == 0 {
			a.Outcomes = []outcome{succeeded}
		}
		switch a.Role {
		case reaper:
			m.recIndex[i] = next
			next++
		case olderEnqueuer:
			m.older |= bit(a.Life)
		}
	}
	if next >= maxRecs {
		panic("explore: more reapers than records")
	}
	m.recIndex[recoverer] = maxRecs - 1
	for len(m.Actors) < maxProcs {
		m.Actors = append(m.Actors, Actor{})
	}
	m.Actors[recoverer] = Actor{Role: reaper}
	return m
}

// recoverer is the process that runs once every other has come to rest.
const recoverer = maxProcs - 1

func (m *model) on(r rule) bool { return m.off&r == 0 }

func (m *model) start() State {
	s := State{crashes: m.Crashes, reboots: m.Reboots, faults: m.Faults}
	put := func(at *body, life uint8, o outcome) {
		if life == 0 {
			return
		}
		*at = newBody(life)
		s.acked |= bit(life)
		if o != fresh {
			// Settled by claim 0, which no process can hold.
			*at = newBody(life).settled(o, 0, false, false)
			if o.counts() {
				s.ended[life]++
			}
		}
	}
	put(&s.pending[taskX], m.Pending, fresh)
	put(&s.held[taskX], m.Held, onHold)
	put(&s.failed[taskX], m.Failed, failedForGood)
	put(&s.done[taskX], m.Done, succeeded)
	if m.Held != 0 {
		s.stopped |= bit(m.Held)
	}
	if m.Done != 0 {
		s.doneOnce |= bit(m.Done)
		s.completed |= bit(taskX)
	}
	for i := range s.procs {
		s.procs[i].left = m.Actors[i].Times
		if m.Actors[i].Role == 0 || i == recoverer {
			s.procs[i].pc = exited
		}
	}
	return s
}

func (m *model) who(p int) string {
	if p == recoverer {
		return "recovery"
	}
	n, k := 0, 0
	for i, a := range m.Actors[:recoverer] {
		if a.Role == m.Actors[p].Role {
			n++
			if i <= p {
				k++
			}
		}
	}
	if n == 1 {
		return roleNames[m.Actors[p].Role]
	}
	return fmt.Sprintf("%s %d", roleNames[m.Actors[p].Role], k)
}
