package durable

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fsType is what is known of a kind of file system.
type fsType struct {
	name    string
	network bool
	memory  bool
	// journal: a rename is after a power cut either done or not, by itself.
	journal Journal
	refused bool
}

// Numbers of statfs(2) that package unix does not name.
const (
	magicZFS    = 0x2fc12fc1
	magicNTFS   = 0x5346544e
	magicNTFS3  = 0x7366746e
	magicLustre = 0x0bd00bd0
	magicGFS2   = 0x01161970
	magicVBox   = 0x786f4256
	magicBcache = 0xca451a4e
	magicExFAT  = 0x2011bab0
)

// fsTypes: ext4 answers for ext2 and ext3 by number; what journal it has is
// looked up. "journal" is left unknown where nothing was measured.
var fsTypes = map[int64]fsType{
	unix.EXT4_SUPER_MAGIC:      {name: "ext4"},
	unix.XFS_SUPER_MAGIC:       {name: "xfs", journal: JournalYes},
	unix.BTRFS_SUPER_MAGIC:     {name: "btrfs", journal: JournalYes},
	unix.F2FS_SUPER_MAGIC:      {name: "f2fs"},
	magicZFS:                   {name: "zfs"},
	magicBcache:                {name: "bcachefs"},
	unix.TMPFS_MAGIC:           {name: "tmpfs", memory: true, journal: JournalNone},
	unix.RAMFS_MAGIC:           {name: "ramfs", memory: true, journal: JournalNone},
	unix.OVERLAYFS_SUPER_MAGIC: {name: "overlayfs"},
	unix.ECRYPTFS_SUPER_MAGIC:  {name: "ecryptfs"},
	unix.NFS_SUPER_MAGIC:       {name: "nfs", network: true},
	unix.SMB_SUPER_MAGIC:       {name: "smb", network: true},
	unix.SMB2_SUPER_MAGIC:      {name: "smb", network: true},
	unix.CIFS_SUPER_MAGIC:      {name: "smb", network: true},
	unix.V9FS_MAGIC:            {name: "9p", network: true},
	unix.CEPH_SUPER_MAGIC:      {name: "ceph", network: true},
	unix.AFS_SUPER_MAGIC:       {name: "afs", network: true},
	unix.CODA_SUPER_MAGIC:      {name: "coda", network: true},
	unix.OCFS2_SUPER_MAGIC:     {name: "ocfs2", network: true},
	magicLustre:                {name: "lustre", network: true},
	magicGFS2:                  {name: "gfs2", network: true},
	magicVBox:                  {name: "vboxsf", network: true},
	unix.FUSE_SUPER_MAGIC:      {name: "fuse"},
	magicNTFS:                  {name: "ntfs"},
	magicNTFS3:                 {name: "ntfs3"},
	unix.MSDOS_SUPER_MAGIC:     {name: "FAT", journal: JournalNone, refused: true},
	magicExFAT:                 {name: "exFAT", journal: JournalNone, refused: true},
}

// Journal says whether a file system orders its changes of names.
type Journal int

// The answers of FSKind about the journal.
const (
	JournalUnknown Journal = iota
	JournalNone
	JournalYes
)

func (j Journal) String() string {
	return [...]string{"unknown", "none", "yes"}[j]
}

// refusedFS: on FAT a rename across folders is two writes of which a power cut
// can keep one, and there are neither links nor a rename that replaces nothing.
func refusedFS(path string, magic int64) error {
	t := fsTypes[magic&0xffffffff]
	if !t.refused {
		return nil
	}
	return &UnsafeError{Path: path, Why: fmt.Sprintf("it is on %s, where a power cut in the middle of a rename loses files", t.name),
		Next: "use a folder on ext4, xfs, btrfs or another journaled file system"}
}
