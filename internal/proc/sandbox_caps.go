package proc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// keptCapabilities are what root needs to work on files and to be another
// user. All others are ways out: CAP_PERFMON alone reads any process's memory
// and environment, past Landlock (seen on 6.18).
var keptCapabilities = map[uintptr]bool{
	unix.CAP_CHOWN: true, unix.CAP_DAC_OVERRIDE: true, unix.CAP_FOWNER: true, unix.CAP_FSETID: true,
	unix.CAP_KILL: true, unix.CAP_SETGID: true, unix.CAP_SETUID: true,
}

// dropCapabilities takes the rest from what this thread's next exec can have.
func dropCapabilities() error {
	for c := uintptr(0); ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // past the last the kernel knows
		}
		if err != nil || has == 0 || keptCapabilities[c] {
			continue
		}
		err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EPERM) {
			return nil // not root: there is nothing to drop
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
}
