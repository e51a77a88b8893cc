package explore

// late reports whether a body in done or failed makes the record of another
// claim late (finish, step 0).
func (st *stepper) late(b, ours body) bool {
	switch {
	case b == 0 || b.sameSettle(ours):
		return false
	case !st.on(doneWinsByLife):
		return true
	case b.life() != ours.life():
		return false
	}
	return !st.on(lateByRev) || b.rev() >= ours.rev()
}

func (st *stepper) finishStep(a *Actor) {
	p := st.me()
	d := st.dir()
	switch p.pc {
	case finishRead:
		st.readDecided()
	case finishMissing:
		st.replaceMissing()
	case finishDone, finishFailed:
		where, label := toDone, "look in done for another settle of this life"
		if p.pc == finishFailed {
			where, label = toFailed, "look in failed for another settle of this life"
		}
		st.do(label, func(n *State, p *proc) {
			there, ours := *n.at(where, d.task), p.rec.body()
			if st.late(there, ours) {
				if there.life() == ours.life() && there.rev() < ours.rev() {
					n.fail(higherRevDropped)
				}
				keepAside(n, p)
				return
			}
			if where == toDone {
				p.pc = finishFailed
				return
			}
			st.afterLate(p)
		})
	case finishFollow:
		st.lookAt(followInUse, finishPut, 0, nil)
	case finishPut:
		if !st.free() {
			return
		}
		label := "rename the follow-up into pending"
		if p.found {
			label = "skip the follow-up, its id is in use"
		}
		st.do(label, func(n *State, p *proc) {
			putFollow(n, p)
			st.unlock(n)
			st.afterFollow(p)
		})
	case finishArt, finishArtTaken, finishArtThere, finishArtLost, finishArtGone:
		st.artifactStep()
	case finishHelped:
		st.lookInTarget(finishUnlink)
	case finishPublish:
		st.publish(a)
	case finishClash, finishResolve, finishSupersede:
		st.clashStep()
	case finishUnlink:
		st.do("unlink x~taken", func(n *State, p *proc) {
			unlinkTaken(n, p)
		})
	}
}

func unlinkTaken(n *State, p *proc) {
	if d := &n.dirs[p.d-1]; d.takenR == p.r {
		d.taken, d.takenR = 0, 0
	}
	p.pc = p.ret
}

// keepAside moves a late record and its output out of the way.
func keepAside(n *State, p *proc) {
	d := &n.dirs[p.d-1]
	d.out[p.r], d.art = 0, 0
	p.answer = false
	p.pc = finishUnlink
}

func (st *stepper) afterLate(p *proc) {
	if !st.on(recordPublishedLast) {
		p.pc = finishPublish
		return
	}
	st.publishOutput(p)
}

// publishOutput goes on with the follow-up, then the artifact, then the record.
func (st *stepper) publishOutput(p *proc) {
	if b := p.rec.body(); b.outcome() == succeeded && b.follow() {
		p.pc = finishFollow
	} else {
		st.afterFollow(p)
	}
}

func (st *stepper) afterFollow(p *proc) {
	p.found = false
	p.pc = st.afterArtifact()
	if b := p.rec.body(); b.outcome() == succeeded && b.art() {
		p.pc = finishArt
	}
}

func (st *stepper) afterArtifact() pc {
	if !st.on(recordPublishedLast) {
		return finishUnlink
	}
	return finishPublish
}

func (st *stepper) afterPublish(p *proc) {
	p.pc = finishUnlink
	if !st.on(recordPublishedLast) {
		st.publishOutput(p)
	}
}

func putFollow(n *State, p *proc) {
	if !p.found && n.pending[taskF] == 0 {
		n.pending[taskF] = newBody(followLife)
		n.acked |= bit(followLife)
	}
	p.found = false
}

// readDecided begins a finish of a claim that someone decided.
func (st *stepper) readDecided() {
	d, p := st.dir(), st.me()
	if d.taken == 0 || d.takenR != p.r {
		st.do("x~taken is gone", func(n *State, p *proc) { p.pc = p.ret })
		return
	}
	if rec := d.out[p.r]; rec.whole() {
		st.do("read x~out", func(n *State, p *proc) {
			p.rec, p.seen, p.pc = rec, d.taken, finishDone
		})
		return
	}
	look := d.oldBoot
	if !st.on(missingMeansPublished) {
		look = true
	}
	if d.oldBoot && !st.on(otherBootLooks) {
		look = false
	}
	if !look {
		st.do("x~out is missing: it was published", func(n *State, p *proc) { p.pc = finishUnlink })
		return
	}
	// Nothing of the record is left in memory, so the look compares with the claimed body.
	st.lookAt(copyOrLater, finishMissing, 0, func(n *State, p *proc) { p.seen = d.taken })
}

