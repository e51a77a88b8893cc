package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// rootTest is a folder r of the caller inside a folder p of the caller.
func rootTest(t *testing.T) (p, r string) {
	t.Helper()
	p = filepath.Join(t.TempDir(), "p")
	r = filepath.Join(p, "r")
	must(t, os.MkdirAll(r, 0o700))
	return p, r
}

func TestUnsafeRootsAreRefused(t *testing.T) {
	asRoot := os.Geteuid() == 0
	cases := []struct {
		name string
		root bool // making it takes root
		make func(t *testing.T, p, r string) string
		says string
	}{
		{"world-writable without sticky", false, func(t *testing.T, p, r string) string {
			must(t, os.Chmod(r, 0o777))
			return r
		}, "everyone may write"},
		{"owned by another user", true, func(t *testing.T, p, r string) string {
			must(t, os.Chown(r, nobody, nobody))
			return r
		}, "belongs to user 65534"},
		{"a symlink to such a folder", false, func(t *testing.T, p, r string) string {
			must(t, os.Chmod(r, 0o777))
			must(t, os.Symlink(r, p+"/link"))
			return p + "/link"
		}, "everyone may write"},
		{"a relative symlink through a parent to such a folder", false, func(t *testing.T, p, r string) string {
			must(t, os.Chmod(r, 0o777))
			must(t, os.Mkdir(p+"/q", 0o700))
			must(t, os.Symlink("../r", p+"/q/link"))
			return p + "/q/link"
		}, "everyone may write"},
		{"a symlink into a folder that anyone may rename", false, func(t *testing.T, p, r string) string {
			must(t, os.MkdirAll(p+"/open/r", 0o700))
			must(t, os.Chmod(p+"/open", 0o777))
			must(t, os.Symlink("open/r", p+"/link"))
			return p + "/link"
		}, "everyone may rename what is in"},
		{"a parent that anyone may rename", false, func(t *testing.T, p, r string) string {
			must(t, os.Chmod(p, 0o777))
			return r
		}, "everyone may rename what is in"},
		{"a grandparent that anyone may rename", false, func(t *testing.T, p, r string) string {
			must(t, os.Mkdir(r+"/x", 0o700))
			must(t, os.Chmod(p, 0o777))
			return r + "/x"
		}, "everyone may rename what is in"},
		{"another user's folder in a sticky one on the way", true, func(t *testing.T, p, r string) string {
			must(t, os.Chmod(p, os.ModeSticky|0o777))
			must(t, os.Mkdir(r+"/x", 0o700))
			must(t, os.Chown(r, nobody, nobody))
			return r + "/x"
		}, "who may put another in its place"},
		{"another user's link in a sticky folder", true, func(t *testing.T, p, r string) string {
			must(t, os.Chmod(p, os.ModeSticky|0o777))
			must(t, os.Symlink(r, p+"/link"))
			must(t, os.Lchown(p+"/link", nobody, nobody))
			return p + "/link"
		}, "who may put another in its place"},
		{"a file", false, func(t *testing.T, p, r string) string {
			must(t, os.WriteFile(p+"/file", nil, 0o600))
			return p + "/file"
		}, "is not a folder"},
		{"a FIFO", false, func(t *testing.T, p, r string) string {
			must(t, unix.Mkfifo(p+"/fifo", 0o600))
			return p + "/fifo"
		}, "is not a folder"},
		{"below a file", false, func(t *testing.T, p, r string) string {
			must(t, os.WriteFile(p+"/file", nil, 0o600))
			return p + "/file/r"
		}, "is not a folder"},
		{"/", false, func(*testing.T, string, string) string { return "/" }, "root of the file system"},
		{"/ spelled otherwise", false, func(*testing.T, string, string) string { return "/./" }, "root of the file system"},
		{"a link to /", false, func(t *testing.T, p, r string) string {
			must(t, os.Symlink("/", p+"/link"))
			return p + "/link"
		}, "root of the file system"},
		{"..", false, func(t *testing.T, p, r string) string { return r + "/../r" }, `goes through ".."`},
		{"empty", false, func(*testing.T, string, string) string { return "" }, "names no folder"},
		{"NUL", false, func(t *testing.T, p, r string) string { return r + "\x00x" }, "NUL"},
	}
	refused := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.root && !asRoot {
				needRoot(t, "to make a folder of another user")
			}
			p, r := rootTest(t)
			path := c.make(t, p, r)
			before := tree(t, p)
			d, err := OpenRoot(path)
			if err == nil {
				d.Close()
				t.Fatal("opened")
			}
			_, err2 := CheckRoot(path)
			d3, err3 := MkdirAll(path, 0o700)
			if d3 != nil {
				d3.Close()
			}
			for _, err := range []error{err, err2, err3} {
				wantErr(t, "refusal", err, ErrUnsafe)
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v: does not say %q", err, c.says)
				}
			}
			var u *UnsafeError
			if errors.As(err, &u) && (u.Next == "" || u.Why == "") {
				t.Errorf("no reason or next step: %+v", u)
			}
			if after := tree(t, p); after != before {
				t.Errorf("a refused root was changed:\n%s\n->\n%s", before, after)
			}
			refused++
		})
	}
	t.Logf("%d refused", refused)
}

