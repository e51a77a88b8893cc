package explore

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// doc is what a file of the cut model holds: a version of a task, a prepared
// record, or an artifact.
type doc struct {
	id      string
	rev     int
	attempt int
	token   string // the claim that wrote it
	result  outcome
	to      target
	output  bool // the success has an artifact and a follow-up
}

func (d doc) String() string {
	if d.id == "" {
		return "artifact of " + d.token
	}
	return d.id + " rev " + strconv.Itoa(d.rev) + " attempt " + strconv.Itoa(d.attempt) + " " +
		outcomeNames[d.result] + " by " + d.token
}

// inode is a file: its content, and whether an fsync covered it. Two names may
// be one inode.
type inode struct {
	doc    doc
	text   string
	whole  bool // false after a cut that left it empty
	synced bool
}

// history is what a name stood for since the last fsync of its folder, oldest
// first; nil is no file. first numbers the oldest over the whole run.
type history struct {
	name   string
	values []*inode
	first  int
}

func (h *history) now() *inode { return h.values[len(h.values)-1] }
func (h *history) last() int   { return h.first + len(h.values) - 1 }

// move is one rename between two names. A file system with a journal may undo
// it, and btrfs may leave both names, but none loses the file: where the old
// name is gone the new one is there.
type move struct {
	from, to     *history
	fromAt, toAt int // numbers of the two names' values after the move
}

// cutFS is a file system whose power may be cut before any system call. Each
// name that was not synced may then be old, new or both, each content that was
// not synced may be empty.
type cutFS struct {
	names   []*history // sorted by name
	moves   []move
	skip    string // the fsync that is left out
	skipped int    // how often
	calls   int
	before  func() // called before every system call
	dies    int    // the process dies before this many more calls, 0 for never

	answers map[string]doc // the last answer for each id
	reruns  map[string]int // runs of a task after an answer that forbids them
}

func newCutFS(skip string) *cutFS {
	return &cutFS{skip: skip, answers: map[string]doc{}, reruns: map[string]int{}}
}

func (fs *cutFS) call() {
	if fs.before != nil {
		fs.before()
	}
	if fs.dies == 1 {
		fs.dies = 0
		panic(death{})
	}
	if fs.dies > 1 {
		fs.dies--
	}
	fs.calls++
}

// death unwinds a process that is killed while the power stays on.
type death struct{}

// killed runs steps that die before their n-th call, and reports whether they did.
func (fs *cutFS) killed(n int, steps func()) (died bool) {
	fs.dies = n
	defer func() {
		fs.dies = 0
		if r := recover(); r != nil {
			if _, died = r.(death); !died {
				panic(r)
			}
		}
	}()
	steps()
	return false
}

func (fs *cutFS) find(n string) (int, bool) {
	return slices.BinarySearchFunc(fs.names, n, func(h *history, n string) int { return strings.Compare(h.name, n) })
}

func (fs *cutFS) name(n string) *history {
	i, ok := fs.find(n)
	if !ok {
		fs.names = slices.Insert(fs.names, i, &history{name: n, values: []*inode{nil}})
	}
	return fs.names[i]
}

// read returns the file under a name, or nil.
func (fs *cutFS) read(n string) *inode {
	if i, ok := fs.find(n); ok {
		return fs.names[i].now()
	}
	return nil
}

// task returns the body under a name, or nil when there is no whole one.
func (fs *cutFS) task(n string) *doc {
	if i := fs.read(n); i != nil && i.whole {
		return &i.doc
	}
	return nil
}

func (fs *cutFS) create(n string, d doc) {
	fs.call()
	h := fs.name(n)
	h.values = append(h.values, &inode{doc: d, text: d.String(), whole: true})
}

func (fs *cutFS) unlink(n string) {
	fs.call()
	h := fs.name(n)
	h.values = append(h.values, nil)
}

// rename replaces to. As rename(2) it does nothing when both names are one file.
func (fs *cutFS) rename(from, to string) {
	fs.call()
	f, t := fs.name(from), fs.name(to)
	if f.now() == t.now() {
		return
	}
	t.values = append(t.values, f.now())
	f.values = append(f.values, nil)
	fs.moves = append(fs.moves, move{f, t, f.last(), t.last()})
}

// sync makes the content under a name durable.
func (fs *cutFS) sync(n, label string) {
	if fs.leaveOut(label) {
		return
	}
	fs.call()
	fs.read(n).synced = true
}

// syncFolder makes every name in a folder durable as it is now.
func (fs *cutFS) syncFolder(dir, label string) {
	if fs.leaveOut(label) {
		return
	}
	fs.call()
	for _, h := range fs.names {
		if folder(h.name) == dir {
			h.first, h.values = h.last(), []*inode{h.now()}
		}
	}
}

func (fs *cutFS) leaveOut(label string) bool {
	if label == "" || label != fs.skip {
		return false
	}
	fs.skipped++
	return true
}

