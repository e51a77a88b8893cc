package proc

import (
	"fmt"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Sandbox says what a tree may do. It holds for all processes of the tree,
// whatever session or group they move to, and cannot be lifted. What the
// kernel cannot enforce is left out, silently here and openly in
// SandboxStatus: ask it, and tell the user.
//
// A sandboxed program cannot gain privileges (setuid programs run as its
// user; root has only the rights over files that root is used to), and may read and run what is in the system's folders: see systemDirs.
type Sandbox struct {
	// WriteDirs are folders under which everything may be changed, and files
	// that may be written. They must exist.
	WriteDirs []string
	// ReadDirs are folders and files that may be read and run, beyond the
	// system's and the program itself. They must exist.
	ReadDirs []string
	// NetworkOff denies every socket that is not a local one.
	NetworkOff bool
}

// systemDirs is what nearly every program needs to start. /tmp, /var, /home,
// /root, /run and /sys are not in it.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/nix/store", "/gnu/store"}

// systemDevices may be written as well.
var systemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// rules turns a Sandbox for program into Landlock's terms. It runs in the
// process that is to be restricted.
func (s *Sandbox) rules(program string, abi int) ([]landlock.Rule, error) {
	rules := []landlock.Rule{
		landlock.RODirs(systemDirs...).IgnoreIfMissing(),
		landlock.RWFiles(systemDevices...).IgnoreIfMissing(),
		landlock.ROFiles(program),
	}
	for _, path := range s.ReadDirs {
		dir, err := isDir(path)
		if err != nil {
			return nil, err
		}
		if dir {
			rules = append(rules, landlock.RODirs(path))
		} else {
			rules = append(rules, landlock.ROFiles(path))
		}
	}
	for _, path := range s.WriteDirs {
		dir, err := isDir(path)
		if err != nil {
			return nil, err
		}
		rule := landlock.RWFiles(path)
		if dir {
			rule = landlock.RWDirs(path)
			// Renames between folders, without which git and many others fail.
			// The first Landlock denies them always; asking there for the right
			// would make "best effort" drop all restrictions.
			if abi >= 2 {
				rule = rule.WithRefer()
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// restrict applies the sandbox to this process.
func (s *Sandbox) restrict(program string) error {
	abi := landlockABI()
	rules, err := s.rules(program, abi)
	if err != nil {
		return err
	}
	config := landlock.V11
	if !s.NetworkOff {
		config.HandledAccessNet = 0
	}
	if abi > 0 {
		if err := config.BestEffort().Restrict(rules...); err != nil {
			return fmt.Errorf("restrict by Landlock: %w", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if s.NetworkOff && socketFilterWorks() {
		if err := denySockets(); err != nil {
			return fmt.Errorf("turn network off: %w", err)
		}
	}
	return nil
}

func landlockABI() int {
	v, err := llsys.LandlockGetABIVersion()
	if err != nil || v < 0 {
		return 0
	}
	return v
}

// SandboxReport says what this kernel enforces.
type SandboxReport struct {
	// Landlock is the version of its interface, 0 if it is off or missing.
	Landlock int
	// Files: writes and reads outside the named folders are denied.
	Files bool
	// Truncate: truncating files outside is denied too (Landlock 3).
	Truncate bool
	// Network: NetworkOff denies every network socket (a system call filter).
	Network bool
	// TCP: NetworkOff denies TCP only, by Landlock 4; for what it does not cover
	// (UDP, multipath TCP) Network is needed.
	TCP bool
	// Signals: processes outside the sandbox cannot be signalled (Landlock 6).
	Signals bool
}

// SandboxStatus looks at the running kernel.
func SandboxStatus() SandboxReport {
	abi := landlockABI()
	return SandboxReport{Landlock: abi, Files: abi >= 1, Truncate: abi >= 3, TCP: abi >= 4, Signals: abi >= 6,
		Network: socketFilterWorks()}
}

// Full reports that everything a Sandbox promises is enforced.
func (r SandboxReport) Full() bool { return r.Files && r.Truncate && r.Network && r.Signals }

func (r SandboxReport) String() string {
	var missing []string
	for _, part := range []struct {
		on   bool
		name string
	}{{r.Files, "files"}, {r.Truncate, "truncation"}, {r.Network, "network off"}, {r.Signals, "signals"}} {
		if !part.on {
			missing = append(missing, part.name)
		}
	}
	switch {
	case len(missing) == 0:
		return fmt.Sprintf("enforced (Landlock %d, system call filter)", r.Landlock)
	case len(missing) == 4:
		return "NOT enforced: this kernel has neither Landlock nor system call filters"
	}
	return fmt.Sprintf("partly enforced (Landlock %d); NOT enforced: %s", r.Landlock, strings.Join(missing, ", "))
}
