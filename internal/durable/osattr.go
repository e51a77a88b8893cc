package durable

import (
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func (d *osDir) Chtimes(name string, mod time.Time) error {
	ts, err := unix.TimeToTimespec(mod)
	if err != nil {
		return &fs.PathError{Op: "set times", Path: d.join(name), Err: err}
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, ts}
	return d.at("set times", name, func(fd int) error {
		return unix.UtimesNanoAt(fd, name, times, unix.AT_SYMLINK_NOFOLLOW)
	})
}

func (d *osDir) Chmod(name string, perm fs.FileMode) error {
	return d.at("chmod", name, func(fd int) error {
		mode := uint32(perm.Perm())
		err := unix.Fchmodat(fd, name, mode, unix.AT_SYMLINK_NOFOLLOW)
		if err != unix.EOPNOTSUPP {
			return err
		}
		return chmodByProc(fd, name, mode)
	})
}

// chmodByProc is for kernels without fchmodat2 (before 6.6), where chmod of a
// name follows links: an O_PATH descriptor pins what the name is, and its
// entry under /proc is the only way to change the mode of one.
func chmodByProc(fd int, name string, mode uint32) error {
	p, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(p)
	var st unix.Stat_t
	if err := unix.Fstat(p, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.EOPNOTSUPP
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(p), mode)
}
