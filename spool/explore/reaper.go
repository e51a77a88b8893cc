package explore

// gone reports whether a reaper may take what is in d from its owner.
func (st *stepper) gone(d *dir) bool {
	return d.oldBoot || d.kind == singleDir || d.kind == olderDir || !st.s.alive(d.owner)
}

// visit lists one directory and begins what is to be done there. Which
// directory comes when is open: a reaper may be slow, or see it again.
func (st *stepper) visit() {
	for i := range st.s.dirs {
		d := &st.s.dirs[i]
		if d.kind == unused {
			continue
		}
		at := uint8(i) + 1
		begin := func(label string, then pc, also func(n *State, p *proc)) {
			st.do(label, func(n *State, p *proc) {
				p.d, p.task, p.ret, p.pc = at, d.task, reapEnd, then
				p.left--
				if also != nil {
					also(n, p)
				}
			})
		}
		gone := st.gone(d)
		switch {
		case d.taken != 0:
			if gone || st.on(anyoneMayFinish) {
				begin("find x~taken", finishRead, func(_ *State, p *proc) { p.r = d.takenR })
			}
		case d.x != 0 && gone:
			st.reapClaim(d, begin)
		case d.x == 0 && (d.art != 0 || d.out != [maxRecs]record{}) && gone:
			if st.SplitListing && st.on(takenBeforeRecordAside) {
				// The listing saw no x.json, and may have missed x~taken.
				begin("find x~out or x~artifact without x.json", reapAsideLook, nil)
			} else {
				begin("find x~out or x~artifact alone", reapAside, nil)
			}
		}
		if st.SplitListing && !st.on(takenBeforeRecordAside) && gone && d.taken == 0 && d.x != 0 && d.out != [maxRecs]record{} {
			begin("list x~out, and no x~taken", reapAsideLook, nil)
		}
	}
}

func (st *stepper) reapClaim(d *dir, begin func(string, pc, func(*State, *proc))) {
	if d.kind == olderDir {
		if !st.free() {
			return
		}
		begin("rename claimed/<older>/x.json to an own D, under the lock", looking, func(n *State, p *proc) {
			from := p.d
			p.d = n.newDir(workerDir, st.p, d.task)
			n.claimInto(p.d, &n.dirs[from-1].x)
			p.seen, p.r = n.dirs[p.d-1].x, st.recIndex[st.p]
			p.query, p.cont = copyOfLife, reapLooked
		})
		return
	}
	if st.on(reapUsesWholeRecord) {
		if r, ok := wholeRecord(d); ok {
			begin("find x.json with a whole x~out", settleDecide, func(_ *State, p *proc) {
				p.r, p.rec, p.seen = r, d.out[r], d.x
			})
			return
		}
	}
	begin("find x.json, owner gone", looking, func(_ *State, p *proc) {
		p.seen, p.r = d.x, st.recIndex[st.p]
		p.query, p.cont = copyOfLife, reapLooked
	})
}

// wholeRecord picks the record to decide a dead claim with, a success first.
func wholeRecord(d *dir) (uint8, bool) {
	best, ok := uint8(0), false
	for r, rec := range d.out {
		if rec.whole() && (!ok || rec.body().outcome() == succeeded && d.out[best].body().outcome() != succeeded) {
			best, ok = uint8(r), true
		}
	}
	return best, ok
}

func (st *stepper) reapStep() {
	p := st.me()
	switch p.pc {
	case reapLooked:
		st.reapLooked()
	case reapAsideLook:
		st.do("look again in D", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			p.pc = reapAside
			// With the rule the listing saw no x.json, so only x~taken is asked
			// for; without it the listing saw no x~taken and x.json is asked for.
			if st.on(takenBeforeRecordAside) && d.taken != 0 || !st.on(takenBeforeRecordAside) && d.x != 0 {
				p.pc = reapEnd
			}
		})
	case reapAside:
		st.do("keep lone x~out and x~artifact aside", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			d.out, d.art = [maxRecs]record{}, 0
			p.pc = reapEnd
		})
	case reapEnd:
		st.do("end of visit", func(n *State, p *proc) { p.rest() })
	}
}

// reapLooked settles a dead claim, unless the look found a copy of it.
func (st *stepper) reapLooked() {
	p := st.me()
	if p.found {
		st.do("a copy: unlink D/x.json under the lock", func(n *State, p *proc) {
			n.dirs[p.d-1].x = 0
			st.unlock(n)
			p.pc = reapEnd
		})
		return
	}
	st.do("no copy: settle the dead claim", func(n *State, p *proc) {
		st.unlock(n)
		d := &n.dirs[p.d-1]
		o, to := retried, toPending
		switch {
		case d.cancel:
			o, to = canceled, toFailed
		case d.kind == operateDir:
			o = released
			if st.on(operationGoesBack) {
				o, to = whereItWas(p.seen)
			}
		case p.seen.attempt()+1 >= st.MaxAttempts:
			o, to = failedForGood, toFailed
		}
		p.r = st.recIndex[st.p]
		st.settle(n, p, o, to, false, false, reapEnd)
	})
}

// whereItWas tells from the body alone which folder an operation took it from:
// the record that put it there says why.
func whereItWas(b body) (outcome, target) {
	switch b.outcome() {
	case onHold:
		return onHold, toHeld
	case failedForGood, canceled:
		return canceled, toFailed
	}
	return released, toPending
}
