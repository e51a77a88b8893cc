package explore

import "fmt"

// violation is what a state breaks; zero is nothing.
type violation uint8

const (
	none violation = iota
	taskLost
	twoPlaces
	decidedTwice
	foreignRecord
	wrongRev
	wrongAttempt
	doneTwice
	wastedRecord
	wrongAnswer
	ranStopped
	earlyArtifact
	earlyFollowUp
	completedAhead
	idTwice
	stranded
	noRecoveryEnd
	wrongArtifact
	noFollowUp
	checkpointBehind
	attemptsAtRest
	successGone
	higherRevDropped
)

var violationNames = [...]string{"", "an acknowledged task is nowhere (1)", "one life has two current copies (6)",
	"a claim is decided twice (3)", "a claim is decided with another claim's record (2, 4)",
	"a settle did not raise rev by one", "an ended claim was not counted exactly once (8)",
	"a life is done twice", "a dead claim's finished work is thrown away", "a settle's answer is wrong",
	"a held or canceled task runs", "an artifact is visible without its claim's success (5)",
	"a follow-up is visible without a success (5)", "completed_tasks is ahead of done (9)",
	"an id is accepted twice", "something is stranded at rest", "recovery does not end",
	"at rest, done has another settle's artifact or none", "at rest, a follow-up of done is missing",
	"at rest, completed_tasks is not done", "at rest, attempt is not the number of ended claims",
	"at rest, a decided success is not in done",
	"a copy with a lower rev wins (6)"}

func (v violation) String() string { return violationNames[v] }

// fail notes the first violation of a step.
func (s *State) fail(v violation) {
	if s.bad == none {
		s.bad = v
	}
}

func (s *State) lose(life uint8) {
	if s.overwritten&bit(life) == 0 {
		s.fail(taskLost)
	}
}

func (s *State) noteDone(life uint8) {
	if s.doneOnce&bit(life) != 0 {
		s.fail(doneTwice)
	}
	s.doneOnce |= bit(life)
}

// noteDecision checks the one step that ends a claim, and keeps what it means.
func (st *stepper) noteDecision(s *State, d *dir, b body, r uint8) {
	was := d.x
	if s.decided&bit16(d.claim) != 0 {
		s.fail(decidedTwice)
	}
	s.decided |= bit16(d.claim)
	switch {
	case b.token() != d.claim || b.life() != was.life():
		s.fail(foreignRecord)
	case b.rev() != was.rev()+1:
		s.fail(wrongRev)
	case b.outcome().counts() && b.attempt() != was.attempt()+1, !b.outcome().counts() && b.attempt() != was.attempt():
		s.fail(wrongAttempt)
	}
	if b.outcome().counts() {
		s.ended[was.life()]++
	}
	if r == 0 {
		s.ownRecord |= bit16(d.claim)
	} else if d.kind == workerDir && !s.alive(d.owner) && d.out[0].whole() {
		// Its owner died with the work done and written down.
		s.fail(wastedRecord)
	}
	if b.outcome() == succeeded {
		s.success |= bit16(d.claim)
		if st.doubled(s) {
			// After the cut a copy may be decided too; it is published once.
			s.doneOnce |= bit(was.life())
		} else {
			s.noteDone(was.life())
		}
	}
	if b.outcome() == released && r == 0 {
		s.stopped &^= bit(was.life())
	}
}

// undoSuccess allows another run after a power cut took the record of a decided
// success, or its artifact: its answer was not given. What was published of it
// stays, so the claim goes on to count as one that succeeded.
func undoSuccess(s *State, b body) {
	if b.outcome() == succeeded {
		s.doneOnce &^= bit(b.life())
	}
}

// doubled reports whether a power cut may have brought an old name back: then
// copies of one life are to be expected, and the one with the higher rev counts.
func (m *model) doubled(s *State) bool { return m.CutDoubles && s.reboots == 0 }

