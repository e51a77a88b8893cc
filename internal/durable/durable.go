// Package durable is the only package of beeyard that touches the file system.
//
// A protocol on files is safe only if every step is a single name in a
// directory that is held open: a path that is checked and then opened can be
// swapped in between, and a path that is walked for each call costs a system
// call a component. So there are two things here: a [Dir], which is an open
// directory, and a [File]. Every name that a Dir takes is one component;
// "", ".", ".." and anything with a slash or NUL is refused with ErrName.
// Symbolic links are never followed.
//
// What is durable after which call is said at each method. The rules are those
// of POSIX as tightened by what was measured on ext4, xfs and btrfs: a file's
// data is safe after File.Sync, its name after Sync of the folder, and neither
// implies the other.
//
// Dir and File are interfaces so that tests can put a file system beneath them
// that crashes, fails or counts.
package durable

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Errors to branch on. All else wraps the *fs.PathError or *os.LinkError of the call.
var (
	ErrName       = errors.New("not a plain file name")
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file is too large")
	ErrLocked     = errors.New("locked by another process")
	ErrUnsafe     = errors.New("unsafe folder")
	ErrNetworkFS  = errors.New("network file system")
)

// Entry is one name of a directory as getdents gives it, without a stat.
type Entry struct {
	Name string
	Ino  uint64
	// Type is the file type bits only; fs.ModeIrregular when the file system does not say.
	Type fs.FileMode
}

// Info is what lstat or fstat knows.
type Info struct {
	Name       string
	Size       int64
	Mode       fs.FileMode
	ModTime    time.Time
	ChangeTime time.Time
	Ino        uint64
	Dev        uint64
	Nlink      uint64
	UID, GID   uint32
}

// Dir is an open directory. Its methods may be called from many goroutines.
type Dir interface {
	// Path is where the directory was opened, for messages only.
	Path() string

	// Open opens a regular file for reading, without following a link and
	// without blocking on a FIFO: what is not a regular file is ErrNotRegular.
	Open(name string) (File, error)
	// Create makes a new file for writing; fs.ErrExist when the name is taken.
	// The mode is perm less the umask. Neither name nor data is durable.
	Create(name string, perm fs.FileMode) (File, error)
	// Append opens a regular file for appending, making it if it is missing.
	Append(name string, perm fs.FileMode) (File, error)
	// ReadFile reads a whole regular file of at most max bytes (else ErrTooLarge).
	ReadFile(name string, max int64) ([]byte, Info, error)
	// Stat is lstat: a link is reported as a link.
	Stat(name string) (Info, error)
	// Exists is Stat without the answer's details; only "not there" is false, nil.
	Exists(name string) (bool, error)

	// Rename moves a name, replacing what has the new one. Two names of one file: nothing happens (POSIX).
	Rename(name string, to Dir, newName string) error
	// RenameExcl moves a name and fails with fs.ErrExist when the new one is taken.
	// Where the file system lacks RENAME_NOREPLACE (NFS) it links and then unlinks.
	RenameExcl(name string, to Dir, newName string) error
	// Link makes a second name; fs.ErrExist when it is taken.
	Link(name string, to Dir, newName string) error
	// Remove unlinks a file (not a directory).
	Remove(name string) error

	// Mkdir makes a directory, fs.ErrExist when the name is taken.
	Mkdir(name string, perm fs.FileMode) error
	// MkdirTemp is not here: names are the caller's to choose.
	// Rmdir removes an empty directory.
	Rmdir(name string) error
	// OpenDir opens a directory below this one; a link is refused.
	OpenDir(name string) (Dir, error)

	// Each calls yield for every name, hidden ones too, in the directory's own
	// order, reading in large blocks, until yield returns false. It starts at
	// the beginning at each call and may be called by several goroutines.
	Each(yield func(Entry) bool) error
	// Touch sets a file's times to the file server's now (UTIME_NOW).
	Touch(name string) error
	// Chtimes sets the modification time (tests and imports).
	Chtimes(name string, mod time.Time) error
	// Chmod changes the permission bits.
	Chmod(name string, perm fs.FileMode) error

	// Lock takes an exclusive flock on a file of this directory, making it if
	// needed (its content is ignored), and waits for it until ctx ends (then
	// the error wraps ErrLocked and ctx's cause). It excludes other processes
	// and other callers in this one. Unlock is idempotent. The file is never
	// removed: a lock on an unlinked file excludes nobody.
	Lock(ctx context.Context, name string) (unlock func(), err error)

	// Info is fstat of the directory itself.
	Info() (Info, error)
	// Sync makes every name change made here so far durable.
	Sync() error
	// SyncFS flushes data and names of the whole file system the directory is on.
	SyncFS() error
	// Close releases the descriptor.
	Close() error
}

// File is an open regular file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Seeker
	io.Closer
	Name() string
	// Sync flushes data and what is needed to read it back (fdatasync). After
	// an error the data's state is unknown for good: never retry on the same
	// file, write a new one.
	Sync() error
	Stat() (Info, error)
	Truncate(size int64) error
	// Touch sets the file's times to the file server's now.
	Touch() error
	// TryLock takes an exclusive flock held until Close; false when another has it.
	TryLock() (bool, error)
	// Locked reports whether another open of the file holds TryLock's lock. It
	// asks with a shared lock that it drops at once, so that two who ask do not
	// take each other for the holder.
	Locked() (bool, error)
	// OS is the file as children inherit it.
	OS() *os.File
}
