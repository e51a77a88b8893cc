package explore

// Programs of the original format: they rename, overwrite, and take no lock.

func (st *stepper) olderBegin(a *Actor) {
	switch a.Role {
	case olderWorker:
		if st.s.pending[taskX] == 0 {
			return
		}
		st.do("older claim: rename pending/x.json to claimed/<older>/x.json", func(n *State, p *proc) {
			if p.own == 0 {
				p.own = n.newDir(olderDir, st.p, taskX)
			}
			p.d = p.own
			p.left--
			n.dirs[p.d-1].x, n.pending[taskX] = n.pending[taskX], 0
			p.seen, p.pc = n.dirs[p.d-1].x, olderRun
			ran(n, p.seen)
		})
	case olderReaper:
		for i := range st.s.dirs {
			d := &st.s.dirs[i]
			if d.x == 0 || st.s.pending[d.task] != 0 {
				continue
			}
			st.do("older reap: sees D/x.json stale and pending free", func(n *State, p *proc) {
				p.d, p.task, p.pc = uint8(i)+1, d.task, olderMove
				p.left--
			})
		}
	case olderEnqueuer:
		st.do("older enqueue: replace pending/x.json", func(n *State, p *proc) {
			n.overwrite(n.pending[taskX], a.Life)
			n.pending[taskX] = newBody(a.Life)
			n.acked |= bit(a.Life)
			p.left = 0
			p.rest()
		})
	}
}

// overwrite notes that an older program's rename put another life over a body.
func (s *State) overwrite(old body, life uint8) {
	if old != 0 && old.life() != life {
		s.overwritten |= bit(old.life())
	}
}

func (st *stepper) olderStep(a *Actor) {
	switch p := st.me(); p.pc {
	case olderRun:
		for _, o := range a.Outcomes {
			to := targetOf(o)
			st.do("older complete: rename claimed/<older>/x.json to "+targetNames[to], func(n *State, p *proc) {
				d := &n.dirs[p.d-1]
				if d.x == 0 {
					p.left = 0
					p.rest()
					return
				}
				n.overwrite(*n.at(to, taskX), d.x.life())
				if to == toDone {
					n.noteDone(d.x.life())
				}
				*n.at(to, taskX), d.x = d.x, 0
				p.pc = olderList
				if to != toDone {
					p.rest()
				}
			})
		}
	case olderList:
		st.do("older: append the id to completed_tasks", func(n *State, p *proc) {
			n.completed |= bit(taskX)
			p.rest()
		})
	case olderMove:
		st.do("older reap: rename D/x.json to pending/x.json", func(n *State, p *proc) {
			if d := &n.dirs[p.d-1]; d.x != 0 {
				n.overwrite(n.pending[d.task], d.x.life())
				n.pending[d.task], d.x = d.x, 0
			}
			p.rest()
		})
	}
}
