package explore

func operationOutcome(r role) outcome {
	switch r {
	case holder:
		return onHold
	case canceler:
		return canceled
	}
	return released
}

// operate begins an operation: a claim into claimed/~<nonce>, then a settle.
func (st *stepper) operate(a *Actor) {
	for _, from := range operationSources(a.Role) {
		if *st.s.at(from, a.Task) == 0 {
			continue
		}
		if !st.on(claimThenRecord) {
			st.do("read x.json before the claim", func(n *State, p *proc) {
				p.d = n.newDir(operateDir, st.p, a.Task)
				p.seen, p.task, p.cont = *n.at(from, a.Task), a.Task, pc(from)
				p.left--
				// The claim this record is for comes next.
				n.dirs[p.d-1].claim = n.claims + 1
				o := operationOutcome(a.Role)
				st.settle(n, p, o, targetOf(o), false, false, operateEnd)
			})
			continue
		}
		if from == toFailed && st.on(retryUnderLock) && !st.free() {
			continue
		}
		st.do("claim: rename "+targetNames[from]+"/x.json to ~D/x.json", func(n *State, p *proc) {
			p.d = n.newDir(operateDir, st.p, a.Task)
			p.left--
			n.claimFrom(p.d, from, a.Task, st.CutDoubles)
			p.seen, p.task, p.r = n.dirs[p.d-1].x, a.Task, 0
			p.pc = claimDone
		})
	}
	if a.Role != canceler {
		return
	}
	for i := range st.s.dirs {
		if d := &st.s.dirs[i]; d.x != 0 && (d.kind == workerDir || d.kind == singleDir) && !d.cancel {
			st.do("ask a running claim to cancel: create x~cancel", func(n *State, p *proc) {
				n.dirs[i].cancel = true
				p.left--
				p.rest()
			})
		}
	}
}

func operationSources(r role) []target {
	switch r {
	case holder:
		return []target{toPending}
	case canceler:
		return []target{toPending, toHeld}
	case resumer:
		return []target{toHeld}
	}
	return []target{toFailed}
}

func (st *stepper) operateStep(a *Actor) {
	switch p := st.me(); p.pc {
	case operateRename:
		from := target(p.cont)
		st.do("claim: rename x.json to ~D/x.json", func(n *State, p *proc) {
			if *n.at(from, a.Task) == 0 {
				n.dirs[p.d-1].out[0] = 0
				p.rest()
				return
			}
			n.claimFrom(p.d, from, a.Task, st.CutDoubles)
			p.cont, p.pc = 0, settleDecide
		})
	case operateEnd:
		st.do("answer", func(n *State, p *proc) {
			if p.answer && (a.Role == holder || a.Role == canceler) && n.stands(p.rec) {
				n.stopped |= bit(p.rec.body().life())
			}
			p.rest()
		})
	}
}

// promote moves a due backoff into pending, the body unchanged.
func (st *stepper) promote() {
	if b := st.s.held[taskX]; b != 0 && b.outcome() == retried && st.free() && st.s.pending[taskX] == 0 {
		st.do("promote: rename held/x.json to pending under the lock", func(n *State, p *proc) {
			n.pending[taskX], n.held[taskX] = b, 0
			p.left--
			p.rest()
		})
	}
}

// stands reports whether a published record is still the task's last word: a
// resume may have come before the hold was answered.
func (s *State) stands(rec record) bool {
	if s.at(rec.target(), taskX).sameSettle(rec.body()) {
		return true
	}
	for i := range s.dirs {
		if x := s.dirs[i].x; x != 0 && x.sameSettle(rec.body()) {
			return true
		}
	}
	return false
}
