package spool

// parts is the state of each concern of a run, kept beside its code.
type parts struct {
	enq  enqueuePart
	pick pickPart
	chk  checkpointPart
	view viewPart
}

func (r *Run) initParts() {
	r.initEnqueue()
	r.initPick()
	r.initCheckpoint()
	r.initView()
}