func TestRootOnFATIsRefused(t *testing.T) {
	for _, magic := range []int64{unix.MSDOS_SUPER_MAGIC, magicExFAT} {
		err := refusedFS("/x", magic)
		wantErr(t, "FAT", err, ErrUnsafe)
		if err == nil || !strings.Contains(err.Error(), "FAT") || !strings.Contains(err.Error(), "ext4") {
			t.Errorf("%v", err)
		}
	}
	must(t, refusedFS("/x", unix.EXT4_SUPER_MAGIC))
}

func TestRootUnderARootIsRefused(t *testing.T) {
	p, r := rootTest(t)
	must(t, os.WriteFile(p+"/status.json", nil, 0o600))
	marked := NotUnder(func(d Dir) (bool, error) { return d.Exists("status.json") })
	_, err := OpenRoot(r, marked)
	wantErr(t, "root under a root", err, ErrUnsafe)
	if err == nil || !strings.Contains(err.Error(), p) {
		t.Errorf("does not name the root above: %v", err)
	}
	must(t, closing2(OpenRoot(p, marked))) // itself is none above it
	broken := errors.New("cannot look")
	_, err = OpenRoot(r, NotUnder(func(Dir) (bool, error) { return false, broken }))
	wantErr(t, "predicate's error", err, broken)
	_, err = MkdirAll(p+"/new", 0o700, marked)
	wantErr(t, "making a root under a root", err, ErrUnsafe)
	if _, err := os.Lstat(p + "/new"); err == nil {
		t.Error("it was made")
	}
}

func TestAcceptedRootsAreReported(t *testing.T) {
	p, r := rootTest(t)
	report, err := CheckRoot(r)
	must(t, err)
	if len(report.Notes) != 0 || report.Path != r || report.Resolved != r || !report.Info.Mode.IsDir() {
		t.Errorf("%+v", report)
	}
	must(t, os.Chmod(r, 0o770))
	must(t, os.Chmod(p, 0o775))
	must(t, os.Symlink("r", p+"/link"))
	report, err = CheckRoot(p + "/link")
	must(t, err)
	notes := strings.Join(report.Notes, "\n")
	if len(report.Notes) != 2 || !strings.Contains(notes, "its group") || !strings.Contains(notes, "may rename what is in "+p) {
		t.Errorf("notes: %q", report.Notes)
	}
	if report.Path != p+"/link" || report.Resolved != r {
		t.Errorf("%+v", report)
	}
	must(t, os.Chmod(p, 0o700))
	must(t, os.Chmod(r, os.ModeSticky|0o777))
	report, err = CheckRoot(r)
	if err != nil || len(report.Notes) != 2 || !strings.Contains(report.Notes[0], "everyone may add files") {
		t.Errorf("%+v, %v", report, err)
	}
	if os.Geteuid() == 0 {
		must(t, os.Chown(p, nobody, nobody))
		report, err = CheckRoot(r)
		if err != nil || !strings.Contains(strings.Join(report.Notes, "\n"), "user 65534 may rename what is in "+p) {
			t.Errorf("%+v, %v", report, err)
		}
	}
	_, err = CheckRoot(p + "/missing")
	wantErr(t, "missing", err, fs.ErrNotExist)
	if errors.Is(err, ErrUnsafe) {
		t.Error("missing is not unsafe")
	}
	must(t, os.Symlink("loop", p+"/loop"))
	_, err = CheckRoot(p + "/loop")
	wantErr(t, "loop", err, unix.ELOOP)
	t.Chdir(p)
	d, err := OpenRoot("r")
	must(t, err)
	if d.Path() != r {
		t.Errorf("relative path became %s", d.Path())
	}
	must(t, d.Close())
}

