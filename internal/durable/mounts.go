package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

type mount struct {
	point  string
	fstype string
}

// place is where a folder is mounted. The device alone does not tell: a bind
// mount of the same device refuses a rename across it too, and btrfs gives
// each subvolume a device of its own within one mount.
type place struct{ dev, mount uint64 }

func (d *osDir) place() (place, error) {
	var stx unix.Statx_t
	err := d.h.call(func(fd int) error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &stx)
	})
	if err != nil {
		return place{}, &fs.PathError{Op: "statx", Path: d.path, Err: err}
	}
	p := place{dev: unix.Mkdev(stx.Dev_major, stx.Dev_minor)}
	if stx.Mask&unix.STATX_MNT_ID != 0 { // Linux 5.8
		p.mount = stx.Mnt_id
	}
	return p, nil
}

func placeOf(d Dir) (place, error) {
	if o, ok := under(d).(*osDir); ok {
		return o.place()
	}
	info, err := d.Info()
	return place{dev: info.Dev}, err
}

func (d *osDir) mount() (mount, uint64, error) {
	p, err := d.place()
	if err != nil {
		return mount{}, 0, err
	}
	m, err := findMount(p)
	return m, p.dev, err
}

func findMount(p place) (mount, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mount{}, err
	}
	return searchMounts(b, p)
}

// searchMounts reads proc(5)'s mountinfo: id, parent, major:minor, root, mount
// point, options, any number of tags, "-", type, source, options. Without a
// mount id the last of the device's counts: later ones cover earlier ones.
func searchMounts(b []byte, p place) (found mount, err error) {
	err = errors.New("no such mount in /proc/self/mountinfo")
	for line := range bytes.Lines(b) {
		left, right, ok := strings.Cut(string(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 1 {
			continue
		}
		id, _ := strconv.ParseUint(l[0], 10, 64)
		dev := fmt.Sprintf("%d:%d", unix.Major(p.dev), unix.Minor(p.dev))
		if p.mount != 0 && id != p.mount || p.mount == 0 && l[2] != dev {
			continue
		}
		found, err = mount{point: unescapeMount(l[4]), fstype: r[0]}, nil
	}
	return found, err
}

// unescapeMount: the kernel writes space, tab, newline and backslash as \ooo.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// SameFS refuses (ErrUnsafe) folders between which a file cannot be moved by
// rename, and names the two mount points.
func SameFS(dirs ...Dir) error {
	var first place
	for i, d := range dirs {
		p, err := placeOf(d)
		if err != nil {
			return err
		}
		if i == 0 {
			first = p
		}
		if p != first {
			return &UnsafeError{Path: d.Path(),
				Why: fmt.Sprintf("it is on another file system (%s) than %s (%s), and files are moved between the two by rename",
					describe(p), dirs[0].Path(), describe(first)),
				Next: "keep all folders of a run on one mount"}
		}
	}
	return nil
}

func describe(p place) string {
	m, err := findMount(p)
	if err != nil {
		return fmt.Sprintf("device %d:%d", unix.Major(p.dev), unix.Minor(p.dev))
	}
	return fmt.Sprintf("%s on %s, device %d:%d", m.fstype, m.point, unix.Major(p.dev), unix.Minor(p.dev))
}
