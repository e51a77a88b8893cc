package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is the part of /proc/PID/stat that matters here.
type stat struct {
	pid, ppid, pgid, sid, tty int
	state                     byte
	start                     uint64
	// envEnd is where the environment ends in memory: 0 while the process is in
	// exec, and where that is hidden from us.
	envEnd uint64
}

// kernel tells threads of the kernel: they are in no group and no session.
// (Nor are processes of a container that was entered from outside, which bear
// no mark of ours.)
func (s stat) kernel() bool { return s.pgid == 0 && s.sid == 0 }

func (s stat) live() bool { return s.state != 'Z' && s.state != 'X' }

// readStat reads /proc/PID/stat. A process that is gone is fs.ErrNotExist, or
// ESRCH if it went between open and read.
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat follows proc_pid_stat(5). The name in parentheses may itself hold
// spaces and parentheses, so fields are counted from the last one.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("parse process status %q: no name", b)
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("parse process status %q: too few fields", b)
	}
	s := stat{state: f[0][0]}
	var errs [7]error
	s.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	s.ppid, errs[1] = strconv.Atoi(string(f[1]))
	s.pgid, errs[2] = strconv.Atoi(string(f[2]))
	s.sid, errs[3] = strconv.Atoi(string(f[3]))
	s.tty, errs[4] = strconv.Atoi(string(f[4]))
	s.start, errs[5] = strconv.ParseUint(string(f[19]), 10, 64)
	if len(f) > 48 { // Linux 3.5
		s.envEnd, errs[6] = strconv.ParseUint(string(f[48]), 10, 64)
	}
	return s, errors.Join(errs[:]...)
}

// pids lists all processes that /proc shows.
func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	var out []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out, err
}

// snapshot reads every process's stat. Processes come and go meanwhile; who
// kills by it looks again.
func snapshot() ([]stat, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	out := make([]stat, 0, len(all))
	for _, pid := range all {
		if st, err := readStat(pid); err == nil {
			out = append(out, st)
		}
	}
	return out, nil
}

// childrenOf lists the children of a process, zombies included. Which thread
// forked them matters to the kernel's list, so all threads are asked; kernels
// built without that list cost a walk over /proc.
func childrenOf(pid int) ([]int, error) {
	task := "/proc/" + strconv.Itoa(pid) + "/task"
	d, err := os.Open(task)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	tids, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, tid := range tids {
		b, err := os.ReadFile(task + "/" + tid + "/children")
		if errors.Is(err, fs.ErrNotExist) {
			if _, terr := os.Stat(task + "/" + tid); terr != nil {
				continue // the thread ended
			}
			return childrenByWalk(pid)
		}
		if err != nil {
			continue
		}
		out = appendPIDs(out, b)
	}
	return out, nil
}

func childrenByWalk(pid int) ([]int, error) {
	all, err := snapshot()
	var out []int
	for _, st := range all {
		if st.ppid == pid {
			out = append(out, st.pid)
		}
	}
	return out, err
}

// appendPIDs parses a list of pids between white space.
func appendPIDs(to []int, b []byte) []int {
	for _, f := range bytes.Fields(b) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			to = append(to, pid)
		}
	}
	return to
}

// kill signals the process that had this stat, and no later one of the same
// pid: the descriptor is taken first and the start compared after, so what is
// signalled is what was looked at.
func (s stat) kill(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(s.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return unix.Kill(s.pid, sig)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	now, err := readStat(s.pid)
	if err != nil || now.start != s.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// within grows set by all processes whose parent is in it.
func within(set map[int]bool, all []stat) {
	for grew := true; grew; {
		grew = false
		for _, st := range all {
			if !set[st.pid] && set[st.ppid] {
				set[st.pid], grew = true, true
			}
		}
	}
}

// environ reads a process's environment: what it was started with. It is nil
// for a zombie and for another user's process. inExec means that it reads as
// empty because the process is between two programs: look again.
func environ(pid int) (env [][]byte, inExec bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil, false
	}
	if len(b) == 0 {
		st, err := readStat(pid)
		return nil, err == nil && st.live() && st.envEnd == 0 && !st.kernel()
	}
	return bytes.Split(b, []byte{0}), false
}

// heldByUs lists the children that this process has a pidfd of, as package os
// keeps for each child until it has been waited for.
func heldByUs() (map[int]bool, error) {
	d, err := os.Open("/proc/self/fdinfo")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	held := map[int]bool{}
	for _, n := range names {
		b, err := os.ReadFile("/proc/self/fdinfo/" + n)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(b) {
			if rest, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
				if pid, err := strconv.Atoi(string(bytes.TrimSpace(rest))); err == nil {
					held[pid] = true
				}
			}
		}
	}
	return held, nil
}

// missedTERM reports that TERM would end the process, so that if it lives after
// one, it did not get it: it was being forked, or was a shell's child between
// fork and exec, where a caught signal is dropped. To others a second TERM may
// mean something ("at once"), so they must not get it.
func (s stat) missedTERM() bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/status")
	if err != nil {
		return false
	}
	handled := uint64(0)
	for line := range bytes.Lines(b) {
		for _, key := range []string{"SigIgn:", "SigCgt:"} {
			if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
				mask, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), 16, 64)
				if err != nil {
					return false
				}
				handled |= mask
			}
		}
	}
	return handled&(1<<(unix.SIGTERM-1)) == 0
}
