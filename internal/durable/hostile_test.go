package durable

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// everyName calls each method that takes a name.
var everyName = map[string]func(Dir, string) error{
	"Open":         func(d Dir, n string) error { return closing2(d.Open(n)) },
	"Create":       func(d Dir, n string) error { return closing2(d.Create(n, 0o600)) },
	"Append":       func(d Dir, n string) error { return closing2(d.Append(n, 0o600)) },
	"ReadFile":     func(d Dir, n string) error { _, _, err := d.ReadFile(n, 100); return err },
	"Stat":         func(d Dir, n string) error { _, err := d.Stat(n); return err },
	"Exists":       func(d Dir, n string) error { _, err := d.Exists(n); return err },
	"Rename":       func(d Dir, n string) error { return d.Rename(n, d, "x") },
	"Rename to":    func(d Dir, n string) error { return d.Rename("good", d, n) },
	"Excl":         func(d Dir, n string) error { return d.RenameExcl(n, d, "x") },
	"Excl to":      func(d Dir, n string) error { return d.RenameExcl("good", d, n) },
	"Link":         func(d Dir, n string) error { return d.Link(n, d, "x") },
	"Link to":      func(d Dir, n string) error { return d.Link("good", d, n) },
	"Remove":       func(d Dir, n string) error { return d.Remove(n) },
	"Mkdir":        func(d Dir, n string) error { return d.Mkdir(n, 0o700) },
	"Rmdir":        func(d Dir, n string) error { return d.Rmdir(n) },
	"OpenDir":      func(d Dir, n string) error { return closing2(d.OpenDir(n)) },
	"Touch":        func(d Dir, n string) error { return d.Touch(n) },
	"Chtimes":      func(d Dir, n string) error { return d.Chtimes(n, time.Unix(1, 0)) },
	"Chmod":        func(d Dir, n string) error { return d.Chmod(n, 0o777) },
	"WriteFile":    func(d Dir, n string) error { return WriteFile(d, n, []byte("x"), 0o600) },
	"WriteExcl":    func(d Dir, n string) error { return WriteExcl(d, n, []byte("x"), 0o600) },
	"ReplaceFile":  func(d Dir, n string) error { return ReplaceFile(d, n, []byte("x"), 0o600) },
	"EnsureDir":    func(d Dir, n string) error { return closing2(EnsureDir(d, n, 0o700)) },
	"RemoveAll":    RemoveAll,
	"ServerNow":    func(d Dir, n string) error { _, err := ServerNow(d, n); return err },
	"Lock":         func(d Dir, n string) error { return locking(d, n) },
	"hooked Open":  func(d Dir, n string) error { return closing2(Hooked(d, nil).Open(n)) },
	"hooked Mkdir": func(d Dir, n string) error { return Hooked(d, nil).Mkdir(n, 0o700) },
}

func closing2[T interface{ Close() error }](c T, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

func locking(d Dir, n string) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	unlock, err := d.Lock(ctx, n)
	if err == nil {
		unlock()
	}
	return err
}

// tree lists all below a path with types and content, to see that nothing changed.
func tree(t *testing.T, path string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data := ""
		if e.Type().IsRegular() {
			c, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			data = string(c)
		}
		b.WriteString(p + " " + info.Mode().String() + " " + data + "\n")
		return nil
	}))
	return b.String()
}

