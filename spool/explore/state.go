package explore

const (
	maxDirs  = 5
	maxProcs = 6
	maxRecs  = 4
	maxLives = 8

	taskX, taskF = 0, 1 // the task, and the follow-up that its success asks for
	followLife   = 7    // the life that the follow-up in a record carries
)

type dirKind uint8

const (
	unused     dirKind = iota
	workerDir          // kind process: its owner is dead exactly when its flock is free
	singleDir          // a single-shot claim, or a host that only a time limit can judge: may be taken while it lives
	operateDir         // claimed/~<nonce>
	olderDir           // claimed/<worker>, no token, no fence
)

var dirKindNames = [...]string{"", "worker", "single", "operation", "older"}

// dir is one folder under claimed/. It holds at most one task, because a pair
// (D, x) never meets another x.
type dir struct {
	x, taken body            // x.json and x~taken.<takenR>
	out      [maxRecs]record // x~out.<r>, by the writer's index
	kind     dirKind
	owner    uint8 // index of the process that made it
	task     uint8
	claim    uint8 // number of the claim that x.json is, or was
	takenR   uint8
	art      uint8 // x~artifact: the claim that staged it
	cancel   bool  // x~cancel
	oldBoot  bool  // the owner belongs to a boot that ended
}

func (d *dir) empty() bool {
	return d.x == 0 && d.taken == 0 && d.art == 0 && d.out == [maxRecs]record{}
}

// seat reports whether the decided claim in d still has its record to publish.
func (d *dir) unpublished() bool { return d.taken != 0 && d.out[d.takenR].whole() }

// proc is one process: where it stands, and what it holds in memory.
type proc struct {
	seen   body   // the body it works on
	rec    record // the record it writes or finishes
	pc     pc
	ret    pc    // where a settle or a finish returns to
	cont   pc    // where a look returns to
	d      uint8 // directory in hand, index + 1
	own    uint8 // an older worker's lasting directory, index + 1
	r      uint8 // record in hand
	look   uint8 // position of a look
	mask   uint8 // directories that a look saw in claimed/
	query  query
	found  bool
	left   uint8 // claims, visits or runs it may still begin
	task   uint8
	answer bool // a settle's answer: true for success
	_      uint8
}

// State is a run's directories and all its processes. It is comparable, and
// two equal states have the same future.
type State struct {
	dirs  [maxDirs]dir
	procs [maxProcs]proc

	pending, held, done, failed [2]body
	shadow                      [4]body // x's old name in pending, held, failed, while no fsync covered its going
	artifact                    uint8   // artifacts/x.md: the claim whose output it is
	quarantined                 uint8   // lives with a body in quarantine/
	completed                   uint8   // ids in completed_tasks
	lock                        uint8   // holder of .queue.lock, index + 1
	crashes, reboots, faults    uint8   // left
	claims                      uint8   // claims so far

	// What really happened, for the invariants only: no process reads it.
	acked       uint8 // lives whose enqueue was answered
	overwritten uint8 // lives that an older program overwrote
	doneOnce    uint8 // lives that were done once
	answered    uint8 // lives whose worker was told that they are done
	stopped     uint8 // lives that a person holds or canceled, answered
	ended       [maxLives]uint8
	decided     uint16 // claims that are decided
	ownRecord   uint16 // claims decided with their owner's record
	success     uint16 // claims decided as done
	bad         violation
}

func bit(n uint8) uint8    { return 1 << n }
func bit16(n uint8) uint16 { return 1 << n }

// newDir takes the first unused directory for process p.
func (s *State) newDir(kind dirKind, p int, task uint8) uint8 {
	for i := range s.dirs {
		if s.dirs[i].kind == unused {
			s.dirs[i] = dir{kind: kind, owner: uint8(p), task: task}
			return uint8(i) + 1
		}
	}
	panic("explore: scenario needs more directories than maxDirs")
}

// claimInto renames a body into a directory as its next claim.
func (s *State) claimInto(d uint8, from *body) {
	s.claims++
	if s.claims > 15 {
		panic("explore: scenario makes more claims than a token can number")
	}
	dd := &s.dirs[d-1]
	dd.x, dd.claim = *from, s.claims
	*from = 0
}

// claimFrom renames a task out of a folder into a directory as its next claim.
func (s *State) claimFrom(d uint8, from target, task uint8, doubles bool) {
	if doubles && task == taskX {
		s.shadow[from] = *s.at(from, task)
	}
	s.claimInto(d, s.at(from, task))
}

// synced notes an fsync of a folder: no old name comes back there.
func (s *State) synced(to target, task uint8) {
	s.shadow[to] = 0
}

// at is the file x.json of a task in a target folder.
func (s *State) at(t target, task uint8) *body {
	switch t {
	case toPending:
		return &s.pending[task]
	case toHeld:
		return &s.held[task]
	case toDone:
		return &s.done[task]
	}
	return &s.failed[task]
}

func (s *State) alive(p uint8) bool {
	return s.procs[p].pc != dead && s.procs[p].pc != exited
}

// normalize forgets what can no longer matter, so that states with the same
// future are equal: an ended process's memory, and empty directories that
// nobody has in hand.
func (s *State) normalize() {
	var inHand uint8
	for i := range s.procs {
		p := &s.procs[i]
		if p.pc == dead || p.pc == exited {
			*p = proc{pc: p.pc}
			continue
		}
		if p.d != 0 {
			inHand |= bit(p.d - 1)
		}
		if p.own != 0 {
			inHand |= bit(p.own - 1)
		}
		inHand |= p.mask
	}
	for i := range s.dirs {
		if d := &s.dirs[i]; d.kind != unused && d.empty() && inHand&bit(uint8(i)) == 0 {
			*d = dir{}
		}
	}
}