// What was checked is what is open, whatever the name leads to afterwards.
func TestLinkPutAtTheRootsNameAfterwards(t *testing.T) {
	p, r := rootTest(t)
	evil := p + "/evil"
	must(t, os.Mkdir(evil, 0o777))
	d, err := OpenRoot(r)
	must(t, err)
	defer d.Close()
	must(t, os.Rename(r, p+"/moved"))
	must(t, os.Symlink(evil, r))
	must(t, WriteFile(d, "f", []byte("x"), 0o600))
	if _, err := os.Lstat(p + "/moved/f"); err != nil {
		t.Error(err)
	}
	if l, err := os.ReadDir(evil); err != nil || len(l) != 0 {
		t.Errorf("written elsewhere: %v, %v", l, err)
	}
}

// childRoot opens a root as another user and writes to it.
func childRoot(args []string) error {
	var opts []RootOption
	if args[0] == "reading" {
		opts = append(opts, ReadOnly())
	}
	d, err := OpenRoot(args[1], opts...)
	if err != nil {
		if !errors.Is(err, ErrUnsafe) || !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("wrong kind: %w", err)
		}
		return err
	}
	defer d.Close()
	if _, _, err := d.ReadFile("f", 100); err != nil {
		return err
	}
	if err := WriteFile(d, "g", []byte("x"), 0o600); !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("write: %w", err)
	}
	if err := ReplaceFile(d, "f", []byte("x"), 0o600); !errors.Is(err, ErrUnsafe) {
		return fmt.Errorf("replace: %w", err)
	}
	fmt.Println("read")
	return nil
}

func TestRootWithoutWritePermission(t *testing.T) {
	needRoot(t, "to run as another user")
	dir, err := os.MkdirTemp("/tmp", "durable-test-")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	must(t, os.WriteFile(dir+"/f", []byte("x"), 0o644))
	out, err := run(t, child(t, nobody, "root", "writing", dir))
	if err == nil || !strings.Contains(out, "you may not write to it; ask its owner") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run(t, child(t, nobody, "root", "reading", dir)); err != nil || !strings.HasPrefix(out, "read") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir := mountTmpfs(t, "size=1m")
	must(t, os.WriteFile(dir+"/f", []byte("x"), 0o600))
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err := OpenRoot(dir)
	wantErr(t, "open", err, ErrUnsafe)
	wantErr(t, "open", err, unix.EROFS)
	d, err := OpenRoot(dir, ReadOnly())
	must(t, err)
	defer d.Close()
	if content(t, d, "f") != "x" {
		t.Error("content")
	}
	for method, call := range map[string]error{
		"WriteFile": WriteFile(d, "f", nil, 0o600), "Remove": d.Remove("f"), "Mkdir": d.Mkdir("d", 0o700),
		"Rename": d.Rename("f", d, "g"), "Lock": locking(d, "l"),
	} {
		wantErr(t, method, call, unix.EROFS)
	}
}

func TestMkdirAll(t *testing.T) {
	p, _ := rootTest(t)
	d, err := MkdirAll(p+"/a/b/c", 0o700)
	must(t, err)
	defer d.Close()
	if info, err := os.Lstat(p + "/a/b/c"); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Error(info, err)
	}
	must(t, closing2(MkdirAll(p+"/a/b/c", 0o700)))

	inner, c := Counting(d)
	must(t, closing2(EnsureDir(inner, "x", 0o700)))
	if c.Of(OpSyncDir) != 2 || c.Of(OpMkdir) != 1 {
		t.Errorf("a new folder: %v", c.All())
	}
	c.Reset()
	must(t, closing2(EnsureDir(inner, "x", 0o700)))
	if c.Syncs() != 0 || c.Of(OpMkdir) != 0 {
		t.Errorf("an old folder: %v", c.All())
	}
	// Another makes it between the look and the making: flushed all the same.
	lost, c := Counting(Hooked(d, func(op Op) error {
		if op.Op == OpMkdir {
			return d.Mkdir(op.Name, 0o700)
		}
		return nil
	}))
	must(t, closing2(EnsureDir(lost, "y", 0o700)))
	if c.Of(OpSyncDir) != 2 {
		t.Errorf("a folder made by another just now: %v", c.All())
	}
	must(t, os.Symlink(p, d.Path()+"/link"))
	wantErr(t, "EnsureDir of a link", closing2(EnsureDir(d, "link", 0o700)), unix.ENOTDIR)
	put(t, d, "file", "")
	wantErr(t, "EnsureDir of a file", closing2(EnsureDir(d, "file", 0o700)), unix.ENOTDIR)
}
