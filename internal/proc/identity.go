package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Identity names one process for good: a pid alone is reused.
type Identity struct {
	// Boot is the kernel's random id of this boot.
	Boot string `json:"boot"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Start is the process's start in clock ticks since boot (field 22 of
	// /proc/PID/stat).
	Start uint64 `json:"start"`
	// Namespace is the inode of the pid namespace: two containers of one boot
	// use the same pids for different processes. 0 is not known.
	Namespace uint64 `json:"ns,omitempty"`
}

// State is what can be said of an Identity from here.
type State int

const (
	// Unknown: it lives, if at all, where this process cannot look.
	Unknown State = iota
	Running
	Gone
)

func (s State) String() string {
	return [...]string{"unknown", "running", "gone"}[s]
}

var self = sync.OnceValues(func() (Identity, error) { return IdentityOf(os.Getpid()) })

// Self is this process.
func Self() (Identity, error) { return self() }

// IdentityOf names the process that has pid now.
func IdentityOf(pid int) (Identity, error) {
	st, err := readStat(pid)
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, err := BootID()
	if err != nil {
		return Identity{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return Identity{}, fmt.Errorf("read host name: %w", err)
	}
	return Identity{Boot: boot, Host: host, PID: pid, Start: st.start, Namespace: pidNamespace()}, nil
}

var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
})

// BootID is the same for all processes of one boot of one machine, in every
// container on it, and never seen again.
func BootID() (string, error) { return bootID() }

var pidNamespace = sync.OnceValue(func() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
})

// Look says whether the process that id names still runs. A zombie is Gone:
// it does nothing any more. A process of another boot of this host is Gone; one
// of another host or pid namespace is Unknown.
func Look(id Identity) State {
	boot, err := BootID()
	if err != nil || id.PID <= 0 {
		return Unknown
	}
	if id.Boot != boot {
		if host, err := os.Hostname(); err == nil && host == id.Host && id.Host != "" {
			return Gone
		}
		return Unknown
	}
	if ns := pidNamespace(); id.Namespace != 0 && ns != 0 && id.Namespace != ns {
		return Unknown
	}
	st, err := readStat(id.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return Gone
	case err != nil:
		return Unknown
	case st.start != id.Start, st.state == 'Z', st.state == 'X':
		return Gone
	}
	return Running
}

// Alive reports that the very process id names runs on this machine: same
// boot, pid and start. False is not proof of death: Look tells Gone from
// Unknown.
func Alive(id Identity) bool { return Look(id) == Running }

// Stopped reports that pid is stopped (SIGSTOP, a debugger), for messages.
func Stopped(pid int) bool {
	st, err := readStat(pid)
	return err == nil && (st.state == 'T' || st.state == 't')
}

// Kill sends SIGKILL to the very process that id names, and returns once it is
// gone: what CleanStale then finds of it is stale. One that is gone already, or
// whose pid another has now, is no error. One that cannot be seen from here is:
// see Unknown.
func Kill(id Identity) error {
	switch Look(id) {
	case Gone:
		return nil
	case Unknown:
		return fmt.Errorf("kill process %d: it cannot be seen from here (other host, boot or pid namespace)", id.PID)
	}
	st, err := readStat(id.PID)
	if err != nil || st.start != id.Start {
		return nil
	}
	if err := ignoreGone(st.kill(unix.SIGKILL)); err != nil {
		return fmt.Errorf("kill process %d: %w", id.PID, err)
	}
	if !poll(killDelay, func() bool { return Look(id) != Running }) {
		return fmt.Errorf("kill process %d: it does not end, being stuck in the kernel", id.PID)
	}
	return nil
}
