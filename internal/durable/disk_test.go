package durable

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	needRoot(t, "to mount")
	dir := filepath.Join(t.TempDir(), "mnt")
	must(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options+",mode=0700"); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := mountTmpfs(t, "size=1m")
	d := plainDir(t, dir)
	must(t, WriteFile(d, "state", []byte("old"), 0o600))
	err := WriteFile(d, "state", bytes.Repeat([]byte("x"), 5<<20), 0o600)
	wantErr(t, "5 MiB on 1 MiB", err, unix.ENOSPC)
	if !NoSpace(err) || NoSpace(unix.EIO) || NoSpace(nil) {
		t.Error("NoSpace")
	}
	err = WriteExcl(d, "new", bytes.Repeat([]byte("x"), 5<<20), 0o600)
	wantErr(t, "5 MiB on 1 MiB", err, unix.ENOSPC)
	if content(t, d, "state") != "old" || len(names(t, d)) != 1 {
		t.Errorf("left: %v", names(t, d))
	}
	put(t, d, "filler", strings.Repeat("x", 900<<10))
	wantErr(t, "200 KiB where 100 are free", WriteFile(d, "state", bytes.Repeat([]byte("y"), 200<<10), 0o600), unix.ENOSPC)
	must(t, d.Remove("filler"))
	must(t, WriteFile(d, "state", bytes.Repeat([]byte("y"), 200<<10), 0o600))
	if len(names(t, d)) != 1 {
		t.Errorf("left: %v", names(t, d))
	}
}

func TestSameFS(t *testing.T) {
	d := testDir(t)
	for _, n := range []string{"a", "b", "c"} {
		must(t, d.Mkdir(n, 0o700))
	}
	open := func(n string) Dir {
		sub, err := d.OpenDir(n)
		must(t, err)
		t.Cleanup(func() { sub.Close() })
		return sub
	}
	must(t, SameFS())
	must(t, SameFS(d, open("a"), open("b")))
	needRoot(t, "to mount")

	mount := func(name string, f func(path string) error) {
		path := d.Path() + "/" + name
		if err := f(path); err != nil {
			t.Skipf("SKIPPED, NOT TESTED: cannot mount: %v", err)
		}
		t.Cleanup(func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) })
	}
	mount("a", func(p string) error { return unix.Mount("tmpfs", p, "tmpfs", 0, "mode=0700") })
	// The same device, yet rename(2) refuses.
	mount("b", func(p string) error { return unix.Mount(d.Path()+"/c", p, "", unix.MS_BIND, "") })
	for _, name := range []string{"a", "b"} {
		sub := open(name)
		put(t, sub, "f", "")
		wantErr(t, "rename to "+name, sub.Rename("f", d, "f"), unix.EXDEV)
		err := SameFS(d, open("c"), Hooked(sub, nil))
		wantErr(t, name, err, ErrUnsafe)
		if err == nil || !strings.Contains(err.Error(), "on "+sub.Path()) {
			t.Errorf("does not name the mount point: %v", err)
		}
		if name == "a" && err != nil && !strings.Contains(err.Error(), "tmpfs on ") {
			t.Errorf("%v", err)
		}
	}

	// Removal stops at what is mounted inside.
	must(t, d.Mkdir("tree", 0o700))
	tree := open("tree")
	must(t, tree.Mkdir("in", 0o700))
	mount("tree/in", func(p string) error { return unix.Mount(d.Path()+"/c", p, "", unix.MS_BIND, "") })
	c := open("c")
	put(t, c, "keep", "")
	wantErr(t, "removal over a mount", RemoveAll(d, "tree"), ErrUnsafe)
	if ok, err := c.Exists("keep"); !ok || err != nil {
		t.Error("what is mounted inside was emptied", err)
	}
}

