package explore

// claim takes a task from pending into a directory that no claim of it used.
func (st *stepper) claim(a *Actor) {
	for task := range st.s.pending {
		if st.s.pending[task] == 0 {
			continue
		}
		task := uint8(task)
		label := "claim: rename pending/x.json to D/x.json"
		if task == taskF {
			label = "claim: rename pending/f.json to D/f.json"
		}
		st.do(label, func(n *State, p *proc) {
			kind := workerDir
			if a.Single {
				kind = singleDir
			}
			reuse := !st.on(directoryUsedOnce) && p.own != 0 && n.dirs[p.own-1].x == 0 && n.dirs[p.own-1].taken == 0
			if reuse {
				p.d = p.own
			} else {
				p.d = n.newDir(kind, st.p, task)
			}
			if !st.on(directoryUsedOnce) {
				p.own = p.d
			}
			p.left--
			n.claimFrom(p.d, toPending, task, st.CutDoubles)
			p.seen, p.task, p.r = n.dirs[p.d-1].x, task, 0
			p.pc = claimDone
		})
	}
}

// leftover reports whether a body in done or failed makes a claim of seen a
// copy (claim, step 3).
func (st *stepper) leftover(b, seen body) bool {
	if !st.on(doneWinsByLife) {
		return b != 0
	}
	return b != 0 && b.life() == seen.life() && b.rev() >= seen.rev()
}

func (st *stepper) workStep(a *Actor) {
	p := st.me()
	switch p.pc {
	case claimDone, claimFailed, claimHeld:
		where, label, then := toDone, "look in done for this life", claimFailed
		switch p.pc {
		case claimFailed:
			where, label, then = toFailed, "look in failed for this life", handle
			if st.on(heldIsCopy) {
				then = claimHeld
			}
		case claimHeld:
			where, label, then = toHeld, "look in held for this life", handle
		}
		st.do(label, func(n *State, p *proc) {
			p.pc = then
			if st.leftover(*n.at(where, p.task), p.seen) {
				p.pc = claimDrop
			} else if then == handle && a.Role == worker && n.dirs[p.d-1].x != 0 {
				ran(n, p.seen)
			}
		})
	case claimDrop:
		if st.free() {
			st.do("unlink the leftover, under the lock", func(n *State, p *proc) {
				n.dirs[p.d-1].x = 0
				p.rest()
			})
		}
	case handle:
		st.handle(a)
	case handled:
		st.do("answer", func(n *State, p *proc) {
			if p.answer && p.rec.body().outcome() == succeeded {
				n.answered |= bit(p.rec.body().life())
				p.pc = fold
				return
			}
			p.rest()
		})
	case fold:
		st.do("fold: add the ids in done to completed_tasks", func(n *State, p *proc) {
			for task := range n.done {
				if n.done[task] != 0 {
					n.completed |= bit(uint8(task))
				}
			}
			p.rest()
		})
	}
}

// handle is the claim's work: a handler's run for a worker, the change that a
// person asked for in an operation.
func (st *stepper) handle(a *Actor) {
	if a.Role.operation() {
		st.do("begin to settle", func(n *State, p *proc) {
			o := operationOutcome(a.Role)
			st.settle(n, p, o, targetOf(o), false, false, operateEnd)
		})
		return
	}
	outcomes := a.Outcomes
	if st.dir().cancel {
		outcomes = []outcome{canceled}
	}
	for _, o := range outcomes {
		art, follow := a.Art && o == succeeded && st.me().task == taskX, a.Follow && o == succeeded && st.me().task == taskX
		label := "handler ends, " + outcomeNames[o]
		if art {
			label = "handler stages x~artifact and ends, " + outcomeNames[o]
		}
		st.do(label, func(n *State, p *proc) {
			to := targetOf(o)
			if o == retried && p.seen.attempt()+1 >= st.MaxAttempts {
				o, to = failedForGood, toFailed
			} else if o == retried && a.Backoff {
				to = toHeld
			}
			if art {
				n.dirs[p.d-1].art = n.dirs[p.d-1].claim
			}
			st.settle(n, p, o, to, art, follow, handled)
		})
	}
}

// ran notes that a worker is about to run what it claimed.
func ran(n *State, b body) {
	if n.stopped&bit(b.life()) != 0 {
		n.fail(ranStopped)
	}
}
