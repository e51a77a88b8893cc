package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CleanStale ends the trees of processes that were killed before they could:
// whatever still runs in a cgroup named after an owner that is gone, or bears
// the mark of one. It returns how many processes it killed. Trees of live
// owners, of owners in another pid namespace and of other users are left alone.
//
// Call it when a worker starts.
func CleanStale() (killed int, err error) {
	n, cerr := cleanCgroups()
	m, merr := cleanMarked()
	return n + m, errors.Join(cerr, merr)
}

// cleanCgroups looks through the whole hierarchy: the owner may have been
// started elsewhere, in an earlier login session for example.
func cleanCgroups() (int, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, err
	}
	killed := 0
	var errs []error
	for _, m := range cgroup2Mounts(string(mountinfo)) {
		filepath.WalkDir(m.point, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil // a cgroup that went, or is not ours to see
			}
			id, ok := parseOwner(d.Name())
			if !ok {
				return nil
			}
			if ownerGone(id) {
				n, err := endStaleCgroup(path)
				killed += n
				errs = append(errs, err)
			}
			return fs.SkipDir
		})
	}
	return killed, errors.Join(errs...)
}

// ownerGone judges a name. Names bear no boot id: cgroups and processes do not
// outlive a boot.
func ownerGone(id Identity) bool {
	boot, err := BootID()
	if err != nil || id.Namespace != pidNamespace() {
		return false
	}
	id.Boot = boot
	return Look(id) == Gone
}

func endStaleCgroup(path string) (int, error) {
	g := &cgroup{path: path}
	members, err := g.members()
	if err != nil {
		return 0, err
	}
	if len(members) > 0 {
		if err := killCgroup(path); ignorePermission(err) != nil {
			return 0, err
		} else if err != nil {
			return 0, nil // another user's
		}
	}
	var rerr error
	poll(killDelay, func() bool {
		rerr = removeCgroup(path)
		return rerr == nil || ignorePermission(rerr) == nil
	})
	return len(members), ignorePermission(rerr)
}

func ignorePermission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return ignoreGone(err)
}

// cleanMarked ends processes whose innermost mark's owner is gone.
func cleanMarked() (int, error) {
	seen := map[stat]bool{}
	var lerr error
	empty := func() bool {
		var found []stat
		found, lerr = staleMarked()
		for _, st := range found {
			if st.kill(unix.SIGKILL) == nil {
				seen[stat{pid: st.pid, start: st.start}] = true
			}
		}
		return len(found) == 0
	}
	if !poll(killDelay, empty) && lerr == nil {
		lerr = errors.New("clean stale processes: some do not end after KILL")
	}
	return len(seen), lerr
}

func staleMarked() ([]stat, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	me := os.Getpid()
	var out []stat
	for _, pid := range all {
		st, err := readStat(pid)
		if err != nil || !st.live() || pid == me || st.kernel() {
			continue
		}
		var env [][]byte
		poll(restLimit, func() bool {
			var inExec bool
			env, inExec = environ(pid)
			return !inExec
		})
		if staleMark(env) {
			out = append(out, st)
		}
	}
	return out, nil
}

func staleMark(env [][]byte) bool {
	for _, kv := range env {
		v, ok := bytes.CutPrefix(kv, []byte(MarkVar+"="))
		if !ok {
			continue
		}
		// A live inner owner still looks after its own, whoever died above it.
		inner := string(v[bytes.LastIndexByte(v, '/')+1:])
		id, ok := parseOwner(inner)
		return ok && ownerGone(id)
	}
	return false
}
