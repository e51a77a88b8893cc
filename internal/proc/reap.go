package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// reapPause bounds how often the children are looked through: signals of many
// short processes are one look.
const reapPause = 200 * time.Millisecond

// ReapOrphans reaps zombies that nobody waits for, until ctx ends: those that
// a process becomes parent of as PID 1 of a container or as a subreaper. It
// never takes a process that this package, os or os/exec started: package os
// keeps a pidfd of each of its children from the moment of fork until it has
// been waited for, and a zombie that this process has a pidfd of is left alone.
//
// It returns the context's cause, or at once an error if the kernel has no
// pidfd (before Linux 5.4), since then nothing tells the two apart.
func ReapOrphans(ctx context.Context) error {
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err != nil {
		return fmt.Errorf("reap orphans: pidfd_open: %w", err)
	} else {
		unix.Close(fd)
	}
	sigs := make(chan os.Signal, 1)
	signal.Notify(sigs, unix.SIGCHLD)
	defer signal.Stop(sigs)
	// SIGCHLD is merged and may be lost to a full channel: look now and then.
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pause.C:
		}
		if children, err := childrenOf(os.Getpid()); err == nil {
			reapZombies(children)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-sigs:
		case <-tick.C:
		}
		pause.Reset(reapPause)
	}
}

// reapZombies reaps those of our children that are zombies and nobody's, and
// returns how many.
//
// The order makes it safe: a child that is a zombie now was held by a pidfd
// when it became one, if it is anybody's, and is held until it is waited for.
// So the zombies are listed first and the descriptors after.
func reapZombies(children []int) int {
	var zombies []int
	for _, pid := range children {
		if st, err := readStat(pid); err == nil && st.state == 'Z' && st.ppid == os.Getpid() {
			zombies = append(zombies, pid)
		}
	}
	if len(zombies) == 0 {
		return 0
	}
	held, err := heldByUs()
	if err != nil {
		return 0
	}
	n := 0
	for _, pid := range zombies {
		if held[pid] {
			continue
		}
		for {
			got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if got == pid {
				n++
			}
			break
		}
	}
	return n
}