func TestHostileNames(t *testing.T) {
	d := testDir(t)
	put(t, d, "good", "1")
	must(t, d.Mkdir("sub", 0o700))
	before := tree(t, filepath.Dir(d.Path()))
	bad := []string{"", ".", "..", "/", "a/b", "../x", "/etc/passwd", "sub/", "./good", "a\x00b", "\x00", "sub/../good", "..\x00"}
	n := 0
	for method, call := range everyName {
		for _, name := range bad {
			n++
			if err := call(d, name); !errors.Is(err, ErrName) {
				t.Errorf("%s(%q): %v", method, name, err)
			}
		}
	}
	if after := tree(t, filepath.Dir(d.Path())); after != before {
		t.Errorf("changed:\n%s\n->\n%s", before, after)
	}
	t.Logf("%d refused", n)
	for _, odd := range []string{"-rf", "..x", "...", "a\nb", "CON", "é", "\xff\xfe", " ", `..\x`, "~", "*", strings.Repeat("n", 255)} {
		must(t, WriteFile(d, odd, []byte("x"), 0o600))
		if content(t, d, odd) != "x" {
			t.Errorf("%q", odd)
		}
	}
	wantErr(t, "300 characters", WriteFile(d, strings.Repeat("n", 300), nil, 0o600), unix.ENAMETOOLONG)
	for name := range names(t, d) {
		if IsTemp(name) {
			t.Errorf("%s was left", name)
		}
	}
}

// What is not a regular file is neither waited for nor followed nor read.
func TestWhatIsNoFile(t *testing.T) {
	d := testDir(t)
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	outside := t.TempDir()
	at := func(name string) string { return filepath.Join(d.Path(), name) }
	must(t, os.Symlink(secret, at("link")))
	must(t, os.Symlink("/nowhere", at("dangling")))
	must(t, os.Symlink(outside, at("dirlink")))
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	must(t, os.Mkdir(at("dir"), 0o700))
	sock, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(sock)
	t.Chdir(d.Path()) // a socket's path is short
	must(t, syscall.Bind(sock, &syscall.SockaddrUnix{Name: "sock"}))
	kinds := []string{"link", "dangling", "dirlink", "fifo", "dir", "sock"}
	if os.Geteuid() == 0 && syscall.Mknod(at("null"), syscall.S_IFCHR|0o600, 1<<8|3) == nil {
		kinds = append(kinds, "null")
	}
	for _, name := range kinds {
		for method, call := range map[string]func(Dir, string) error{
			"Open": everyName["Open"], "Append": everyName["Append"], "ReadFile": everyName["ReadFile"]} {
			err := call(d, name)
			wantErr(t, method+" of "+name, err, ErrNotRegular)
			if err != nil && !strings.Contains(err.Error(), at(name)) {
				t.Errorf("the error does not name the file: %v", err)
			}
		}
		wantErr(t, "Create over "+name, everyName["Create"](d, name), fs.ErrExist)
		wantErr(t, "ReplaceFile of "+name, ReplaceFile(d, name, nil, 0o600), ErrNotRegular)
		if name != "dir" {
			if err := closing2(d.OpenDir(name)); !errors.Is(err, unix.ENOTDIR) {
				t.Errorf("OpenDir of %s: %v", name, err)
			}
		}
	}
	if info, err := d.Stat("link"); err != nil || info.Mode.Type() != fs.ModeSymlink {
		t.Errorf("Stat of a link: %+v, %v", info, err)
	}
	must(t, d.Touch("link"))
	must(t, d.Chtimes("link", time.Unix(1000, 0)))
	if err := d.Chmod("link", 0o777); err == nil {
		t.Error("Chmod of a link succeeded")
	}
	wantErr(t, "Chmod by /proc of a link", chmodByProc(under(d).(*osDir).h.fd, "link", 0o777), unix.EOPNOTSUPP)
	must(t, d.Link("link", d, "link2")) // the link itself, not what it points to
	if info, _ := d.Stat("link2"); info.Mode.Type() != fs.ModeSymlink {
		t.Error("Link followed a link")
	}
	info, err := os.Stat(secret)
	if err != nil || info.Mode().Perm() != 0o600 || info.ModTime().Unix() < 2000 {
		t.Errorf("outside changed: %v, %v", info, err)
	}
	if l := tree(t, outside); strings.Count(l, "\n") != 1 {
		t.Errorf("outside: %s", l)
	}
	types := names(t, d)
	for name, want := range map[string]fs.FileMode{"link": fs.ModeSymlink, "fifo": fs.ModeNamedPipe, "dir": fs.ModeDir, "sock": fs.ModeSocket} {
		if types[name].Type != want {
			t.Errorf("type of %s: %v", name, types[name].Type)
		}
	}
}

