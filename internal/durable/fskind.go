package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// FS is what a file system is and can be relied on for.
type FS struct {
	Name       string // as people call it, from /proc/self/mountinfo where that says more
	MountPoint string // "" when it could not be found out
	Magic      int64  // f_type of statfs(2)
	// Network: other hosts may see the same files, so that neither a boot id
	// nor file events nor a kernel's lock need tell of everyone.
	Network bool
	Memory  bool // nothing outlives a reboot
	Journal Journal
	// CrashAtomicRename: after a power cut an unsynced rename is done or not
	// done (on btrfs: or both names are there), and no file is lost.
	CrashAtomicRename bool
	// RenameExcl: RENAME_NOREPLACE works. Only Probe knows; false from FSKind.
	RenameExcl bool
}

// Kinder is a Dir that knows its file system. Those of other makes may be one too.
type Kinder interface{ FSKind() (FS, error) }

// FSKind tells what file system a folder is on, without writing to it. FAT and
// exFAT are ErrUnsafe.
func FSKind(d Dir) (FS, error) {
	k, ok := under(d).(Kinder)
	if !ok {
		return FS{}, fmt.Errorf("file system of %s: %w", d.Path(), errors.ErrUnsupported)
	}
	return k.FSKind()
}

func (d *osDir) FSKind() (FS, error) {
	var sfs unix.Statfs_t
	if err := d.h.call(func(fd int) error { return unix.Fstatfs(fd, &sfs) }); err != nil {
		return FS{}, &fs.PathError{Op: "statfs", Path: d.path, Err: err}
	}
	magic := int64(sfs.Type) & 0xffffffff
	t, known := fsTypes[magic]
	if !known {
		t.name = fmt.Sprintf("file system 0x%x", magic)
	}
	kind := FS{Name: t.name, Magic: magic, Network: t.network, Memory: t.memory, Journal: t.journal}
	// Without /proc the answer by number stands.
	if m, dev, err := d.mount(); err == nil {
		kind.MountPoint = m.point
		if strings.HasPrefix(m.fstype, "ext") || !known || t.name == "fuse" {
			kind.Name = m.fstype
		}
		kind.Network = kind.Network || networkFuse(m.fstype)
		if magic == unix.EXT4_SUPER_MAGIC {
			kind.Journal = extJournal("/sys", m.fstype, dev)
		}
	}
	kind.CrashAtomicRename = kind.Journal == JournalYes
	return kind, refusedFS(d.path, magic)
}

// networkFuse: FUSE has one number for everything from a local disk to a
// bucket. virtiofs is a folder of the host, which has its own clock and boot.
func networkFuse(fstype string) bool {
	if fstype == "virtiofs" {
		return true
	}
	sub, ok := strings.CutPrefix(fstype, "fuse.")
	if !ok {
		return false
	}
	for _, net := range []string{"sshfs", "s3", "gcs", "goofys", "rclone", "gluster", "ceph", "moose", "juicefs", "davfs", "curlftpfs", "nfs", "smb"} {
		if strings.HasPrefix(sub, net) || strings.HasSuffix(sub, net) {
			return true
		}
	}
	return false
}

// extJournal: the ext4 driver shows the journal's thread under sysfs, "<none>"
// when the file system was made without one.
func extJournal(sys, fstype string, dev uint64) Journal {
	if fstype == "ext2" {
		return JournalNone
	}
	link, err := os.Readlink(fmt.Sprintf("%s/dev/block/%d:%d", sys, unix.Major(dev), unix.Minor(dev)))
	if err != nil {
		return JournalUnknown
	}
	task, err := os.ReadFile(filepath.Join(sys, "fs/ext4", filepath.Base(link), "journal_task"))
	switch {
	case err != nil:
		return JournalUnknown
	case strings.TrimSpace(string(task)) == "<none>":
		return JournalNone
	}
	return JournalYes
}

// Probe is FSKind that also tries RENAME_NOREPLACE, on two temporary names
// that it removes. It needs to write to the folder.
func Probe(d Dir) (FS, error) {
	kind, err := FSKind(d)
	if err != nil {
		return kind, err
	}
	o, ok := under(d).(*osDir)
	if !ok {
		return kind, nil
	}
	f, temp, err := CreateTemp(d, "probe", 0o600)
	if err != nil {
		return kind, err
	}
	next := TempName("probe")
	err = o.pair("rename without replacing", temp, o, next, func(a, b int) error {
		return renameNoReplace(a, temp, b, next)
	})
	if kind.RenameExcl = err == nil; kind.RenameExcl {
		temp = next
	}
	return kind, errors.Join(f.Close(), d.Remove(temp))
}