func folder(n string) string { return n[:strings.LastIndexByte(n, '/')] }

// list returns the names in a folder, or in all folders below one that ends in
// a slash, that are there.
func (fs *cutFS) list(dir string) []string {
	var out []string
	for _, h := range fs.names {
		at := folder(h.name)
		if h.now() != nil && (at == dir || strings.HasSuffix(dir, "/") && strings.HasPrefix(at, dir)) {
			out = append(out, h.name)
		}
	}
	return out
}

// answer notes what a caller was told.
func (fs *cutFS) answer(d doc) { fs.answers[d.id] = d }

// ran notes a run, which only matters when an answer forbids it.
func (fs *cutFS) ran(id string) {
	switch fs.answers[id].result {
	case succeeded, onHold, canceled:
		fs.reruns[id]++
	}
}

// left is a file system as a cut leaves it: for each name its file, or nil.
type left struct {
	fs    *cutFS
	files []*inode
	empty []*inode // those that lost their content
}

// after calls visit with every file system that a cut may leave now.
func (fs *cutFS) after(visit func(left)) {
	chosen := make([]int, len(fs.names))
	files := make([]*inode, len(fs.names))
	index := make(map[*history]int, len(fs.names))
	for i, h := range fs.names {
		index[h] = i
	}
	// The moves that can be judged once name i is chosen.
	type rule struct{ from, to, fromAt, toAt int }
	rules := make([][]rule, len(fs.names))
	for _, m := range fs.moves {
		r := rule{index[m.from], index[m.to], m.fromAt, m.toAt}
		at := max(r.from, r.to)
		rules[at] = append(rules[at], r)
	}
	var pick func(i int)
	pick = func(i int) {
		if i == len(fs.names) {
			fs.contents(files, visit)
			return
		}
		h := fs.names[i]
	choice:
		for k := h.first; k <= h.last(); k++ {
			chosen[i] = k
			for _, r := range rules[i] {
				if chosen[r.from] >= r.fromAt && chosen[r.to] < r.toAt {
					continue choice
				}
			}
			files[i] = h.values[k-h.first]
			if isTemp(h.name) {
				files[i] = nil // nobody reads it again; the janitor removes it
			}
			pick(i + 1)
		}
	}
	pick(0)
}

func isTemp(n string) bool { return n[strings.LastIndexByte(n, '/')+1] == '.' }

// contents goes on with every choice of which unsynced contents are empty.
func (fs *cutFS) contents(files []*inode, visit func(left)) {
	var unsure []*inode
	for _, i := range files {
		if i != nil && !i.synced && i.whole && !slices.Contains(unsure, i) {
			unsure = append(unsure, i)
		}
	}
	for choice := range 1 << len(unsure) {
		var empty []*inode
		for k, i := range unsure {
			if choice>>k&1 == 1 {
				empty = append(empty, i)
			}
		}
		visit(left{fs, files, empty})
	}
}

// key tells two file systems apart.
func (l left) key() string {
	b := make([]byte, 0, 256)
	for i, f := range l.files {
		if f == nil {
			continue
		}
		b = append(b, l.fs.names[i].name...)
		b = append(b, '=')
		b = strconv.AppendInt(b, int64(slices.Index(l.files, f)), 10)
		if !f.whole || slices.Contains(l.empty, f) {
			b = append(b, " empty"...)
		}
		b = append(b, f.text...)
		b = append(b, '\n')
	}
	for _, id := range []string{"x", "f"} {
		b = append(b, l.fs.answers[id].String()...)
		b = strconv.AppendInt(b, int64(l.fs.reruns[id]), 10)
	}
	return string(b)
}

// mount starts the file system again after the cut: what is there is durable.
func (l left) mount() *cutFS {
	n := newCutFS(l.fs.skip)
	n.answers, n.reruns = maps.Clone(l.fs.answers), maps.Clone(l.fs.reruns)
	copies := map[*inode]*inode{}
	for i, f := range l.files {
		if f == nil {
			continue
		}
		c := copies[f]
		if c == nil {
			c = &inode{doc: f.doc, text: f.text, whole: f.whole && !slices.Contains(l.empty, f), synced: true}
			copies[f] = c
		}
		n.names = append(n.names, &history{name: l.fs.names[i].name, values: []*inode{c}})
	}
	return n
}

func (fs *cutFS) String() string {
	var b strings.Builder
	for _, h := range fs.names {
		switch i := h.now(); {
		case i == nil:
		case i.whole:
			b.WriteString("\n\t\t" + h.name + ": " + i.text)
		default:
			b.WriteString("\n\t\t" + h.name + ": empty")
		}
	}
	for _, id := range []string{"x", "f"} {
		if d, ok := fs.answers[id]; ok {
			b.WriteString("\n\t\tanswered: " + d.String())
		}
	}
	return b.String()
}
