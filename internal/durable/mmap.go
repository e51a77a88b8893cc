package durable

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"sync"

	"golang.org/x/sys/unix"
)

// Mmap gives the content of a file as it is now, read-only, without copying
// it; unmap ends that and is idempotent, and the file may be closed before.
// The file must only ever be replaced by rename: reading a page that another
// cut off by truncating ends the process (SIGBUS). A File that is not the
// operating system's is read into memory instead.
func Mmap(f File) (data []byte, unmap func(), err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size == 0 { // which mmap refuses
		return nil, func() {}, nil
	}
	if info.Size > math.MaxInt32 {
		return nil, nil, fmt.Errorf("map %s: %w: %d bytes", f.Name(), ErrTooLarge, info.Size)
	}
	o, ok := under(f).(*osFile)
	if !ok {
		data = make([]byte, info.Size)
		if _, err := io.ReadFull(io.NewSectionReader(f, 0, info.Size), data); err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", f.Name(), err)
		}
		return data, func() {}, nil
	}
	err = o.h.call(func(fd int) (err error) {
		data, err = unix.Mmap(fd, 0, int(info.Size), unix.PROT_READ, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, nil, &fs.PathError{Op: "mmap", Path: o.path, Err: err}
	}
	// The only error of munmap is a wrong range, and this one is the kernel's own.
	return data, sync.OnceFunc(func() { _ = unix.Munmap(data) }), nil
}
