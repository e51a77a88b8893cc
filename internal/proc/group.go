package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MarkVar is the environment variable by which a process is known to be of a
// tree after it left the session and lost its parent. Marks nest: a tree
// started from within a tree has the outer mark before its own.
const MarkVar = "BEEYARD_TREE"

// groupHome makes trees that are held by group, parentage and mark.
type groupHome struct {
	// walk is false when /proc cannot be used: only the group can be signalled.
	walk    bool
	prefix  string
	leaders sync.Map // pid → true, of those started here and not waited for

	// children is the list of our first thread's children.
	children ctlFile
}

func openGroupHome() (*groupHome, error) {
	h := &groupHome{children: noFile}
	id, err := Self()
	if err != nil {
		return h, fmt.Errorf("processes that leave the group cannot be found: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return h, fmt.Errorf("become a subreaper: %w", err)
	}
	// Kernels without this list (CONFIG_PROC_CHILDREN) cost a walk over /proc.
	h.children, _ = openCtl(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()), unix.O_RDONLY)
	h.walk, h.prefix = true, ownerPrefix(id)
	if outer := os.Getenv(MarkVar); outer != "" {
		h.prefix = outer + "/" + h.prefix
	}
	return h, nil
}

func (h *groupHome) newTree() *group {
	return &group{home: h, mark: fmt.Sprintf("%s%d", h.prefix, treeNumber.Add(1))}
}

type group struct {
	home   *groupHome
	mark   string
	leader int
}

func (g *group) prepare(env []string, sys *syscall.SysProcAttr) []string {
	separate(sys)
	if !g.home.walk {
		return env
	}
	return append(dropVar(env, MarkVar+"="), MarkVar+"="+g.mark)
}

func dropVar(env []string, prefix string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if !strings.HasPrefix(kv, prefix) {
			out = append(out, kv)
		}
	}
	return out
}

func (g *group) started(pid int) {
	g.leader = pid
	g.home.leaders.Store(pid, true)
}

func (g *group) signal(sig unix.Signal) error {
	err := ignoreGone(unix.Kill(-g.leader, sig))
	if !g.home.walk {
		return err
	}
	others, lerr := g.members()
	errs := []error{err, lerr}
	for _, st := range others {
		if st.pgid != g.leader {
			errs = append(errs, ignoreGone(st.kill(sig)))
		}
	}
	return errors.Join(errs...)
}

// members lists the living processes of the tree without its leader.
func (g *group) members() ([]stat, error) {
	all, err := snapshot()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	set := map[int]bool{g.leader: true}
	me := os.Getpid()
	for _, st := range all {
		ours := st.pgid == g.leader || st.sid == g.leader
		if !ours && st.ppid == me {
			ours, _ = g.marked(st)
		}
		set[st.pid] = ours
	}
	within(set, all)
	var out []stat
	for _, st := range all {
		if set[st.pid] && st.pid != g.leader && st.pid != me && st.live() {
			out = append(out, st)
		}
	}
	return out, nil
}

// marked looks for the tree's mark, or one nested in it. It is unsure of a
// process that is in exec.
func (g *group) marked(st stat) (yes, unsure bool) {
	if _, ours := g.home.leaders.Load(st.pid); ours || !st.live() {
		return false, false
	}
	env, inExec := environ(st.pid)
	return hasMark(env, g.mark), inExec
}

func hasMark(env [][]byte, mark string) bool {
	for _, kv := range env {
		v, ok := bytes.CutPrefix(kv, []byte(MarkVar+"="))
		if ok && (string(v) == mark || bytes.HasPrefix(v, []byte(mark+"/"))) {
			return true
		}
	}
	return false
}

// rest relies on this: once the leader has exited, the ancestors of every
// member left end in a child of ours, because we are the subreaper. No orphan
// among our children, no member; and that list is one short file.
//
// Lists are stale when they are read. A process that dies meanwhile hands its
// children to us, where only the next list shows them; so one that was seen
// dead for the first time means: once more. So does one in exec, which has no
// mark for that moment, or for many if the machine is busy.
func (g *group) rest() (members []stat, err error) {
	if !g.home.walk {
		// Nobody can see who is left, nor whether TERM helped.
		return nil, ignoreGone(unix.Kill(-g.leader, unix.SIGKILL))
	}
	dead := map[int]bool{}
	settled := poll(restLimit, func() bool {
		var orphans []int
		if orphans, err = g.home.orphans(); err != nil || len(orphans) == 0 {
			return true
		}
		again, ours := false, false
		for _, pid := range orphans {
			st, serr := readStat(pid)
			if serr != nil || !st.live() {
				again = again || !dead[pid]
				dead[pid] = true
				continue
			}
			yes, unsure := g.marked(st)
			again = again || unsure
			ours = ours || yes || st.pgid == g.leader
		}
		reapZombies(orphans)
		if ours {
			members, err = g.members()
			return err != nil || len(members) > 0
		}
		return !again
	})
	if !settled && err == nil {
		err = errors.New("list processes: they change too fast")
	}
	return members, err
}

// restLimit bounds the looks for a tree that keeps changing.
const restLimit = 2 * time.Second

func (g *group) account(*Result) {}

func (g *group) release(bool) { g.home.leaders.Delete(g.leader) }
