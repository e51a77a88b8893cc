package explore

// publish renames a decided record into its folder (finish, step 3).
func (st *stepper) publish(a *Actor) {
	p, d := st.me(), st.dir()
	to := p.rec.target()
	locked := (to == toPending || to == toHeld) && st.on(publishUnderLock)
	if locked && !st.free() {
		return
	}
	if a.Role == worker && st.s.faults > 0 {
		st.do("an error: leave x~taken to the next finisher", func(n *State, p *proc) {
			n.faults--
			p.answer = false
			p.pc = p.ret
		})
	}
	switch {
	case !d.out[p.r].whole():
		st.do("publish x~out: ENOENT", func(n *State, p *proc) {
			p.pc = finishUnlink
			if a.Role != reaper && st.on(helpedLooks) {
				p.pc = finishHelped
			}
		})
	case *st.s.at(to, d.task) != 0:
		st.do("publish x~out: the name is taken", func(n *State, p *proc) {
			if locked {
				st.take(n)
			}
			p.pc = finishClash
		})
	default:
		st.do("publish x~out", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			*n.at(to, d.task) = d.out[p.r].body()
			d.out[p.r] = 0
			n.synced(to, d.task)
			st.afterPublish(p)
		})
	}
}

// clashStep settles whose body stays when the target's name is taken: first
// read it, then act on what was read.
func (st *stepper) clashStep() {
	p := st.me()
	to := p.rec.target()
	locked := st.on(clashUnderLock) || to == toPending || to == toHeld
	if locked && !st.free() {
		return
	}
	switch p.pc {
	case finishClash:
		st.do("read what has the name", func(n *State, p *proc) {
			if locked {
				st.take(n)
			}
			p.seen = *n.at(to, n.dirs[p.d-1].task)
			p.pc = finishResolve
			if p.seen == 0 {
				st.unlock(n)
				p.pc = finishPublish
			}
		})
	case finishResolve:
		st.resolve(to)
	case finishSupersede:
		st.do("rename x~out over the name", func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			if d.out[p.r].whole() {
				if old := *n.at(to, d.task); old != p.seen && old != 0 && n.quarantined&bit(old.life()) == 0 {
					n.lose(old.life())
				}
				if to == toDone && p.seen.life() == d.taken.life() && !st.doubled(n) {
					n.fail(doneTwice)
				}
				*n.at(to, d.task) = d.out[p.r].body()
				d.out[p.r] = 0
				n.synced(to, d.task)
			}
			st.unlock(n)
			p.pc = finishUnlink
		})
	}
}

func (st *stepper) resolve(to target) {
	theirs, ours := st.me().seen, st.me().rec.body()
	drop := func(label string, quarantine bool) {
		st.do(label, func(n *State, p *proc) {
			d := &n.dirs[p.d-1]
			if quarantine && d.out[p.r] != 0 {
				n.quarantined |= bit(ours.life())
			}
			d.out[p.r] = 0
			st.unlock(n)
			p.pc = finishUnlink
		})
	}
	switch {
	case theirs.sameSettle(ours):
		drop("published already: unlink x~out", false)
	case theirs.life() == ours.life() && theirs.rev() >= ours.rev():
		drop("a newer version is there: keep x~out aside", false)
	case theirs.life() == ours.life():
		st.do("an older version is there", func(n *State, p *proc) { p.pc = finishSupersede })
	case to == toPending || to == toHeld:
		drop("another life is there: x~out to quarantine", true)
	case theirs.life() > ours.life():
		drop("a later life is there: x~out to quarantine", true)
	case st.on(supersedeByOneRename):
		st.do("an earlier life is there: link it into quarantine", func(n *State, p *proc) {
			n.quarantined |= bit(theirs.life())
			p.pc = finishSupersede
		})
	default:
		st.do("an earlier life is there: rename it to quarantine", func(n *State, p *proc) {
			at := n.at(to, n.dirs[p.d-1].task)
			n.quarantined |= bit(at.life())
			*at = 0
			st.unlock(n)
			p.pc = finishPublish
		})
	}
}