// check returns what a state breaks.
func (m *model) check(s *State) violation {
	if s.bad != none {
		return s.bad
	}
	var bodies, seats [maxLives]uint8
	count := func(b body) {
		if b != 0 {
			bodies[b.life()]++
			seats[b.life()]++
		}
	}
	for task := range s.pending {
		count(s.pending[task])
		count(s.held[task])
		count(s.done[task])
		count(s.failed[task])
	}
	for i := range s.dirs {
		d := &s.dirs[i]
		count(d.x)
		if d.taken != 0 {
			bodies[d.taken.life()]++
			if d.out[d.takenR].whole() {
				seats[d.taken.life()]++
			}
		}
	}
	natives := [2]uint8{}
	for life := uint8(1); life < maxLives; life++ {
		if s.acked&bit(life) == 0 {
			continue
		}
		if bodies[life] == 0 && (s.overwritten|s.quarantined)&bit(life) == 0 {
			return taskLost
		}
		if seats[life] > 1 && !m.doubled(s) {
			return twoPlaces
		}
		if m.older&bit(life) == 0 {
			natives[taskOf(life)]++
		}
	}
	switch {
	case natives[taskX] > 1 || natives[taskF] > 1:
		return idTwice
	case s.artifact != 0 && s.success&bit16(s.artifact) == 0:
		return earlyArtifact
	case s.acked&bit(followLife) != 0 && s.success == 0:
		return earlyFollowUp
	}
	for task := range s.done {
		if s.completed&bit(uint8(task)) != 0 && s.done[task] == 0 {
			return completedAhead
		}
	}
	return none
}

func taskOf(life uint8) int {
	if life >= 6 {
		return taskF
	}
	return taskX
}

// checkRest returns what a state breaks in which every process has ended, or
// waits for work, and recovery has run.
func (m *model) checkRest(s *State) violation {
	var done uint8
	var top [maxLives]body
	var current uint8
	note := func(b body) {
		if b != 0 {
			current |= bit(b.life())
			if b.rev() >= top[b.life()].rev() {
				top[b.life()] = b
			}
		}
	}
	for task := range s.pending {
		for _, b := range []body{s.pending[task], s.held[task], s.failed[task], s.done[task]} {
			note(b)
		}
		if s.done[task] != 0 {
			done |= bit(uint8(task))
		}
	}
	for i := range s.dirs {
		d := &s.dirs[i]
		if !d.empty() {
			return stranded
		}
	}
	if s.acked&^(current|s.quarantined|s.overwritten) != 0 {
		return stranded
	}
	for life := range top {
		if top[life] != 0 && top[life].attempt() != s.ended[life] && !m.doubled(s) {
			return attemptsAtRest
		}
	}
	b := s.done[taskX]
	kept := bit(b.life()) | bit(s.done[taskF].life()) | s.quarantined | s.overwritten
	switch {
	case s.answered&^kept != 0 || s.doneOnce&^kept != 0 && !m.doubled(s):
		return successGone
	case s.completed != done:
		return checkpointBehind
	case b.art() && s.artifact != b.token():
		return wrongArtifact
	case b.follow() && s.acked&(bit(followLife)|bit(6)) == 0:
		return noFollowUp
	}
	return none
}

func (m *model) describe(s *State) []string {
	var out []string
	add := func(where string, b body) {
		if b != 0 {
			out = append(out, fmt.Sprintf("%s: %v", where, b))
		}
	}
	for task, id := range []string{"x", "f"} {
		add("pending/"+id, s.pending[task])
		add("held/"+id, s.held[task])
		add("done/"+id, s.done[task])
		add("failed/"+id, s.failed[task])
	}
	for i := range s.dirs {
		d := &s.dirs[i]
		if d.empty() {
			continue
		}
		at := fmt.Sprintf("D%d (%s of %s, claim %d)", i+1, dirKindNames[d.kind], m.who(int(d.owner)), d.claim)
		add(at+" x.json", d.x)
		add(fmt.Sprintf("%s x~taken.%d", at, d.takenR), d.taken)
		for r, rec := range d.out {
			if rec != 0 {
				out = append(out, fmt.Sprintf("%s x~out.%d: %v", at, r, rec))
			}
		}
		if d.art != 0 {
			out = append(out, at+" x~artifact")
		}
	}
	if s.artifact != 0 {
		out = append(out, fmt.Sprintf("artifacts/x.md of claim %d", s.artifact))
	}
	return out
}
