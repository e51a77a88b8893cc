package proc

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// childPipe makes a pipe with one end for a child. Our end does not block, so
// that package os can wait on it with deadlines, and fd is its descriptor, for
// calls that must not wait at all. The child's end blocks: few programs expect
// EAGAIN. (The two ends are separate open files, so they can differ.)
func childPipe(childReads bool) (child, ours *os.File, fd int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, -1, fmt.Errorf("make pipe: %w", err)
	}
	mine, its := fds[0], fds[1]
	if childReads {
		mine, its = its, mine
	}
	if err := unix.SetNonblock(mine, true); err != nil {
		unix.Close(mine)
		unix.Close(its)
		return nil, nil, -1, fmt.Errorf("make pipe: %w", err)
	}
	return os.NewFile(uintptr(its), "pipe"), os.NewFile(uintptr(mine), "pipe"), mine, nil
}

// closeOnExec keeps descriptors that this process was itself given by a
// careless parent from reaching its children. Those that Go opens are marked
// already.
func closeOnExec() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Before Linux 5.11.
	names, _ := os.ReadDir("/proc/self/fd")
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
