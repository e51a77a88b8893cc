package explore

// settle prepares the record of a claim in hand; the steps follow.
func (st *stepper) settle(n *State, p *proc, o outcome, to target, art, follow bool, ret pc) {
	token := n.dirs[p.d-1].claim
	p.rec = newRecord(p.seen.settled(o, token, art, follow).by(p.r), to)
	p.ret = ret
	p.pc = settleTorn
	if !st.on(recordBeforeDecision) {
		p.pc = settleDecide
	}
}

func (st *stepper) settleStep() {
	p := st.me()
	switch p.pc {
	case settleTorn:
		st.do("begin to write x~out", func(n *State, p *proc) {
			n.dirs[p.d-1].out[p.r] = torn
			p.pc = settleWhole
		})
	case settleWhole:
		st.do("x~out whole and synced", func(n *State, p *proc) {
			n.dirs[p.d-1].out[p.r] = p.rec
			p.pc = settleDecide
			b := p.rec.body()
			switch {
			case !st.on(recordBeforeDecision):
				p.pc = finishDone
			case !st.on(claimThenRecord) && st.Actors[st.p].Role.operation():
				p.pc = operateRename
			case !st.on(publishAfterDecision) && b.follow():
				p.pc = settleEarlyFollow
			case !st.on(publishAfterDecision) && b.art():
				p.pc = settleEarlyArt
			}
		})
	case settleEarlyFollow:
		st.lookAt(followInUse, settleEarlyPut, 0, nil)
	case settleEarlyPut:
		st.do("rename the follow-up into pending", func(n *State, p *proc) {
			putFollow(n, p)
			st.unlock(n)
			p.pc = settleDecide
			if p.rec.body().art() {
				p.pc = settleEarlyArt
			}
		})
	case settleEarlyArt:
		st.do("rename x~artifact to artifacts/x.md", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			n.artifact, d.art = d.claim, 0
			p.pc = settleDecide
		})
	case settleDecide:
		st.decide()
	case settleLostTaken:
		st.do("look for x~taken with the own record's name", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			switch {
			case d.taken != 0 && d.takenR == p.r:
				p.pc = finishDone
			case st.foreign(p):
				// Only its writer may withdraw a record.
				p.pc = p.ret
			default:
				p.pc = settleLostOut
			}
		})
	case settleLostOut:
		st.do("withdraw the own record", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			if d.out[p.r] == 0 {
				p.pc = settleLostTarget
				return
			}
			d.out[p.r] = 0
			if p.r == 0 {
				// Output of a lost claim is kept aside with its record.
				d.art = 0
			}
			p.pc = p.ret
		})
	case settleLostTarget:
		st.lookInTarget(p.ret)
	}
}

// lookInTarget finds out whether a record that is no longer beside its claim was
// published, or kept aside as late by another finisher.
func (st *stepper) lookInTarget(then pc) {
	st.do("look in the target for the own token", func(n *State, p *proc) {
		there := *n.at(p.rec.target(), n.dirs[p.d-1].task)
		mine := p.rec.body()
		p.answer = there.sameSettle(mine) && (!st.on(answerByRecord) || there.writer() == mine.writer())
		own := n.ownRecord&bit16(mine.token()) != 0
		switch {
		case st.Actors[st.p].Role == reaper:
		case p.answer && !own:
			n.fail(wrongAnswer)
		case !p.answer && own && mine.outcome() == succeeded && there.life() == mine.life() && !st.doubled(n):
			n.fail(wrongAnswer)
		}
		p.pc = then
	})
}

// decide is the one step that ends a claim.
func (st *stepper) decide() {
	if st.dir().x == 0 {
		st.do("decide: ENOENT", func(n *State, p *proc) {
			p.pc = settleLostTaken
			switch {
			case !st.on(recordBeforeDecision):
				// There is no record yet that anyone could have decided with.
				p.pc = p.ret
			case !st.on(lookBeforeWithdraw):
				p.pc = settleLostOut
			}
		})
		return
	}
	st.do("decide: rename D/x.json to D/x~taken", func(n *State, p *proc) {
		d := &n.dirs[p.d-1]
		st.noteDecision(n, d, p.rec.body(), p.r)
		d.taken, d.takenR, d.x = d.x, p.r, 0
		p.answer = true
		if !st.on(listedAfterDone) && p.rec.body().outcome() == succeeded {
			n.completed |= bit(d.task)
		}
		p.pc = finishDone
		if !st.on(recordBeforeDecision) {
			p.pc = settleTorn
		}
	})
}

// foreign reports whether the record in hand is another process's: a reaper
// that found it whole decides with it as it is.
func (st *stepper) foreign(p *proc) bool {
	return st.Actors[st.p].Role == reaper && p.r != st.recIndex[st.p]
}