// Another process swaps a folder and a link to elsewhere, and a file and a link
// to a secret, as fast as it can. Whatever is opened is never the other side.
func TestSymlinkSwapRace(t *testing.T) {
	attempts := 300_000
	if testing.Short() {
		attempts = 30_000
	}
	d := testDir(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/f", []byte("outside"), 0o600))
	must(t, d.Mkdir("d", 0o700))
	sub, err := d.OpenDir("d")
	must(t, err)
	put(t, sub, "f", "inside")
	must(t, sub.Close())
	put(t, d, "f", "inside")
	must(t, os.Symlink(outside, d.Path()+"/d2"))
	must(t, os.Symlink(outside+"/f", d.Path()+"/f2"))

	stop := make(chan struct{})
	var wg sync.WaitGroup
	var swaps atomic.Int64
	wg.Go(func() {
		fd := under(d).(*osDir).h.fd
		for {
			select {
			case <-stop:
				return
			default:
			}
			e1 := unix.Renameat2(fd, "d", fd, "d2", unix.RENAME_EXCHANGE)
			e2 := unix.Renameat2(fd, "f", fd, "f2", unix.RENAME_EXCHANGE)
			if e1 != nil || e2 != nil {
				t.Errorf("swap: %v, %v", e1, e2)
				return
			}
			swaps.Add(1)
		}
	})
	escapes, opened, refused := 0, 0, 0
	look := func(d Dir) {
		b, _, err := d.ReadFile("f", 100)
		switch {
		case err == nil && string(b) == "inside":
			opened++
		case err == nil:
			escapes++
		case errors.Is(err, ErrNotRegular):
			refused++
		default:
			t.Errorf("read: %v", err)
		}
	}
	for range attempts / 2 {
		look(d)
		sub, err := d.OpenDir("d")
		if err != nil {
			if !errors.Is(err, unix.ENOTDIR) {
				t.Fatalf("open folder: %v", err)
			}
			refused++
			continue
		}
		look(sub)
		must(t, sub.Close())
	}
	close(stop)
	wg.Wait()
	t.Logf("%d attempts against %d swaps: %d inside, %d refused, %d escapes", attempts, swaps.Load(), opened, refused, escapes)
	if escapes != 0 {
		t.Errorf("%d escapes", escapes)
	}
	if opened == 0 || refused == 0 || swaps.Load() < 100 {
		t.Error("the race was not run")
	}
}

func FuzzNameStaysInside(f *testing.F) {
	for _, s := range []string{"a", "..", "a/b", "\x00", ".tmp~x~0123456789abcdef", strings.Repeat("é", 200)} {
		f.Add(s)
	}
	dir := f.TempDir()
	must(f, os.Mkdir(dir+"/root", 0o700))
	d := plainDir(f, dir+"/root")
	f.Fuzz(func(t *testing.T, name string) {
		if temp := TempName(name); !IsTemp(temp) || CheckName(temp) != nil || len(temp) > 255 || strings.HasSuffix(temp, ".json") {
			t.Fatalf("TempName(%q) = %q", name, temp)
		}
		if err := WriteFile(d, name, []byte("x"), 0o600); err != nil {
			return
		}
		got := names(t, d)
		if len(got) != 1 || got[name].Name != name {
			t.Fatalf("%q made %v", name, got)
		}
		must(t, d.Remove(name))
		if others, err := os.ReadDir(dir); err != nil || !slices.ContainsFunc(others, func(e fs.DirEntry) bool { return e.Name() == "root" }) || len(others) != 1 {
			t.Fatalf("beside the folder: %v, %v", others, err)
		}
	})
}
