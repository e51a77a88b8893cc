package explore

import "fmt"

// cutStory is a start and a program on it, to be cut before every system call.
type cutStory struct {
	name  string
	start func(*cutFS)
	steps func(program)
}

var (
	enqueueStory = cutStory{"enqueue", func(*cutFS) {}, program.enqueue}
	settleStory  = cutStory{"settle with artifact and follow-up", place("pending", doc{id: "x"}), program.work}
	retryStory   = cutStory{
		"retry out of failed",
		place("failed", doc{id: "x", rev: 1, attempt: 1, token: "before", result: failedForGood, to: toFailed}),
		func(p program) { p.operate(toFailed, released) },
	}
	holdStory = cutStory{
		"hold", place("pending", doc{id: "x"}),
		func(p program) { p.operate(toPending, onHold) },
	}
	cancelStory = cutStory{
		"cancel of a held task",
		place("held", doc{id: "x", rev: 1, token: "before", result: onHold, to: toHeld}),
		func(p program) { p.operate(toHeld, canceled) },
	}
	decideStory = cutStory{
		"a worker dies before its record is synced, a reaper decides with it", place("pending", doc{id: "x"}),
		func(p program) {
			// claim, artifact, its fsync, record; the next call would be the record's fsync
			p.fs.killed(5, p.work)
			p.sameBoot = true
			p.reap(p.directory(0))
		},
	}
	retriedStory = cutStory{
		"settle as a retry, then as done", place("pending", doc{id: "x"}),
		func(p program) {
			p.retries = true
			p.work()
		},
	}
	cutStories = []cutStory{enqueueStory, settleStory, retryStory, holdStory, cancelStory, retriedStory, decideStory}
)

// helpedStory is a settle in which a helper begins to finish as well, and dies or
// stalls before its n-th system call.
func helpedStory(n int) cutStory {
	return cutStory{
		fmt.Sprintf("settle with a helper that stops before call %d", n), place("pending", doc{id: "x"}),
		func(p program) {
			fs := p.fs
			p.helper = func(file, dir string) {
				fs.killed(n, func() { p.readAndFinish(file, dir) })
			}
			p.claim(fileX, p.directory(0))
		},
	}
}

// reapedStory is a settle whose worker dies before its n-th system call, after
// which a reaper of the same boot takes over.
func reapedStory(n int) cutStory {
	return cutStory{
		fmt.Sprintf("settle whose worker dies before call %d, then a reaper", n), place("pending", doc{id: "x"}),
		func(p program) {
			p.fs.killed(n, func() { p.claim(fileX, p.directory(0)) })
			p.sameBoot = true
			p.reap(p.directory(0))
		},
	}
}

// place puts a durable, acknowledged task into a folder.
func place(dir string, d doc) func(*cutFS) {
	return func(fs *cutFS) {
		fs.name(dir + "/" + fileX).values[0] = &inode{doc: d, text: d.String(), whole: true, synced: true}
		fs.answer(d)
	}
}

// cutResult counts the states that cuts left, and words the first broken promise.
type cutResult struct {
	states  int // distinct states, each recovered to the end and checked
	calls   int // system calls of the program
	skipped int // how often the program came by the fsync that is left out
	broken  string
}

// cut runs a story with the power cut before every system call and after the
// last, recovers every state that may be left, cuts that recovery the same way
// and recovers again, and checks the promises at the end of each recovery. The
// work that follows recovery is cut too when deep is set.
func (m *model) cut(story cutStory, skip string, deep bool) cutResult {
	var res cutResult
	first, any := map[string]bool{}, map[string]bool{}

	// check judges a recovery that ran to its end.
	check := func(began string, end *cutFS, how string) {
		if v := promise(end); v != "" && res.broken == "" {
			res.broken = fmt.Sprintf("%s\n\t%s left:%s\n\trecovery made of it:%s", v, how, began, end)
		}
	}
	second := func(l left, how string) {
		key := l.key()
		if any[key] || res.broken != "" {
			return
		}
		any[key] = true
		fs := l.mount()
		began := fs.String()
		program{model: m, fs: fs, boot: 3}.recoverAll()
		check(began, fs, how)
	}
	cutNow := func(l left, how string) {
		key := l.key()
		if first[key] || res.broken != "" {
			return
		}
		first[key], any[key] = true, true
		fs := l.mount()
		began := fs.String()
		cuts := func() {
			call := fs.calls
			fs.after(func(l left) {
				second(l, fmt.Sprintf("%s, then a cut before call %d of recovery", how, call+1))
			})
		}
		fs.before = cuts
		p := program{model: m, fs: fs, boot: 2}
		if !deep {
			// What comes after is cut at the first level, as a story of its own.
			p.beforeWork = func() { cuts(); fs.before = nil }
		}
		p.recoverAll()
		fs.before = nil
		check(began, fs, how)
		if deep {
			cuts()
		}
	}

	fs := newCutFS(skip)
	story.start(fs)
	cuts := func() {
		how := fmt.Sprintf("a cut before call %d", fs.calls+1)
		fs.after(func(l left) { cutNow(l, how) })
	}
	fs.before = cuts
	story.steps(program{model: m, fs: fs, boot: 1})
	cuts()
	res.states, res.calls, res.skipped = len(any), fs.calls, fs.skipped
	return res
}

// promise returns what a recovery that ran to its end breaks.
func promise(end *cutFS) string {
	x, done := end.answers["x"], end.task("done/"+fileX)
	anywhere := done
	for _, dir := range []string{"held/", "failed/"} {
		if d := end.task(dir + fileX); anywhere == nil {
			anywhere = d
		}
	}
	for id, n := range end.reruns {
		if n > 0 {
			return id + " ran after an answer that forbids it"
		}
	}
	switch {
	case len(end.list("claimed/")) > 0:
		return "something is stranded in claimed"
	case end.read("pending/"+fileX) != nil || end.read("pending/"+fileF) != nil:
		return "something is stranded in pending"
	case x.id == "x" && anywhere == nil:
		return "an acknowledged task is lost"
	case (x.result == released || x.result == succeeded) && done == nil:
		return "a task that should have been done is not"
	case x.result == onHold && x.token != "before" && end.task("held/"+fileX) == nil,
		x.result == canceled && end.task("failed/"+fileX) == nil:
		return "a held or canceled task is not where it was put"
	case done == nil || !done.output:
		return ""
	}
	a := end.read(artifactX)
	switch {
	case a == nil || !a.whole || a.doc.token != done.token:
		return "done has no artifact of its own"
	case end.task("done/"+fileF) == nil:
		return "a follow-up of done is lost"
	}
	return ""
}
