package explore

import "strconv"

// The programs of the cut model: one process, step by step as the protocol
// has it. Names carry no nonce where one process can meet no other.

const (
	fileX, fileF   = "x.json", "f.json"
	artifactX      = "artifacts/x.md"
	syncTemp       = "temp"
	syncPending    = "pending"
	syncRecord     = "record"
	syncTarget     = "target"
	syncArtifact   = "artifact"
	syncArtifacts  = "artifacts"
	syncFollow     = "follow-up"
	syncFollowName = "follow-up pending"
)

// eightFsyncs are the ones the protocol calls necessary.
var eightFsyncs = []string{syncTemp, syncPending, syncRecord, syncTarget,
	syncArtifact, syncArtifacts, syncFollow, syncFollowName}

// program runs on a cutFS under the rules of a model.
type program struct {
	*model
	fs   *cutFS
	boot int

	retries    bool                   // its handler's first run of x asks for another, and none leaves output
	sameBoot   bool                   // the directories it reaps are of its own boot
	beforeWork func()                 // called between recovery and the work that follows
	helper     func(file, dir string) // another process that steps in once a claim is decided
}

// aside takes a file out of the protocol's folders: to quarantine, or beside the
// artifacts. The model looks no further at it.
func (p program) aside(n string) { p.fs.unlink(n) }

// enqueue publishes x and answers.
func (p program) enqueue() {
	d := doc{id: "x"}
	p.fs.create("pending/.x", d)
	p.fs.sync("pending/.x", syncTemp)
	p.fs.rename("pending/.x", "pending/"+fileX)
	p.fs.syncFolder("pending", syncPending)
	p.fs.answer(d)
}

// directory is the name of this boot's claim directory for a task, numbered so
// that no pair (D, x) comes twice.
func (p program) directory(n int) string {
	return "claimed/w~" + strconv.Itoa(p.boot) + "." + strconv.Itoa(n)
}

// work claims what is in pending, one after the other, and settles each as done.
func (p program) work() {
	for n := 0; ; n++ {
		names := p.fs.list("pending")
		var name string
		for _, at := range names {
			if at == "pending/"+fileX || at == "pending/"+fileF {
				name = at
				break
			}
		}
		if name == "" {
			return
		}
		p.claim(name[len("pending/"):], p.directory(n))
	}
}

func (p program) claim(file, dir string) {
	p.fs.rename("pending/"+file, dir+"/"+file)
	d := p.fs.task(dir + "/" + file)
	if d == nil {
		p.aside(dir + "/" + file)
		return
	}
	looks := []string{"done/", "failed/"}
	if p.on(heldIsCopy) {
		looks = append(looks, "held/")
	}
	for _, at := range looks {
		if c := p.fs.task(at + file); c != nil && c.rev >= d.rev {
			p.fs.unlink(dir + "/" + file)
			return
		}
	}
	p.fs.ran(d.id)
	next := doc{id: d.id, rev: d.rev + 1, attempt: d.attempt + 1, token: dir, result: succeeded, to: toDone}
	switch {
	case p.retries && d.attempt == 0:
		next.result, next.to = retried, toPending
	case d.id == "x" && !p.retries:
		next.output = true
		p.fs.create(dir+"/x~artifact", doc{token: dir})
		p.fs.sync(dir+"/x~artifact", syncArtifact)
	}
	p.settle(file, dir, next)
}

func (p program) settle(file, dir string, next doc) {
	p.fs.create(dir+"/x~out", next)
	p.fs.sync(dir+"/x~out", syncRecord)
	p.fs.rename(dir+"/"+file, dir+"/x~taken")
	if p.helper != nil {
		p.helper(file, dir)
	}
	p.finish(file, dir, next)
	p.answerIfPublished(file, next)
}

func (p program) answerIfPublished(file string, next doc) {
	at := p.fs.task(targetNames[next.to] + "/" + file)
	if at != nil && at.token == next.token && next.result != retried {
		p.fs.answer(next)
	}
}

// readAndFinish finishes a claim that another process decided in this boot.
func (p program) readAndFinish(file, dir string) {
	if out := p.fs.task(dir + "/x~out"); out != nil {
		p.finish(file, dir, *out)
		return
	}
	// Published, though perhaps not yet synced, and its target went with it.
	if p.on(helpedSyncs) {
		for _, to := range targetNames {
			p.fs.syncFolder(to, "")
		}
	}
	p.fs.unlink(dir + "/x~taken")
}

