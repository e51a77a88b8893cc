package proc

import (
	"bytes"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// ctlFile is an open file of cgroupfs. It is no os.File, because package os
// would have the kernel wake this process at every change of cgroup.events.
type ctlFile int

const noFile ctlFile = -1

func openCtl(path string, mode int) (ctlFile, error) {
	fd, err := unix.Open(path, mode|unix.O_CLOEXEC, 0)
	if err != nil {
		return noFile, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return ctlFile(fd), nil
}

func (f ctlFile) close() {
	if f != noFile {
		unix.Close(int(f))
	}
}

// read reads the file from its beginning, as much as fits into buf.
func (f ctlFile) read(buf []byte) ([]byte, error) {
	if f == noFile {
		return nil, nil
	}
	n, err := unix.Pread(int(f), buf, 0)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// field reads one number of a flat keyed file; 0 if there is none.
func (f ctlFile) field(key string) int64 {
	var buf [512]byte
	b, _ := f.read(buf[:])
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok && len(rest) > 0 && rest[0] == ' ' {
			v, _ := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return v
		}
	}
	return 0
}

// number reads a file that is one number; 0 if there is none.
func (f ctlFile) number() int64 {
	var buf [32]byte
	b, _ := f.read(buf[:])
	v, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return v
}
