package durable

import (
	"errors"
	"os"
)

type hookedFile struct {
	file File
	h    *Hooks
	dir  string
}

var (
	_ File          = (*hookedFile)(nil)
	_ layered[File] = (*hookedFile)(nil)
)

func (f *hookedFile) inner() File  { return f.file }
func (f *hookedFile) Name() string { return f.file.Name() }
func (f *hookedFile) OS() *os.File { return f.file.OS() }

func (f *hookedFile) op(op string) Op { return Op{Op: op, Dir: f.dir, Name: f.file.Name()} }

func (f *hookedFile) run(op string, do func() error) error { return f.h.run(f.op(op), do) }

func (f *hookedFile) Read(p []byte) (n int, err error) {
	err = f.run(OpRead, func() (err error) {
		n, err = f.file.Read(p)
		return err
	})
	return n, err
}

func (f *hookedFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.run(OpRead, func() (err error) {
		n, err = f.file.ReadAt(p, off)
		return err
	})
	return n, err
}

func (f *hookedFile) Write(p []byte) (n int, err error) {
	err = f.run(OpWrite, func() (err error) {
		n, err = f.file.Write(p)
		return err
	})
	var short *ShortWrite
	if n == 0 && errors.As(err, &short) {
		n, _ = f.file.Write(p[:min(short.N, len(p))])
	}
	return n, err
}

func (f *hookedFile) Seek(offset int64, whence int) (pos int64, err error) {
	err = f.run(OpSeek, func() (err error) {
		pos, err = f.file.Seek(offset, whence)
		return err
	})
	return pos, err
}

func (f *hookedFile) Sync() error { return f.run(OpSync, f.file.Sync) }

func (f *hookedFile) Stat() (info Info, err error) {
	err = f.run(OpFstat, func() (err error) {
		info, err = f.file.Stat()
		return err
	})
	return info, err
}

func (f *hookedFile) Truncate(size int64) error {
	return f.run(OpTruncate, func() error { return f.file.Truncate(size) })
}

func (f *hookedFile) Touch() error { return f.run(OpFtouch, f.file.Touch) }

func (f *hookedFile) TryLock() (held bool, err error) {
	err = f.run(OpTryLock, func() (err error) {
		held, err = f.file.TryLock()
		return err
	})
	return held && err == nil, err
}

func (f *hookedFile) Locked() (locked bool, err error) {
	err = f.run(OpTryLock, func() (err error) {
		locked, err = f.file.Locked()
		return err
	})
	return locked, err
}

func (f *hookedFile) Close() error { return f.h.end(f.op(OpClose), f.file.Close) }
