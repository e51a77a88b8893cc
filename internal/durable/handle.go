package durable

import (
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// handle is a descriptor that cannot be used after it is closed: the kernel
// hands a freed number to the next open, so a late call would hit another
// file. Calls under way when Close comes finish first; the last one closes.
type handle struct {
	fd int
	// Invariant: the number of calls under way, plus closing once Close was
	// called. It only falls after that, so it reaches closing exactly once.
	state atomic.Int64

	osMu sync.Mutex
	os   *os.File // made on demand; owns fd from then on
}

const closing = math.MinInt64

func (h *handle) acquire() error {
	for {
		s := h.state.Load()
		if s < 0 {
			return fs.ErrClosed
		}
		if h.state.CompareAndSwap(s, s+1) {
			return nil
		}
	}
}

func (h *handle) release() {
	if h.state.Add(-1) == closing {
		_ = h.shut() // Close has answered already; nobody is left to hear it
	}
}

func (h *handle) close() error {
	for {
		s := h.state.Load()
		if s < 0 {
			return fs.ErrClosed
		}
		if !h.state.CompareAndSwap(s, s+closing) {
			continue
		}
		if s > 0 {
			return nil
		}
		return h.shut()
	}
}

func (h *handle) shut() error {
	h.osMu.Lock()
	defer h.osMu.Unlock()
	if h.os != nil {
		return h.os.Close()
	}
	// Not retried on EINTR: Linux has released the number by then.
	if err := unix.Close(h.fd); err != nil && err != unix.EINTR {
		return err
	}
	return nil
}

func (h *handle) file(name string) *os.File {
	h.osMu.Lock()
	defer h.osMu.Unlock()
	if h.os == nil {
		// Opened non-blocking because of FIFOs; a child that inherits the
		// descriptor should not see that.
		_ = unix.SetNonblock(h.fd, false)
		h.os = os.NewFile(uintptr(h.fd), name)
	}
	return h.os
}

// call runs one system call on the descriptor, again when a signal cut it short.
func (h *handle) call(f func(fd int) error) error {
	if err := h.acquire(); err != nil {
		return err
	}
	defer h.release()
	return again(func() error { return f(h.fd) })
}

func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
