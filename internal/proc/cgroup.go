package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is a tree whose members the kernel lists.
//
// Invariant: while it is idle in its home, it has no member and its counters'
// bases are those of that moment.
type cgroup struct {
	home *cgroupHome
	path string
	dir  ctlFile // the folder, to start into
	// These stay open: they are read once a process, and opening costs more
	// than reading.
	events, cpu, peak, memEvents ctlFile

	leader   int
	baseCPU  int64 // microseconds
	baseOOM  int64
	reusable bool
	spent    atomic.Bool
}

// emptyDelay bounds the look that an emptied cgroup is empty.
const emptyDelay = 200 * time.Millisecond

func newCgroup(home *cgroupHome, path string) (_ *cgroup, err error) {
	if err := os.Mkdir(path, 0o755); err != nil {
		return nil, err
	}
	g := &cgroup{home: home, path: path, reusable: true, dir: noFile, events: noFile, cpu: noFile, peak: noFile, memEvents: noFile}
	defer func() {
		if err != nil {
			g.remove()
		}
	}()
	if err := unix.Access(g.file("cgroup.kill"), unix.W_OK); err != nil {
		return nil, fmt.Errorf("cgroup.kill (Linux 5.14 and newer): %w", err)
	}
	if g.dir, err = openCtl(path, unix.O_RDONLY); err != nil {
		return nil, err
	}
	if g.events, err = openCtl(g.file("cgroup.events"), unix.O_RDONLY); err != nil {
		return nil, err
	}
	// The rest is there or not, by kernel and by controllers.
	g.cpu, _ = openCtl(g.file("cpu.stat"), unix.O_RDONLY)
	g.memEvents, _ = openCtl(g.file("memory.events"), unix.O_RDONLY)
	var perr error
	if g.peak, perr = openCtl(g.file("memory.peak"), unix.O_RDWR); errors.Is(perr, fs.ErrPermission) {
		// Before Linux 6.12 the peak cannot be reset: one use.
		g.reusable = false
		g.peak, _ = openCtl(g.file("memory.peak"), unix.O_RDONLY)
	}
	g.baseCPU, g.baseOOM = g.cpu.field("usage_usec"), g.memEvents.field("oom_kill")
	return g, nil
}

// probe starts a child into the cgroup whose exec must fail. Permission to make
// a cgroup is not permission to move into it; and a kernel may kill at birth
// what is started into a cgroup if it, or ours, has ever been killed: clone
// compares the kill counts of the wrong two (seen on 6.18).
func (g *cgroup) probe() error {
	sys := &syscall.SysProcAttr{}
	env := g.prepare([]string{}, sys)
	const notAProgram = "/dev/null/nothing"
	p, err := os.StartProcess(notAProgram, []string{notAProgram}, &os.ProcAttr{Env: env, Sys: sys})
	if err == nil {
		p.Wait()
		return errors.New("this kernel kills what is started into a cgroup")
	}
	if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("start a process into a cgroup: %w", err)
	}
	return nil
}

func (g *cgroup) file(name string) string { return filepath.Join(g.path, name) }

func (g *cgroup) prepare(env []string, sys *syscall.SysProcAttr) []string {
	separate(sys)
	sys.UseCgroupFD, sys.CgroupFD = true, int(g.dir)
	return env
}

func (g *cgroup) started(pid int) { g.leader = pid }

func (g *cgroup) signal(sig unix.Signal) error {
	if sig == unix.SIGKILL {
		// Recursive, atomic against fork, in one write. What was killed is not
		// used again: see probe.
		g.spent.Store(true)
		return killCgroup(g.path)
	}
	pids, err := g.members()
	if err != nil {
		return err
	}
	var seen []stat
	for _, pid := range pids {
		if st, err := readStat(pid); err == nil {
			seen = append(seen, st)
		}
	}
	// A pid of the list may have been reused before its stat was read. What is
	// listed once more after that is a member.
	if pids, err = g.members(); err != nil {
		return err
	}
	var errs []error
	for _, st := range seen {
		if slices.Contains(pids, st.pid) {
			errs = append(errs, ignoreGone(st.kill(sig)))
		}
	}
	return errors.Join(errs...)
}

func killCgroup(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("kill cgroup: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString("1"); err != nil {
		return fmt.Errorf("kill cgroup: %w", err)
	}
	return nil
}

// members lists the processes, those in cgroups that members made included.
func (g *cgroup) members() ([]int, error) {
	var out []int
	err := filepath.WalkDir(g.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return ignoreGone(err)
		}
		b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		// A threaded cgroup has no list of processes; its parent has them.
		if err == nil {
			out = appendPIDs(out, b)
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		return ignoreGone(err)
	})
	return out, err
}

func (g *cgroup) populated() (bool, error) {
	var buf [128]byte
	b, err := g.events.read(buf[:])
	if err != nil {
		return false, fmt.Errorf("read cgroup.events: %w", err)
	}
	return !bytes.Contains(b, []byte("populated 0")), nil
}

// rest trusts the kernel's count, not the list: a member that forks and exits
// while the list is read is dead by then, and its child not in it.
func (g *cgroup) rest() (out []stat, err error) {
	settled := poll(emptyDelay, func() bool {
		var full bool
		if full, err = g.populated(); err != nil || !full {
			out = nil
			return true
		}
		out, err = g.living()
		return err != nil || len(out) > 0
	})
	if !settled {
		return nil, errors.New("the cgroup has members but lists none")
	}
	return out, err
}

// living lists the members that are no zombies.
func (g *cgroup) living() ([]stat, error) {
	pids, err := g.members()
	var out []stat
	for _, pid := range pids {
		if st, err := readStat(pid); err == nil && st.live() && pid != g.leader {
			out = append(out, st)
		}
	}
	return out, err
}

// empties polls: the kernel's notification of cgroup.events is itself held
// back by up to 10 ms.
func (g *cgroup) empties(limit time.Duration) bool {
	return poll(limit, func() bool {
		full, err := g.populated()
		return err == nil && !full
	})
}

func (g *cgroup) account(r *Result) {
	if usec := g.cpu.field("usage_usec"); usec > g.baseCPU {
		r.CPU = time.Duration(usec-g.baseCPU) * time.Microsecond
		g.baseCPU = usec
	}
	if peak := g.peak.number(); peak > 0 {
		r.PeakMemory = peak
	}
	if oom := g.memEvents.field("oom_kill"); oom > g.baseOOM {
		r.OOM, g.baseOOM = true, oom
	}
}

func (g *cgroup) release(empty bool) {
	// Some kernels take a dead process off the count only a moment after its
	// parent has been told.
	if empty && g.empties(emptyDelay) && g.reusable && !g.spent.Load() && g.resetPeak() && g.home.give(g) {
		return
	}
	g.remove()
}

func (g *cgroup) resetPeak() bool {
	if g.peak == noFile {
		return true
	}
	_, err := unix.Write(int(g.peak), []byte("0"))
	return err == nil
}

// remove closes the files and removes the folder. A folder that still has a
// member stays, and is the next CleanStale's.
func (g *cgroup) remove() {
	for _, f := range []ctlFile{g.dir, g.events, g.cpu, g.peak, g.memEvents} {
		f.close()
	}
	removeCgroup(g.path)
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
