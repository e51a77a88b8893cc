package durable

import (
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

func infoOf(name string, st *unix.Stat_t) Info {
	return Info{
		Name:       name,
		Size:       st.Size,
		Mode:       modeOf(st.Mode),
		ModTime:    time.Unix(st.Mtim.Unix()),
		ChangeTime: time.Unix(st.Ctim.Unix()),
		Ino:        st.Ino,
		Dev:        uint64(st.Dev),
		Nlink:      uint64(st.Nlink), //nolint:unconvert // 32 bits wide on arm64
		UID:        st.Uid,
		GID:        st.Gid,
	}
}

func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode | typeOf(m&unix.S_IFMT)
}

func typeOf(format uint32) fs.FileMode {
	switch format {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFBLK:
		return fs.ModeDevice
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	}
	return fs.ModeIrregular
}

// notRegular names what is there instead of a regular file.
func notRegular(mode fs.FileMode) error {
	what := "something else"
	switch mode.Type() {
	case fs.ModeDir:
		what = "a folder"
	case fs.ModeSymlink:
		what = "a symbolic link"
	case fs.ModeNamedPipe:
		what = "a FIFO"
	case fs.ModeSocket:
		what = "a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		what = "a device"
	}
	return fmt.Errorf("%w but %s", ErrNotRegular, what)
}

// openError gives the errors by which the kernel refuses to open a link, a
// folder, a socket or a FIFO without a reader their common name.
func openError(err error) error {
	switch err {
	case unix.ELOOP:
		return notRegular(fs.ModeSymlink)
	case unix.EISDIR:
		return notRegular(fs.ModeDir)
	case unix.ENXIO, unix.ENODEV:
		return fmt.Errorf("%w but a FIFO, socket or device", ErrNotRegular)
	}
	return err
}
