package explore

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// result is what an exploration found.
type result struct {
	states int
	rests  int // states in which nothing moves by itself, each recovered and checked
	broken violation
	trace  []string // shortest path to the violation, then the state it ends in
}

// fingerprint stands for a state in the set of those seen. With 128 bits the
// chance that two of three million states share one is below 1e-25.
type fingerprint [2]uint64

// search visits every state a scenario can reach, nearest first.
func (m *model) search() result {
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	print := func(s *State) fingerprint {
		return fingerprint{maphash.Comparable(seeds[0], *s), maphash.Comparable(seeds[1], *s)}
	}
	type origin struct {
		parent int32
		ord    uint8
	}
	first := m.start()
	seen := map[fingerprint]struct{}{print(&first): {}}
	origins := []origin{{parent: -1}}
	level := []State{first}
	base := int32(0)
	var res result
	var buf []successor

	path := func(i int32) []origin {
		var steps []origin
		for ; i > 0; i = origins[i].parent {
			steps = append(steps, origins[i])
		}
		return steps
	}
	if v := m.check(&first); v != none {
		return result{states: 1, broken: v, trace: m.describe(&first)}
	}
	for len(level) > 0 {
		var next []State
		nextBase := int32(len(origins))
		for i := range level {
			at := base + int32(i)
			var rests bool
			buf, rests = m.successors(&level[i], buf[:0])
			if rests {
				res.rests++
				if v, tail := m.recover(&level[i]); v != none {
					res.states, res.broken = len(origins), v
					var ords []uint8
					for _, o := range path(at) {
						ords = append(ords, o.ord)
					}
					res.trace = append(m.replay(ords), tail...)
					return res
				}
			}
			for k := range buf {
				n := &buf[k].state
				f := print(n)
				if _, ok := seen[f]; ok {
					continue
				}
				seen[f] = struct{}{}
				origins = append(origins, origin{at, uint8(k)})
				next = append(next, *n)
				if v := m.check(n); v != none {
					res.states, res.broken = len(origins), v
					var ords []uint8
					for _, o := range path(int32(len(origins) - 1)) {
						ords = append(ords, o.ord)
					}
					res.trace = append(m.replay(ords), m.describe(n)...)
					return res
				}
			}
		}
		level, base = next, nextBase
	}
	res.states = len(origins)
	return res
}

// successors lists the states one step on, and whether no process can move
// without an accident.
func (m *model) successors(s *State, out []successor) ([]successor, bool) {
	st := stepper{model: m, s: s, out: out}
	for p := 0; p < recoverer; p++ {
		st.p = p
		st.next()
	}
	rests := len(st.out) == 0
	if s.crashes > 0 {
		for p := 0; p < recoverer; p++ {
			if pc := s.procs[p].pc; pc != idle && pc != exited && pc != dead {
				st.p = p
				st.do("dies", func(n *State, q *proc) {
					n.crashes--
					q.pc = dead
					st.unlock(n)
				})
			}
		}
	}
	if s.reboots > 0 {
		st.p = recoverer
		st.reboot(nil)
		if m.CutLoses {
			for i := range s.dirs {
				st.cutLoses(i)
			}
		}
		for from, b := range s.shadow {
			if at := target(from); b != 0 && *s.at(at, taskX) == 0 {
				st.reboot(func(n *State) { *n.at(at, taskX) = b })
			}
		}
	}
	return st.out, rests
}

func (st *stepper) reboot(also func(n *State)) {
	st.do("the machine restarts", func(n *State, _ *proc) {
		n.reboots--
		n.lock = 0
		n.shadow = [4]body{}
		for i := range n.dirs {
			n.dirs[i].oldBoot = n.dirs[i].kind != unused
		}
		for i := range n.procs[:recoverer] {
			if q := &n.procs[i]; !st.Actors[i].Late && q.pc != exited {
				q.pc = dead
			}
		}
		if also != nil {
			also(n)
		}
	})
}

// cutLoses makes the restart a power cut that takes names no fsync covered.
func (st *stepper) cutLoses(i int) {
	d := &st.s.dirs[i]
	if d.unpublished() {
		st.reboot(func(n *State) {
			d := &n.dirs[i]
			undoSuccess(n, d.out[d.takenR].body())
			d.out[d.takenR] = 0
		})
	}
	if d.art != 0 {
		st.reboot(func(n *State) { n.dirs[i].art = 0 })
	}
}

// recover runs a last reaper and a last fold on a state at rest.
func (m *model) recover(s *State) (violation, []string) {
	n := *s
	n.procs[recoverer] = proc{left: 200}
	var steps []string
	for range 1000 {
		st := stepper{model: m, s: &n, p: recoverer}
		st.next()
		if len(st.out) == 0 {
			for task := range n.done {
				if n.done[task] != 0 {
					n.completed |= bit(uint8(task))
				}
			}
			v := m.checkRest(&n)
			return v, append(steps, m.describe(&n)...)
		}
		n = st.out[0].state
		steps = append(steps, "recovery: "+st.out[0].label)
		if v := m.check(&n); v != none {
			return v, append(steps, m.describe(&n)...)
		}
	}
	return noRecoveryEnd, steps
}

// replay words a path, given as the choices made in each state, last first.
func (m *model) replay(ords []uint8) []string {
	s := m.start()
	var steps []string
	for i := len(ords) - 1; i >= 0; i-- {
		out, _ := m.successors(&s, nil)
		c := out[ords[i]]
		who := m.who(int(c.proc))
		if c.proc == recoverer {
			who = "power"
		}
		steps = append(steps, who+": "+c.label)
		s = c.state
	}
	return steps
}

func (r result) String() string {
	if r.broken == none {
		return fmt.Sprintf("%d states, %d at rest, no violation", r.states, r.rests)
	}
	return fmt.Sprintf("%s, found after %d states:\n\t%s", r.broken, r.states, strings.Join(r.trace, "\n\t"))
}
