package proc

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ControlLevel is how surely a tree can be caught.
type ControlLevel string

const (
	LevelCgroup    ControlLevel = "cgroup v2"
	LevelSubreaper ControlLevel = "process group + subreaper"
	LevelGroup     ControlLevel = "process group"
)

// LevelVar is the environment variable that forces a level: "cgroup", "group",
// or "auto". A forced level that the machine lacks is an error at Start.
const LevelVar = "BEEYARD_PROC_LEVEL"

// Level reports the level in force for Start, and why it is no better.
func Level() (ControlLevel, string) {
	c := standard()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forced != nil {
		return c.level, c.forced.Error()
	}
	return c.level, c.reason
}

// tree is the control over one leader and what comes of it. Until the leader
// has been waited for, its pid, group and session ids cannot be reused, so all
// methods but release are called before that.
type tree interface {
	// prepare adds to how the leader is started.
	prepare(env []string, sys *syscall.SysProcAttr) []string
	// started tells the leader's pid.
	started(pid int)
	// signal sends sig to every member; SIGKILL reaches also those that are
	// being forked at that moment.
	signal(sig unix.Signal) error
	// rest lists the living members other than an exited leader. It is called
	// for every process once it has exited, and is cheap when there are none.
	rest() ([]stat, error)
	// account fills in what is known of the whole tree.
	account(r *Result)
	// release gives the tree up: it is empty, or abandoned.
	release(empty bool)
}

// controller makes trees. There is one in a process: cgroup membership and
// subreaping are properties of the process.
type controller struct {
	mu     sync.Mutex
	level  ControlLevel
	reason string
	forced error
	cg     *cgroupHome
	groups *groupHome
}

var standard = sync.OnceValue(func() *controller { return newController(os.Getenv(LevelVar)) })

func newController(want string) *controller {
	closeOnExec()
	c := &controller{}
	switch want {
	case "", "auto", "cgroup", "group":
	default:
		c.forced = fmt.Errorf("%s=%q: want cgroup, group or auto", LevelVar, want)
		return c
	}
	if want == "group" {
		c.useGroups("forced by " + LevelVar)
		return c
	}
	cg, err := openCgroupHome()
	if err == nil {
		c.level, c.reason, c.cg = LevelCgroup, "own cgroups under "+cg.dir, cg
		return c
	}
	if want == "cgroup" {
		c.forced = fmt.Errorf("%s=cgroup: %w", LevelVar, err)
	}
	c.useGroups("no cgroup v2: " + err.Error())
	return c
}

func (c *controller) useGroups(why string) {
	home, err := openGroupHome()
	c.level, c.reason, c.groups = LevelSubreaper, why, home
	if err != nil {
		c.level, c.reason = LevelGroup, why+"; "+err.Error()
	}
}

func (c *controller) newTree() (tree, error) {
	c.mu.Lock()
	cg, groups, err := c.cg, c.groups, c.forced
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if cg != nil {
		g, err := cg.take()
		if err == nil {
			return g, nil
		}
		return nil, fmt.Errorf("make a cgroup for the process: %w", err)
	}
	return groups.newTree(), nil
}

// Close removes what this process keeps for its next Start, once all its
// processes have ended. A process that is killed before leaves it to
// CleanStale.
func Close() { standard().close() }

func (c *controller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cg != nil {
		c.cg.close()
	}
	if c.groups != nil {
		c.groups.close()
	}
}

// separate takes a child out of the reach of a terminal's signals, which are
// for this process: it decides when its children end. Where there is a terminal
// it takes a session of its own, so that a program that asks for a password
// fails at once and is not stopped in the background for ever. Elsewhere a
// group does: a session is a scheduling group too (autogroup), which costs.
func separate(sys *syscall.SysProcAttr) {
	if haveTerminal() {
		sys.Setsid = true
	} else {
		sys.Setpgid = true
	}
}

var haveTerminal = sync.OnceValue(func() bool {
	st, err := readStat(os.Getpid())
	return err != nil || st.tty != 0
})
