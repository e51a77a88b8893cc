package proc

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// orphans lists our children that are no leaders of ours. It asks for those of
// the first thread only: that is where the kernel re-parents to, while a Go
// program's own children are spread over all threads.
func (h *groupHome) orphans() ([]int, error) {
	list, err := h.stableChildren()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(pid int) bool {
		_, ours := h.leaders.Load(pid)
		return ours
	}), nil
}

// stableChildren reads the list until it is twice the same: the kernel may
// skip a child when an earlier one is reaped during the reading.
func (h *groupHome) stableChildren() ([]int, error) {
	if h.children == noFile {
		return childrenByWalk(os.Getpid())
	}
	last, err := h.readChildren()
	for range 10 {
		if err != nil {
			return nil, err
		}
		var next []int
		if next, err = h.readChildren(); err == nil && slices.Equal(last, next) {
			break
		}
		last = next
	}
	return last, err
}

// readChildren reads the list page by page, as the kernel gives it out.
func (h *groupHome) readChildren() ([]int, error) {
	const page, longestPID = 4 << 10, 16
	var buf [page]byte
	var text []byte
	for {
		n, err := unix.Pread(int(h.children), buf[:], int64(len(text)))
		if err != nil {
			return nil, err
		}
		text = append(text, buf[:n]...)
		if n < page-longestPID {
			return appendPIDs(nil, text), nil
		}
	}
}

// close is called when no tree is left; a later one would walk over /proc.
func (h *groupHome) close() {
	h.children.close()
	h.children = noFile
}