// replaceMissing writes a retry for a decided claim whose record a power cut
// took. It holds the lock from the look until the record is there: else two
// finishers could both find nothing, and the later one would publish a second
// time what the first one's retry had become meanwhile.
func (st *stepper) replaceMissing() {
	st.do("after the look for a copy", func(n *State, p *proc) {
		d := &n.dirs[p.d-1]
		st.unlock(n)
		switch {
		case !st.on(missingUnderLock) && !p.found && p.cont == 0:
			// Release the lock here, and write the record in the next step.
			p.cont = finishMissing
			return
		case !st.on(missingUnderLock) && !p.found:
			p.cont = 0
			d.out[p.r] = st.retryRecord(d.kind, p.seen, d.claim)
			p.rec, p.pc = d.out[p.r], finishDone
		case d.taken == 0 || d.takenR != p.r:
			p.pc = p.ret
		case p.found:
			unlinkTaken(n, p)
		case d.out[p.r] != 0:
			p.pc = finishRead
		default:
			d.out[p.r] = st.retryRecord(d.kind, d.taken, d.claim)
			p.rec, p.pc = d.out[p.r], finishDone
		}
		p.found = false
	})
}

func (st *stepper) retryRecord(kind dirKind, b body, token uint8) record {
	if kind == operateDir && st.on(operationGoesBack) {
		o, to := whereItWas(b)
		return newRecord(b.settled(o, token, false, false), to)
	}
	if b.attempt()+1 >= st.MaxAttempts {
		return newRecord(b.settled(failedForGood, token, false, false), toFailed)
	}
	return newRecord(b.settled(retried, token, false, false), toPending)
}

func (st *stepper) artifactStep() {
	p, d := st.me(), st.dir()
	switch p.pc {
	case finishArt:
		if d.art == 0 {
			st.do("rename x~artifact: ENOENT", func(n *State, p *proc) { p.pc = finishArtThere })
			return
		}
		if st.s.artifact != 0 && st.on(artifactKeepsLaterLife) {
			// Renamed without replacing, and there is one.
			st.lookAt(laterSuccess, finishArtTaken, 0, func(n *State, p *proc) { p.seen = p.rec.body() })
			return
		}
		st.do("rename x~artifact to artifacts/x.md", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			n.artifact, d.art = d.art, 0
			p.pc = st.afterArtifact()
		})
	case finishArtTaken:
		label := "replace artifacts/x.md under the lock"
		if p.found {
			label = "a later life succeeded: keep x~artifact aside"
		}
		st.do(label, func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			switch {
			case d.art == 0:
				p.pc = finishArtThere
			case p.found:
				d.art, p.pc = 0, st.afterArtifact()
			default:
				n.artifact, d.art, p.pc = d.art, 0, st.afterArtifact()
			}
			p.found = false
			st.unlock(n)
		})
	case finishArtThere:
		st.do("compare artifacts/x.md with the recorded digest", func(n *State, p *proc) {
			p.pc = finishArtLost
			if n.artifact == p.rec.body().token() {
				p.pc = st.afterArtifact()
			}
		})
	case finishArtLost:
		if !st.on(lostArtifactUnderLock) {
			st.do("replace x~out with a retry", func(n *State, p *proc) { st.loseArtifact(n, p) })
			return
		}
		if st.on(artifactKeepsLaterLife) {
			// A later life may have replaced it, which is no loss.
			st.lookAt(laterSuccess, finishArtGone, 0, func(n *State, p *proc) { p.seen = p.rec.body() })
			return
		}
		fallthrough
	case finishArtGone:
		if !st.free() {
			return
		}
		st.do("replace x~out with a retry if it is there, under the lock", func(n *State, p *proc) {
			st.unlock(n)
			later := p.found
			p.found = false
			switch rec := n.dirs[p.d-1].out[p.r]; {
			case later:
				p.pc = st.afterArtifact()
			case rec == 0:
				p.pc = finishPublish
			case rec.body().outcome() != succeeded:
				p.answer = false
				p.rec, p.pc = rec, finishPublish
			default:
				st.loseArtifact(n, p)
			}
		})
	}
}

func (st *stepper) loseArtifact(n *State, p *proc) {
	d := &n.dirs[p.d-1]
	b := d.taken
	if b == 0 {
		b = p.seen
	}
	undoSuccess(n, p.rec.body())
	p.answer = false
	d.out[p.r] = newRecord(b.settled(retried, p.rec.body().token(), false, false), toPending)
	p.rec, p.pc = d.out[p.r], finishPublish
}
