package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// WriteFile puts data under a name, replacing what has it. When it returns
// nil, data and name are durable; readers see the old content or the new one,
// never a part. When it returns an error, no temporary file is left, and the
// old content stands unless it was the last step, the flush of the folder,
// that failed: then the new one is in place and may not outlive a power cut.
func WriteFile(d Dir, name string, data []byte, perm fs.FileMode) error {
	return publish(d, name, perm, data, bytesOf(data), Dir.Rename)
}

// WriteExcl is WriteFile that fails with fs.ErrExist when the name is taken.
func WriteExcl(d Dir, name string, data []byte, perm fs.FileMode) error {
	return publish(d, name, perm, data, bytesOf(data), Dir.RenameExcl)
}

// ReplaceFile is WriteFile that keeps the mode and group of the file that is
// there; perm is for a new one. Replacing is by rename, and so would give the
// file to the caller: one of another owner is refused (ErrUnsafe), as is what
// is not a regular file (ErrNotRegular). Extended attributes are not kept.
func ReplaceFile(d Dir, name string, data []byte, perm fs.FileMode) error {
	old, err := d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return WriteExcl(d, name, data, perm)
	}
	if err != nil {
		return err
	}
	path := d.Path() + "/" + name
	if !old.Mode.IsRegular() {
		return &fs.PathError{Op: "replace", Path: path, Err: notRegular(old.Mode)}
	}
	if me := uint32(geteuid()); old.UID != me {
		return &UnsafeError{Path: path, Next: "run as its owner, or have it given to you",
			Why: fmt.Sprintf("it belongs to user %d and you are user %d: writing it would change its owner", old.UID, me)}
	}
	return publish(d, name, 0o600, data, func(temp string, f File) error {
		now, err := f.Stat()
		if err != nil {
			return err
		}
		if now.GID != old.GID {
			if err := f.OS().Chown(-1, int(old.GID)); err != nil {
				return fmt.Errorf("keep the group: %w", err)
			}
		}
		if err := d.Chmod(temp, old.Mode); err != nil { // not Create's perm: the umask would take from it
			return err
		}
		return bytesOf(data)(temp, f)
	}, Dir.Rename)
}

// geteuid is a variable so that tests can be somebody else.
var geteuid = unix.Geteuid

// filler writes the content of a new file that has a temporary name.
type filler func(temp string, f File) error

func bytesOf(data []byte) filler {
	return func(_ string, f File) error {
		_, err := f.Write(data)
		return err
	}
}

// publish is the one way a whole file comes to be: temporary name, write,
// flush, rename, flush of the folder. Taking any of the two flushes away loses
// acknowledged data on a power cut. Want is the content where it is known.
func publish(d Dir, name string, perm fs.FileMode, want []byte, fill filler, move func(Dir, string, Dir, string) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	temp, err := writeTemp(d, name, perm, fill)
	if err != nil {
		return err
	}
	if err := move(d, temp, d, name); err != nil && !landed(d, temp, name, want) {
		_ = d.Remove(temp) // the janitor's, if this fails as well
		return err
	}
	return d.Sync()
}

// WriteTemp writes and flushes a file under a new temporary name for the
// caller to publish, and gives that name. Its data is durable, its name is
// not. On an error nothing is left.
func WriteTemp(d Dir, prefix string, data []byte, perm fs.FileMode) (temp string, err error) {
	return writeTemp(d, prefix, perm, bytesOf(data))
}

func writeTemp(d Dir, prefix string, perm fs.FileMode, fill filler) (string, error) {
	f, temp, err := CreateTemp(d, prefix, perm)
	if err != nil {
		return "", err
	}
	if err = fill(temp, f); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = d.Remove(temp) // the janitor's, if this fails as well
		return "", err
	}
	return temp, nil
}

// CreateTemp creates a file under a new temporary name (see TempName).
func CreateTemp(d Dir, prefix string, perm fs.FileMode) (f File, temp string, err error) {
	// Names do not meet by chance; twice in a row is something else's doing.
	for range 3 {
		temp = TempName(prefix)
		f, err = d.Create(temp, perm)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, temp, err
}

// landed looks whether a rename that answered with an error was done all the
// same, as on NFS when the answer is lost and the repeat fails. While the
// temporary name is there the inode decides (link, then unlink); once it is
// gone, the content, where that is known.
func landed(d Dir, temp, name string, want []byte) bool {
	here, err := d.Stat(temp)
	if err == nil {
		there, err := d.Stat(name)
		if err != nil || there.Ino != here.Ino || there.Dev != here.Dev {
			return false
		}
		_ = d.Remove(temp)
		return true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	got, _, err := d.ReadFile(name, int64(len(want)))
	return want != nil && err == nil && bytes.Equal(got, want)
}