// finish is safe to repeat from any of its steps, by any process.
func (p program) finish(file, dir string, rec doc) {
	for _, at := range []string{"done/", "failed/"} {
		c := p.fs.task(at + file)
		if c != nil && c.token != rec.token && (c.rev >= rec.rev || !p.on(lateByRev)) {
			p.aside(dir + "/x~out")
			if p.fs.read(dir+"/x~artifact") != nil {
				p.aside(dir + "/x~artifact")
			}
			p.fs.unlink(dir + "/x~taken")
			return
		}
	}
	if rec.output {
		p.followUp()
		if !p.artifact(dir, rec) {
			// Lost with the power: nothing else can bring it back.
			p.fs.create(dir+"/.retry", p.retry(rec, dir))
			p.fs.sync(dir+"/.retry", "")
			p.fs.rename(dir+"/.retry", dir+"/x~out")
			rec = p.fs.read(dir + "/x~out").doc
		}
	}
	p.publish(file, dir, rec)
	p.fs.unlink(dir + "/x~taken")
}

func (p program) retry(of doc, dir string) doc {
	return doc{id: of.id, rev: of.rev, attempt: of.attempt, token: dir, result: retried, to: toPending}
}

// followUp publishes f unless its id is in use.
func (p program) followUp() {
	if p.inUse(fileF, -1, "") {
		if p.on(helpedSyncs) {
			p.fs.syncFolder("pending", syncFollowName)
		}
		return
	}
	p.fs.create("pending/.f", doc{id: "f"})
	p.fs.sync("pending/.f", syncFollow)
	p.fs.rename("pending/.f", "pending/"+fileF)
	p.fs.syncFolder("pending", syncFollowName)
}

func (p program) artifact(dir string, rec doc) bool {
	staged, there := p.fs.read(dir+"/x~artifact"), p.fs.read(artifactX)
	switch {
	case staged != nil && staged == there:
		p.fs.unlink(dir + "/x~artifact")
	case staged != nil:
		p.fs.rename(dir+"/x~artifact", artifactX)
	case there == nil || !there.whole || there.doc.token != rec.token:
		return false
	case !p.on(helpedSyncs):
		return true
	}
	p.fs.syncFolder("artifacts", syncArtifacts)
	return true
}

func (p program) publish(file, dir string, rec doc) {
	folder := targetNames[rec.to]
	to := folder + "/" + file
	there := p.fs.read(to)
	switch {
	case p.fs.read(dir+"/x~out") == nil:
		if p.on(helpedSyncs) {
			p.fs.syncFolder(folder, syncTarget)
		}
		return
	case there == nil || !there.whole:
		p.fs.rename(dir+"/x~out", to)
	case there.doc.token == rec.token && there.doc.rev == rec.rev:
		p.fs.syncFolder(folder, syncTarget)
		p.fs.unlink(dir + "/x~out")
		return
	case there.doc.rev < rec.rev:
		p.fs.rename(dir+"/x~out", to)
	default:
		p.aside(dir + "/x~out")
		return
	}
	p.fs.syncFolder(folder, syncTarget)
}

// inUse looks for a task everywhere but in one directory, with at least a rev.
func (p program) inUse(file string, rev int, but string) bool {
	has := func(n string) bool {
		d := p.fs.task(n)
		return d != nil && d.id+".json" == file && d.rev >= rev
	}
	for _, at := range []string{"pending/", "held/"} {
		if has(at + file) {
			return true
		}
	}
	for _, dir := range p.directories() {
		if dir != but && (has(dir+"/"+file) || has(dir+"/x~taken")) {
			return true
		}
	}
	return has("failed/"+file) || has("done/"+file)
}

// operate claims x out of a folder and settles it into another.
func (p program) operate(from target, o outcome) {
	dir := "claimed/~" + strconv.Itoa(p.boot)
	p.fs.rename(targetNames[from]+"/"+fileX, dir+"/"+fileX)
	d := p.fs.task(dir + "/" + fileX)
	p.settle(fileX, dir, doc{id: "x", rev: d.rev + 1, attempt: d.attempt, token: dir, result: o, to: targetOf(o)})
}
