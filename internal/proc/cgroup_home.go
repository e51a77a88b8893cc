package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// cgroupHome makes cgroups below the one this process is in.
//
// Making and removing a cgroup costs about a quarter of a fork and exec of a
// shell; starting into one that exists costs a few per cent. So cgroups that
// proved empty are kept for the next process: at most as many as ever ran at
// once, and no more than idleMax.
type cgroupHome struct {
	dir    string
	prefix string

	mu     sync.Mutex
	idle   []*cgroup
	made   int
	closed bool
}

const idleMax = 64

// treeNumber ends the names of cgroups and the marks of trees. It is the
// process's: each is used once.
var treeNumber atomic.Int64

// stalePrefix begins the names of all our cgroups. The rest names the owner:
// pid namespace, pid, start; then a number of its own.
const stalePrefix = "beeyard."

func ownerPrefix(id Identity) string {
	return fmt.Sprintf("%s%d.%d.%d.", stalePrefix, id.Namespace, id.PID, id.Start)
}

// parseOwner is the inverse of ownerPrefix, for a name or a mark.
func parseOwner(name string) (Identity, bool) {
	var id Identity
	var n int
	_, err := fmt.Sscanf(name, stalePrefix+"%d.%d.%d.%d", &id.Namespace, &id.PID, &id.Start, &n)
	return id, err == nil && id.PID > 0
}

// openCgroupHome finds the place and tries it: on a hybrid machine, in a
// container or without delegation there is a cgroup2 mount that is of no use.
func openCgroupHome() (*cgroupHome, error) {
	dir, err := ownCgroupDir()
	if err != nil {
		return nil, err
	}
	id, err := Self()
	if err != nil {
		return nil, err
	}
	h := &cgroupHome{dir: dir, prefix: ownerPrefix(id)}
	g, err := h.take()
	if err != nil {
		return nil, err
	}
	if err := g.probe(); err != nil {
		g.remove()
		return nil, err
	}
	g.release(true)
	return h, nil
}

// ownCgroupDir is the folder of this process's cgroup on a cgroup2 mount.
func ownCgroupDir() (string, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup2 mount: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find own cgroup: %w", err)
	}
	mounts := cgroup2Mounts(string(mountinfo))
	if len(mounts) == 0 {
		return "", errors.New("no cgroup2 file system is mounted")
	}
	path, ok := unifiedPath(string(own))
	if !ok {
		return "", errors.New("this process is in no cgroup2 hierarchy")
	}
	for _, m := range mounts {
		rel, err := filepath.Rel(m.root, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		dir := filepath.Join(m.point, rel)
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("own cgroup %s is under no mount that is visible here", path)
}

type mount struct{ root, point string }

// cgroup2Mounts reads proc_pid_mountinfo(5): the mount's root is field 4, its
// point field 5, and the type follows a lone hyphen. White space in paths is
// written in octal.
func cgroup2Mounts(mountinfo string) []mount {
	var out []mount
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		sep := slices.Index(f, "-")
		if sep < 5 || len(f) < sep+2 || f[sep+1] != "cgroup2" {
			continue
		}
		out = append(out, mount{root: unescape(f[3]), point: unescape(f[4])})
	}
	return out
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// unifiedPath is the path in the line "0::PATH" of /proc/self/cgroup.
func unifiedPath(cgroup string) (string, bool) {
	for line := range strings.Lines(cgroup) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSuffix(path, "\n"), true
		}
	}
	return "", false
}

// take returns an empty cgroup, an idle one if there is one.
func (h *cgroupHome) take() (*cgroup, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, errors.New("closed")
	}
	if n := len(h.idle); n > 0 {
		g := h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		return g, nil
	}
	h.made++
	h.mu.Unlock()
	return newCgroup(h, filepath.Join(h.dir, fmt.Sprintf("%s%d", h.prefix, treeNumber.Add(1))))
}

// give takes a cgroup back. It reports false if the cgroup is not wanted.
func (h *cgroupHome) give(g *cgroup) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.idle) >= idleMax {
		return false
	}
	h.idle = append(h.idle, g)
	return true
}

func (h *cgroupHome) close() {
	h.mu.Lock()
	idle := h.idle
	h.idle, h.closed = nil, true
	h.mu.Unlock()
	for _, g := range idle {
		g.remove()
	}
}

// removeCgroup removes a cgroup and those that its processes made in it.
// Cgroupfs lets only empty ones go, and its files need no removing.
func removeCgroup(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	entries, rerr := os.ReadDir(dir)
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeCgroup(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove cgroup %s: %w", dir, err)
	}
	return nil
}