func TestFSKind(t *testing.T) {
	d := testDir(t)
	kind, err := Probe(d)
	must(t, err)
	t.Logf("here: %+v", kind)
	if kind.Name == "" || kind.MountPoint == "" || !strings.HasPrefix(d.Path(), kind.MountPoint) {
		t.Errorf("%+v", kind)
	}
	if len(names(t, d)) != 0 {
		t.Error("the probe left something")
	}
	tmp := mountTmpfs(t, "size=1m")
	kind, err = Probe(plainDir(t, tmp))
	if err != nil || kind.Name != "tmpfs" || !kind.Memory || kind.Network || kind.MountPoint != tmp || !kind.RenameExcl || kind.CrashAtomicRename {
		t.Errorf("%+v, %v", kind, err)
	}
}

func TestJournalOfRealExt4(t *testing.T) {
	needRoot(t, "to mount")
	for features, want := range map[string]Journal{"has_journal": JournalYes, "^has_journal": JournalNone} {
		img := filepath.Join(t.TempDir(), "img")
		dir := filepath.Join(t.TempDir(), "mnt")
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(img, nil, 0o600))
		must(t, os.Truncate(img, 16<<20))
		for _, cmd := range [][]string{{"mkfs.ext4", "-q", "-F", "-O", features, img}, {"mount", "-o", "loop", img, dir}} {
			if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
				t.Skipf("SKIPPED, NOT TESTED: %v: %v: %s", cmd, err, out)
			}
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
				t.Errorf("unmount: %v: %s", err, out)
			}
		})
		d := plainDir(t, dir)
		kind, err := FSKind(d)
		if err != nil || kind.Name != "ext4" || kind.Journal != want || kind.CrashAtomicRename != (want == JournalYes) || kind.MountPoint != dir {
			t.Errorf("%s: %+v, %v", features, kind, err)
		}
		must(t, d.Close())
	}
}

func TestJournalAndMountsAreRead(t *testing.T) {
	sys := t.TempDir()
	dev := unix.Mkdev(259, 2)
	if j := extJournal(sys, "ext4", dev); j != JournalUnknown {
		t.Errorf("without sysfs: %v", j)
	}
	must(t, os.MkdirAll(sys+"/dev/block", 0o700))
	must(t, os.MkdirAll(sys+"/fs/ext4/nvme0n1p2", 0o700))
	must(t, os.Symlink("../../devices/pci/nvme0n1/nvme0n1p2", sys+"/dev/block/259:2"))
	for text, want := range map[string]Journal{"<none>\n": JournalNone, "123\n": JournalYes} {
		must(t, os.WriteFile(sys+"/fs/ext4/nvme0n1p2/journal_task", []byte(text), 0o600))
		if j := extJournal(sys, "ext4", dev); j != want {
			t.Errorf("%q: %v", text, j)
		}
	}
	if j := extJournal(sys, "ext2", dev); j != JournalNone {
		t.Errorf("ext2: %v", j)
	}

	table := []byte("22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw\n" +
		"40 22 0:30 / /mnt/a\\040b\\134c rw master:1 shared:3 - nfs4 host:/x rw,vers=4.2\n" +
		"41 22 0:30 / /mnt/upper rw - nfs4 host:/x rw\n" +
		"bad line\n")
	for _, c := range []struct {
		p    place
		want mount
	}{
		{place{dev: dev, mount: 22}, mount{"/", "ext4"}},
		{place{dev: unix.Mkdev(0, 30), mount: 40}, mount{`/mnt/a b\c`, "nfs4"}},
		{place{dev: unix.Mkdev(0, 30)}, mount{"/mnt/upper", "nfs4"}},
	} {
		if m, err := searchMounts(table, c.p); err != nil || m != c.want {
			t.Errorf("%+v: %+v, %v", c.p, m, err)
		}
	}
	if _, err := searchMounts(table, place{mount: 99}); err == nil {
		t.Error("found what is not there")
	}
	for fstype, want := range map[string]bool{"fuse.sshfs": true, "virtiofs": true, "fuse.s3fs": true, "fuse.rclone": true,
		"fuse": false, "fuseblk": false, "fuse.ntfs-3g": false, "ext4": false} {
		if networkFuse(fstype) != want {
			t.Errorf("%s", fstype)
		}
	}
	for _, magic := range []int64{unix.NFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC} {
		if !fsTypes[magic].network {
			t.Errorf("%x", magic)
		}
	}
}
