package durable

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Lister is a Dir that lists without making a string of each name.
type Lister interface {
	// EachName is Each with a name that is valid during the call of yield only.
	EachName(yield func(name []byte, ino uint64, typ fs.FileMode) bool) error
}

// EachName lists by the Dir's own EachName when it has one, else by Each.
func EachName(d Dir, yield func(name []byte, ino uint64, typ fs.FileMode) bool) error {
	if l, ok := d.(Lister); ok {
		return l.EachName(yield)
	}
	return d.Each(func(e Entry) bool { return yield([]byte(e.Name), e.Ino, e.Type) })
}

func (d *osDir) Each(yield func(Entry) bool) error {
	return d.EachName(func(name []byte, ino uint64, typ fs.FileMode) bool {
		return yield(Entry{Name: string(name), Ino: ino, Type: typ})
	})
}

const (
	firstBlock = 16 << 10 // who wants one name should not pay for thousands
	listBlock  = 256 << 10
)

var listBuffers = sync.Pool{New: func() any { return new([listBlock]byte) }}

// EachName opens the folder anew, so that callers do not share a position, and
// because NFS looks at the server again only at an open. A name that comes,
// goes or is renamed meanwhile may be listed, missed, or listed under both names.
func (d *osDir) EachName(yield func(name []byte, ino uint64, typ fs.FileMode) bool) error {
	open, err := d.reopen()
	if err != nil {
		return err
	}
	defer open.Close()
	block := listBuffers.Get().(*[listBlock]byte)
	defer listBuffers.Put(block)
	buf := block[:firstBlock]
	for {
		var n int
		err := again(func() (err error) {
			n, err = unix.Getdents(open.h.fd, buf)
			return err
		})
		if err == unix.ENOENT { // the folder itself was removed: nothing is in it
			return nil
		}
		if err != nil {
			return &fs.PathError{Op: "list", Path: d.path, Err: err}
		}
		if n == 0 || !eachDirent(buf[:n], yield) {
			return nil
		}
		buf = block[:]
	}
}

const (
	direntIno    = unsafe.Offsetof(unix.Dirent{}.Ino)
	direntReclen = unsafe.Offsetof(unix.Dirent{}.Reclen)
	direntType   = unsafe.Offsetof(unix.Dirent{}.Type)
	direntName   = unsafe.Offsetof(unix.Dirent{}.Name)
)

// eachDirent goes through struct linux_dirent64 (getdents(2)), less "." and "..".
func eachDirent(b []byte, yield func(name []byte, ino uint64, typ fs.FileMode) bool) bool {
	for len(b) > int(direntName) {
		size := int(binary.NativeEndian.Uint16(b[direntReclen:]))
		if size <= int(direntName) || size > len(b) {
			return true
		}
		name := b[direntName:size]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		ino, typ := binary.NativeEndian.Uint64(b[direntIno:]), b[direntType]
		b = b[size:]
		if string(name) == "." || string(name) == ".." {
			continue
		}
		// DT_x is the file type of the mode shifted by 12 bits; 0 is "does not say".
		if !yield(name, ino, typeOf(uint32(typ)<<12)) {
			return false
		}
	}
	return true
}
