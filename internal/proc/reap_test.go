package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Orphans are reaped, and no exit code is stolen: neither from this package
// nor from os/exec, however long its process stays a zombie.
func TestReapOrphans(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	// A zombie of os/exec's that is there from the start to the end.
	waiting := exec.Command("/bin/sh", "-c", "exit 42")
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "zombie", func() bool { return slices.Contains(ourZombies(), waiting.Process.Pid) })

	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ReapOrphans(ctx) }()

	// Each leaves an orphan that lives a little longer than its parent.
	c := newController("group")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				out, err := exec.Command("/bin/sh", "-c", "(setsid sh -c 'sleep 0.05' >/dev/null 2>&1 &) ; echo x; exit 3").Output()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "x\n" {
					t.Errorf("os/exec: %q, %v", out, err)
				}
			}
		})
		wg.Go(func() {
			for range 25 {
				p, err := c.start(ctx, sh("(sleep 0.05 &) ; exit 4"))
				if err != nil {
					t.Error(err)
					return
				}
				if r := p.Wait(); r.ExitCode != 4 || r.Abandoned {
					t.Errorf("proc: %+v", r)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "only the awaited zombie is left", func() bool {
		z := ourZombies()
		return len(z) == 1 && z[0] == waiting.Process.Pid
	})
	var exit *exec.ExitError
	if err := waiting.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 42 {
		t.Errorf("the long zombie's exit code is lost: %v", err)
	}
	stop := errors.New("stop")
	cancel(stop)
	if err := <-ended; !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
}

func init() {
	// init is PID 1 of a pid namespace of its own, like in a container.
	helpers["init"] = func([]string) int {
		if os.Getpid() != 1 {
			return 9
		}
		// /proc must be this namespace's.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return 10
		}
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return 11
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- ReapOrphans(ctx) }()
		for range 20 {
			p, err := Start(ctx, sh("(setsid sleep 0.01 &) ; (sleep 0.01 &) ; exit 5"))
			if err != nil || p.Wait().ExitCode != 5 {
				return 12
			}
			if out, err := exec.Command("/bin/sh", "-c", "(setsid sleep 0.01 &) ; echo x").Output(); err != nil || string(out) != "x\n" {
				return 13
			}
		}
		if !poll(bound, func() bool { all, err := pids(); return err == nil && len(all) == 1 }) {
			return 14
		}
		cancel()
		<-ended
		Close()
		return 0
	}
}

func TestReapsAsPID1(t *testing.T) {
	for _, level := range []string{"auto", "group"} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = asHelper("init", LevelVar+"="+level)
		cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Start()
		if errors.Is(err, unix.EPERM) {
			t.Skip("NOT TESTED HERE: making a pid namespace needs root")
		}
		if err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(2*bound, func() { cmd.Process.Kill() })
		err = cmd.Wait()
		timer.Stop()
		if err != nil {
			t.Errorf("%s: %v\n%s", level, err, out.String())
		}
	}
}
