package explore

// enqueuePut ends a native enqueue after its look for the id.
func (st *stepper) enqueuePut(a *Actor) {
	label := "rename the temp into pending without replacing, answer"
	if st.me().found {
		label = "refuse: the id is in use"
	}
	st.do(label, func(n *State, p *proc) {
		if !p.found && n.pending[a.Task] == 0 {
			n.pending[a.Task] = newBody(a.Life)
			n.acked |= bit(a.Life)
		}
		st.unlock(n)
		p.left = 0
		p.rest()
	})
}
