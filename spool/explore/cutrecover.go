package explore

import "strings"

// directories lists the folders under claimed/ that hold anything.
func (p program) directories() []string {
	var out []string
	for _, n := range p.fs.list("claimed/") {
		if dir := folder(n); len(out) == 0 || out[len(out)-1] != dir {
			out = append(out, dir)
		}
	}
	return out
}

// recoverAll is what the first worker of the next boot does: it reaps every
// directory of the boot that ended, then works until pending is empty.
func (p program) recoverAll() {
	for _, dir := range p.directories() {
		p.reap(dir)
	}
	for _, n := range p.fs.list("pending") {
		if p.fs.task(n) == nil {
			p.aside(n)
		}
	}
	if p.beforeWork != nil {
		p.beforeWork()
	}
	p.work()
}

func (p program) reap(dir string) {
	if taken := p.fs.task(dir + "/x~taken"); taken != nil {
		if p.sameBoot {
			p.readAndFinish(taken.id+".json", dir)
		} else {
			p.finishOtherBoot(taken.id+".json", dir, *taken)
		}
	}
	for _, file := range []string{fileX, fileF} {
		d := p.fs.task(dir + "/" + file)
		if d == nil {
			continue
		}
		if p.fs.task(dir+"/x~out") != nil {
			if p.on(reapSyncsRecord) {
				p.fs.sync(dir+"/x~out", "")
			}
			p.fs.rename(dir+"/"+file, dir+"/x~taken")
			p.readAndFinish(file, dir)
			continue
		}
		if p.inUse(file, d.rev, dir) {
			p.fs.unlink(dir + "/" + file)
			continue
		}
		p.dropTorn(dir)
		p.settleDead(file, dir, *d)
	}
	p.lone(dir)
}

func (p program) settleDead(file, dir string, d doc) {
	p.fs.create(dir+"/x~out", p.deadRecord(dir, d))
	p.fs.sync(dir+"/x~out", syncRecord)
	p.fs.rename(dir+"/"+file, dir+"/x~taken")
	p.readAndFinish(file, dir)
}

// deadRecord is how a claim without a whole record ends: a death, or for an
// operation a way back to where it took the task from.
func (p program) deadRecord(dir string, d doc) doc {
	next := doc{id: d.id, rev: d.rev + 1, attempt: d.attempt + 1, token: dir, result: retried, to: toPending}
	if strings.HasPrefix(dir, "claimed/~") {
		next.attempt = d.attempt
		if p.on(operationGoesBack) {
			switch d.result {
			case onHold:
				next.result, next.to = onHold, toHeld
			case failedForGood, canceled:
				next.result, next.to = d.result, toFailed
			}
		}
	}
	return next
}

// finishOtherBoot finishes a decided claim of the boot that ended; there a
// missing record does not mean that it was published.
func (p program) finishOtherBoot(file, dir string, taken doc) {
	if p.fs.task(dir+"/x~out") == nil {
		if p.inUse(file, taken.rev, dir) || !p.on(otherBootLooks) {
			p.fs.unlink(dir + "/x~taken")
			return
		}
		p.dropTorn(dir)
		next := p.deadRecord(dir, taken)
		p.fs.create(dir+"/.retry", next)
		p.fs.sync(dir+"/.retry", syncRecord)
		p.fs.rename(dir+"/.retry", dir+"/x~out")
	}
	p.readAndFinish(file, dir)
}

func (p program) dropTorn(dir string) {
	if i := p.fs.read(dir + "/x~out"); i != nil && !i.whole {
		p.fs.unlink(dir + "/x~out")
	}
}

// lone deals with what has no claim beside it: a whole record whose life is
// nowhere else is published, all else is kept aside.
func (p program) lone(dir string) {
	if d := p.fs.task(dir + "/x~out"); d != nil && !p.inUse(d.id+".json", 0, dir) {
		p.publish(d.id+".json", dir, *d)
	}
	for _, n := range p.fs.list(dir) {
		p.aside(n)
	}
}
