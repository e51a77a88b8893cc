package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func umask(m int) int { return syscall.Umask(m) }

func TestFileReadsAndWrites(t *testing.T) {
	d := testDir(t)
	f, err := d.Create("f", 0o640)
	must(t, err)
	defer f.Close()
	if n, err := f.Write([]byte("hello world")); n != 11 || err != nil {
		t.Fatal(n, err)
	}
	_, err = d.Create("f", 0o640)
	wantErr(t, "create twice", err, fs.ErrExist)
	if pos, err := f.Seek(6, io.SeekStart); pos != 6 || err != nil {
		t.Fatal(pos, err)
	}
	if b, err := io.ReadAll(f); string(b) != "world" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	b := make([]byte, 5)
	if n, err := f.ReadAt(b, 0); n != 5 || err != nil || string(b) != "hello" {
		t.Errorf("%d, %q, %v", n, b, err)
	}
	if n, err := f.ReadAt(b, 9); n != 2 || err != io.EOF {
		t.Errorf("past the end: %d, %v", n, err)
	}
	if _, err := f.ReadAt(b, -1); err == nil {
		t.Error("read before the start")
	}
	must(t, f.Truncate(3))
	must(t, f.Sync())
	if info, err := f.Stat(); err != nil || info.Size != 3 || info.Name != "f" || f.Name() != "f" || info.Mode != 0o640 {
		t.Errorf("%+v, %v", info, err)
	}

	a, err := d.Append("log", 0o600)
	must(t, err)
	defer a.Close()
	a2, err := d.Append("log", 0o600)
	must(t, err)
	defer a2.Close()
	for _, w := range []io.Writer{a, a2, a} {
		_, err := io.WriteString(w, "line\n")
		must(t, err)
	}
	if got := content(t, d, "log"); got != "line\nline\nline\n" {
		t.Errorf("%q", got)
	}
}

func TestReadFileBounds(t *testing.T) {
	d := testDir(t)
	for _, size := range []int{0, 1, 4095, 4096, 100_000} {
		name := fmt.Sprint(size)
		want := strings.Repeat("x", size)
		put(t, d, name, want)
		if b, info, err := d.ReadFile(name, int64(size)); err != nil || string(b) != want || info.Size != int64(size) {
			t.Errorf("%d: %d bytes, %+v, %v", size, len(b), info, err)
		}
		if size > 0 {
			_, _, err := d.ReadFile(name, int64(size)-1)
			wantErr(t, "one byte too many", err, ErrTooLarge)
		}
	}
	_, _, err := d.ReadFile("none", 1)
	wantErr(t, "missing", err, fs.ErrNotExist)
}

// A file may be written while it is read: whatever is given back is a prefix
// of some state, and the bound holds.
func TestReadFileThatGrows(t *testing.T) {
	d := testDir(t)
	a, err := d.Append("f", 0o600)
	must(t, err)
	defer a.Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if i%500 == 499 {
				if err := a.Truncate(0); err != nil {
					t.Error(err)
				}
			}
			if _, err := a.Write([]byte(strings.Repeat("x", 100))); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2000 {
		b, _, err := d.ReadFile("f", 20_000)
		if err != nil && !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		if strings.Trim(string(b), "x\x00") != "" {
			t.Errorf("%q", b)
		}
	}
	close(stop)
	wg.Wait()
}

// The kernel tells of a failed flush once; so must not be asked twice.
func TestSyncErrorIsFinal(t *testing.T) {
	d := testDir(t)
	calls := 0
	defer func(old func(int) error) { fdatasync = old }(fdatasync)
	fdatasync = func(fd int) error {
		if calls++; calls == 1 {
			return unix.EIO
		}
		return unix.Fdatasync(fd)
	}
	f, err := d.Create("f", 0o600)
	must(t, err)
	defer f.Close()
	_, err = f.Write([]byte("x"))
	must(t, err)
	for range 3 {
		err := f.Sync()
		wantErr(t, "sync", err, unix.EIO)
		if !strings.Contains(err.Error(), "write a new one") {
			t.Errorf("no next step: %v", err)
		}
	}
	if calls != 1 {
		t.Errorf("%d calls of fdatasync for one file", calls)
	}
	_, err = f.Write([]byte("y"))
	wantErr(t, "write after", err, unix.EIO)

	err = WriteFile(d, "g", []byte("x"), 0o600)
	must(t, err) // a new file is a new start
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

func TestInterruptedCallsAreMadeAgain(t *testing.T) {
	d := testDir(t)
	n := 0
	defer func(old func(int) error) { fdatasync = old }(fdatasync)
	fdatasync = func(fd int) error {
		if n++; n < 4 {
			return unix.EINTR
		}
		return unix.Fdatasync(fd)
	}
	must(t, WriteFile(d, "f", []byte("x"), 0o600))
	if n != 4 {
		t.Errorf("%d calls", n)
	}
}

func TestTouch(t *testing.T) {
	d := testDir(t)
	f, err := d.Create("f", 0o600)
	must(t, err)
	defer f.Close()
	past := time.Unix(1_000_000_000, 123)
	for name, touch := range map[string]func() error{"name": func() error { return d.Touch("f") }, "file": f.Touch} {
		must(t, d.Chtimes("f", past))
		if info, err := d.Stat("f"); err != nil || !info.ModTime.Equal(past) {
			t.Errorf("%+v, %v", info, err)
		}
		before := time.Now().Add(-time.Second) // the kernel's stamp is a tick behind
		must(t, touch())
		if info, err := f.Stat(); err != nil || info.ModTime.Before(before) {
			t.Errorf("by %s: %v, %v", name, info.ModTime, err)
		}
	}
	now, err := ServerNow(d, "clock")
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("%v, %v", now, err)
	}
	again, err := ServerNow(d, "clock")
	if err != nil || again.Before(now) {
		t.Errorf("%v after %v, %v", again, now, err)
	}
}

