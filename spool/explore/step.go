package explore

// pc says which step a process takes next.
type pc uint8

const (
	idle pc = iota
	exited
	dead

	looking // the look of invariant 7, directory by directory

	claimDone // does done hold this life?
	claimFailed
	claimHeld
	claimDrop
	handle
	handled
	fold

	settleTorn
	settleWhole
	settleEarlyFollow
	settleEarlyPut
	settleEarlyArt
	settleDecide
	settleLostTaken
	settleLostOut
	settleLostTarget

	finishRead
	finishMissing
	finishDone
	finishFailed
	finishFollow
	finishPut
	finishArt
	finishArtTaken
	finishArtThere
	finishArtLost
	finishArtGone
	finishPublish
	finishHelped
	finishClash
	finishResolve
	finishSupersede
	finishUnlink

	reapLooked
	reapAsideLook
	reapAside
	reapEnd

	operateEnd
	operateRename

	enqueuePut
	olderRun
	olderList
	olderMove
)

// query is what a look asks of every directory.
type query uint8

const (
	taskInUse    query = iota // any body of this id
	followInUse               // any body of the follow-up's id
	copyOfLife                // this life with rev ≥, elsewhere
	copyOrLater               // the same, or a later life
	laterSuccess              // a later life that is done, or decided so
)

// successor is a state one step on.
type successor struct {
	state State
	label string
	proc  int8
}

// stepper collects the steps that one process can take in a state.
type stepper struct {
	*model
	s   *State
	p   int
	out []successor
}

// do adds one atomic step.
func (st *stepper) do(label string, change func(n *State, p *proc)) {
	st.out = append(st.out, successor{state: *st.s, label: label, proc: int8(st.p)})
	n := &st.out[len(st.out)-1].state
	change(n, &n.procs[st.p])
	n.normalize()
}

func (st *stepper) me() *proc { return &st.s.procs[st.p] }
func (st *stepper) dir() *dir { return &st.s.dirs[st.me().d-1] }

// free reports whether the process holds the lock or could take it now.
func (st *stepper) free() bool { return st.s.lock == 0 || int(st.s.lock) == st.p+1 }

func (st *stepper) take(n *State) { n.lock = uint8(st.p) + 1 }
func (st *stepper) unlock(n *State) {
	if int(n.lock) == st.p+1 {
		n.lock = 0
	}
}

// next takes all steps that process p can take now.
func (st *stepper) next() {
	p := st.me()
	if p.pc == exited || p.pc == dead {
		return
	}
	a := &st.Actors[st.p]
	if a.Late && st.s.reboots > 0 {
		return
	}
	switch {
	case p.pc == idle:
		st.begin(a)
	case p.pc == looking:
		st.lookStep()
	case p.pc <= fold:
		st.workStep(a)
	case p.pc <= settleLostTarget:
		st.settleStep()
	case p.pc <= finishUnlink:
		st.finishStep(a)
	case p.pc <= reapEnd:
		st.reapStep()
	case p.pc <= operateRename:
		st.operateStep(a)
	case p.pc == enqueuePut:
		st.enqueuePut(a)
	default:
		st.olderStep(a)
	}
}

func (st *stepper) begin(a *Actor) {
	switch {
	case a.Role == worker:
		st.claim(a)
	case a.Role == reaper:
		st.visit()
	case a.Role == enqueuer:
		st.lookAt(taskQuery(a.Task), enqueuePut, atPending, nil)
	case a.Role == promoter:
		st.promote()
	case a.Role.operation():
		st.operate(a)
	default:
		st.olderBegin(a)
	}
}

func taskQuery(task uint8) query {
	if task == taskF {
		return followInUse
	}
	return taskInUse
}

// rest puts a process back to idle, with one turn less.
func (p *proc) rest() {
	left, own := p.left, p.own
	*p = proc{left: left, own: own}
	if left == 0 {
		p.pc = exited
	}
}

// positions of a look
const (
	atPending = iota
	atHeld
	atClaimed
	atDirs
	atFailed = atDirs + maxDirs
	atDone   = atFailed + 1
	atEnd    = atDone + 1
)

// place is the folder that a look reads at a position.
func (m *model) place(at uint8) uint8 {
	switch {
	case m.on(lookInOrder) || at >= atFailed:
		return at
	case at <= maxDirs:
		return at + atClaimed
	}
	return at - maxDirs - 1 + atPending
}

var lookLabels = [...]string{"look in pending", "look in held", "list claimed",
	"look in D1", "look in D2", "look in D3", "look in D4", "look in D5", "look in failed", "look in done"}

func (st *stepper) lookStep() {
	p := st.me()
	st.lookAt(p.query, p.cont, p.look, nil)
}

// lockedLook reports whether a look is made under the lock.
func (st *stepper) lockedLook(q query, then pc) bool {
	switch then {
	case enqueuePut:
		return st.on(enqueueUnderLock)
	case finishPut:
		return st.on(followUpUnderLock)
	}
	return true
}

func (st *stepper) lookAt(q query, then pc, at uint8, also func(n *State, p *proc)) {
	locked := st.lockedLook(q, then)
	if locked && !st.free() {
		return
	}
	here := st.place(at)
	st.do(lookLabels[here], func(n *State, p *proc) {
		if locked {
			st.take(n)
		}
		if also != nil {
			also(n, p)
		}
		p.pc, p.cont, p.query, p.found = looking, then, q, false
		if here == atClaimed {
			for i := range n.dirs {
				if n.dirs[i].kind != unused && i+1 != int(p.d) {
					p.mask |= bit(uint8(i))
				}
			}
		} else if st.match(n, p, q, here) {
			p.found = true
		}
		if isDir(here) {
			p.mask &^= bit(here - atDirs)
		}
		p.look = at + 1
		for isDir(st.place(p.look)) && p.mask&bit(st.place(p.look)-atDirs) == 0 {
			p.look++
		}
		if p.found || p.look == atEnd {
			p.pc, p.cont, p.look, p.mask, p.query = then, 0, 0, 0, 0
		}
	})
}

func isDir(place uint8) bool { return place >= atDirs && place < atFailed }

func (st *stepper) match(s *State, p *proc, q query, at uint8) bool {
	task := uint8(taskX)
	if q == followInUse || q >= copyOfLife && p.seen.life() >= 6 {
		task = taskF
	}
	hit := func(b body) bool {
		if q < copyOfLife {
			return b != 0
		}
		if b == 0 {
			return false
		}
		if q == laterSuccess {
			return b.life() > p.seen.life() && b.outcome() == succeeded
		}
		if b.life() == p.seen.life() {
			return b.rev() >= p.seen.rev()
		}
		return q == copyOrLater && st.on(laterLifeIsCopy) && b.life() > p.seen.life()
	}
	switch at {
	case atPending:
		return hit(s.pending[task])
	case atHeld:
		return hit(s.held[task])
	case atFailed:
		return hit(s.failed[task])
	case atDone:
		return hit(s.done[task])
	}
	d := &s.dirs[at-atDirs]
	if q == laterSuccess {
		return d.unpublished() && hit(d.out[d.takenR].body())
	}
	return d.task == task && (hit(d.x) || hit(d.taken))
}
