package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

const bound = 30 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	t.Cleanup(cancel)
	return ctx
}

// addOne is a read-change-write that loses updates without the lock.
func addOne(d Dir) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	unlock, err := d.Lock(ctx, ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	b, _, err := d.ReadFile("n", 100)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return err
	}
	temp, err := WriteTemp(d, "n", []byte(strconv.Itoa(n+1)), 0o600)
	if err != nil {
		return err
	}
	return d.Rename(temp, d, "n")
}

func childAdd(args []string) error {
	d, err := OpenRoot(args[0])
	if err != nil {
		return err
	}
	for range 100 {
		if err := addOne(d); err != nil {
			return err
		}
	}
	return d.Close()
}

// childHold takes a lock, says so, and keeps it until its input ends.
func childHold(args []string) error {
	d, err := OpenRoot(args[0])
	if err != nil {
		return err
	}
	unlock, err := d.Lock(context.Background(), ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	fmt.Println("held")
	_, err = os.Stdin.Read(make([]byte, 1))
	_ = err // the end of the input is what is waited for
	return nil
}

func TestLockLosesNoUpdateAcrossProcessesAndGoroutines(t *testing.T) {
	d := testDir(t)
	put(t, d, "n", "0")
	var wg sync.WaitGroup
	for range 4 {
		cmd := child(t, os.Geteuid(), "add", d.Path())
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("child: %v: %s", err, out)
			}
		})
		wg.Go(func() {
			for range 100 {
				if err := addOne(d); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := content(t, d, "n"); got != "800" {
		t.Errorf("800 additions under the lock gave %s", got)
	}
}

func TestLockEndsWithContextAndWithHolder(t *testing.T) {
	d := testDir(t)
	cmd := child(t, os.Geteuid(), "hold", d.Path())
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = out.Read(make([]byte, 10)) // "held"
	must(t, err)

	cause := errors.New("told to stop")
	ctx, cancel := context.WithTimeoutCause(context.Background(), 20*time.Millisecond, cause)
	defer cancel()
	unlock, err := d.Lock(ctx, ".lock")
	if unlock != nil {
		t.Error("the lock of another process was taken")
	}
	wantErr(t, "lock", err, ErrLocked)
	wantErr(t, "lock", err, cause)
	if f, err := d.Open(".lock"); err != nil {
		t.Error(err)
	} else if held, err := f.TryLock(); held || err != nil {
		t.Errorf("TryLock of a held lock: %v, %v", held, err)
	} else {
		must(t, f.Close())
	}

	must(t, cmd.Process.Kill()) // dies with it in hand
	unlock, err = d.Lock(within(t), ".lock")
	must(t, err)
	unlock()
	unlock()
	_ = in.Close()
	_ = cmd.Wait() // killed
	done, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = d.Lock(done, ".lock")
	wantErr(t, "lock with an ended context", err, ErrLocked)
}

// What lies at the lock's name does not matter, and it is never removed; but
// it must not lead out of the folder.
func TestLockOnWhatIsThere(t *testing.T) {
	d := testDir(t)
	outside := t.TempDir() + "/outside"
	must(t, os.Symlink(outside, d.Path()+"/link"))
	put(t, d, "garbage", "{")
	must(t, d.Mkdir("folder", 0o700))
	for _, name := range []string{"new", "garbage", "folder"} {
		unlock, err := d.Lock(within(t), name)
		must(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		if _, err := d.Lock(ctx, name); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: locked twice: %v", name, err)
		}
		cancel()
		unlock()
		unlock2, err := d.Lock(within(t), name)
		must(t, err)
		unlock() // of a lock given back already: must not end the new one
		ctx, cancel = context.WithTimeout(context.Background(), 5*time.Millisecond)
		if _, err := d.Lock(ctx, name); !errors.Is(err, ErrLocked) {
			t.Errorf("%s: a second unlock of the first holder freed the second: %v", name, err)
		}
		cancel()
		unlock2()
		if ok, err := d.Exists(name); !ok || err != nil {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	if content(t, d, "garbage") != "{" {
		t.Error("the content of the lock's file changed")
	}
	_, err := d.Lock(within(t), "link")
	wantErr(t, "lock of a link", err, ErrNotRegular)
	if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link was followed to make the lock's file")
	}
}

// A person removes the file while others wait: they must not stay on it.
func TestLockWaitersLeaveARemovedFile(t *testing.T) {
	d := testDir(t)
	unlock, err := d.Lock(within(t), ".lock")
	must(t, err)
	defer unlock()
	got := make(chan error, 1)
	ctx := within(t)
	other, err := OpenRoot(d.Path()) // as another process would
	must(t, err)
	defer other.Close()
	go func() {
		u, err := other.Lock(ctx, ".lock")
		if err == nil {
			defer u()
		}
		got <- err
	}()
	time.Sleep(20 * time.Millisecond) // lets the waiter meet the old file
	must(t, d.Remove(".lock"))
	// Whether the waiter had opened the old file by now or not, it ends up with
	// a new one.
	if err := <-got; err != nil {
		t.Errorf("waiter: %v", err)
	}
}

func TestLockFileOfASharedFolder(t *testing.T) {
	d := testDir(t)
	must(t, os.Chmod(d.Path(), 0o770))
	old := umask(0)
	defer umask(old)
	unlock, err := d.Lock(within(t), ".lock")
	must(t, err)
	unlock()
	info, err := d.Stat(".lock")
	if err != nil || info.Mode != 0o660 {
		t.Errorf("the group cannot lock: mode %v, %v", info.Mode, err)
	}
}