// Close waits for calls under way and none comes after: a number freed too
// early would be another file's.
func TestUseAfterCloseRace(t *testing.T) {
	d := testDir(t)
	put(t, d, "f", "inside")
	for range 300 {
		f, err := d.Open("f")
		must(t, err)
		sub, err := under(d).(*osDir).reopen()
		must(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					b := make([]byte, 6)
					_, err1 := f.ReadAt(b, 0)
					_, err2 := sub.Stat("f")
					for _, err := range []error{err1, err2} {
						if err != nil && !errors.Is(err, fs.ErrClosed) {
							t.Error(err)
						}
					}
					if err1 == nil && string(b) != "inside" {
						t.Errorf("read another file: %q", b)
					}
					if err1 != nil && err2 != nil {
						return
					}
				}
			})
		}
		must(t, f.Close())
		must(t, sub.Close())
		// Takes the freed numbers at once.
		other, err := d.Append("other", 0o600)
		must(t, err)
		wg.Wait()
		must(t, other.Close())
		wantErr(t, "second close", f.Close(), fs.ErrClosed)
		wantErr(t, "second close", sub.Close(), fs.ErrClosed)
	}
}

func TestChildInheritsFile(t *testing.T) {
	d := testDir(t)
	f, err := d.Append("log", 0o600)
	must(t, err)
	cmd := exec.Command("/bin/sh", "-c", "echo hello")
	cmd.Stdout = f.OS()
	must(t, cmd.Run())
	if a, b := f.OS(), f.OS(); a != b {
		t.Error("two files own one descriptor")
	}
	must(t, f.Close())
	if _, err := f.OS().Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if got := content(t, d, "log"); got != "hello\n" {
		t.Errorf("%q", got)
	}
}

func TestTryLock(t *testing.T) {
	d := testDir(t)
	f, err := d.Create("f", 0o600)
	must(t, err)
	if ok, err := f.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	g, err := d.Open("f")
	must(t, err)
	defer g.Close()
	if ok, err := g.TryLock(); ok || err != nil {
		t.Errorf("held by another open: %v, %v", ok, err)
	}
	must(t, f.Close())
	if ok, err := g.TryLock(); !ok || err != nil {
		t.Errorf("free: %v, %v", ok, err)
	}
}

func TestEach(t *testing.T) {
	d := testDir(t)
	const n = 3000 // more than one block
	for i := range n {
		must(t, d.Mkdir(fmt.Sprintf("%s-%04d", strings.Repeat("n", 100), i), 0o700))
	}
	put(t, d, ".hidden", "")
	info, err := d.Stat(".hidden")
	must(t, err)
	all := names(t, d)
	if len(all) != n+1 || all[".hidden"].Ino != info.Ino || all[".hidden"].Type != 0 {
		t.Errorf("%d names, %+v", len(all), all[".hidden"])
	}
	// From within itself, from several goroutines, and stopping early.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			seen := 0
			err := d.Each(func(Entry) bool {
				if seen++; seen == 10 {
					inner := 0
					if err := d.Each(func(Entry) bool { inner++; return inner < 5 }); err != nil || inner != 5 {
						t.Errorf("inner: %d, %v", inner, err)
					}
				}
				return true
			})
			if seen != n+1 || err != nil {
				t.Errorf("%d, %v", seen, err)
			}
		})
	}
	wg.Wait()
	must(t, d.Mkdir("gone", 0o700))
	gone, err := d.OpenDir("gone")
	must(t, err)
	defer gone.Close()
	must(t, d.Rmdir("gone"))
	if err := gone.Each(func(Entry) bool { t.Error("a name in a removed folder"); return true }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestModesAndUmask(t *testing.T) {
	d := testDir(t)
	old := umask(0o777)
	err := func() error {
		defer umask(old)
		f, err := d.Create("f", 0o666)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.Write([]byte("x")); err != nil {
			return err
		}
		if err := WriteFile(d, "g", []byte("x"), 0o600); err != nil {
			return err
		}
		return d.Mkdir("dir", 0o700)
	}()
	must(t, err)
	for _, name := range []string{"f", "g", "dir"} {
		if info, err := d.Stat(name); err != nil || info.Mode.Perm() != 0 {
			t.Errorf("%s: the umask is not honoured: %v, %v", name, info.Mode, err)
		}
		must(t, d.Chmod(name, 0o640))
		if info, _ := d.Stat(name); info.Mode.Perm() != 0o640 {
			t.Errorf("%s: %v", name, info.Mode)
		}
	}
	must(t, chmodByProc(under(d).(*osDir).h.fd, "f", 0o604))
	if info, _ := d.Stat("f"); info.Mode != 0o604 {
		t.Errorf("by /proc: %v", info.Mode)
	}
	if info, err := d.Info(); err != nil || info.Mode != fs.ModeDir|0o700 || info.Name != "." {
		t.Errorf("%+v, %v", info, err)
	}
	must(t, d.SyncFS())
}
