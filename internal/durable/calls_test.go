package durable

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// calls are the steps of the protocols and the system calls each may cost.
var calls = []struct {
	name string
	do   func(d Dir, f File) error
	want string
}{
	{"Create", func(d Dir, _ File) error { return keep(d.Create("new", 0o600)) }, "openat"},
	{"Open", func(d Dir, _ File) error { return keep(d.Open("a")) }, "openat fstat"},
	{"Append", func(d Dir, _ File) error { return keep(d.Append("a", 0o600)) }, "openat fstat"},
	{"ReadFile", func(d Dir, _ File) error { _, _, err := d.ReadFile("a", 100); return err }, "openat fstat read close"},
	{"Stat", func(d Dir, _ File) error { _, err := d.Stat("a"); return err }, "newfstatat"},
	{"Exists", func(d Dir, _ File) error { _, err := d.Exists("none"); return err }, "newfstatat"},
	{"Rename", func(d Dir, _ File) error { return d.Rename("a", d, "b") }, "renameat"},
	{"RenameExcl", func(d Dir, _ File) error { return d.RenameExcl("b", d, "a") }, "renameat2"},
	{"Link", func(d Dir, _ File) error { return d.Link("a", d, "c") }, "linkat"},
	{"Remove", func(d Dir, _ File) error { return d.Remove("c") }, "unlinkat"},
	{"Mkdir", func(d Dir, _ File) error { return d.Mkdir("d", 0o700) }, "mkdirat"},
	{"OpenDir", func(d Dir, _ File) error { return keep(d.OpenDir("d")) }, "openat"},
	{"Rmdir", func(d Dir, _ File) error { return d.Rmdir("d") }, "unlinkat"},
	{"Each", func(d Dir, _ File) error { return d.Each(func(Entry) bool { return true }) }, "openat getdents64 getdents64 close"},
	{"Each of one", func(d Dir, _ File) error { return d.Each(func(Entry) bool { return false }) }, "openat getdents64 close"},
	{"Touch", func(d Dir, _ File) error { return d.Touch("a") }, "utimensat"},
	{"Lock", func(d Dir, _ File) error { return locking(d, "a") }, "openat flock close"},
	{"Info", func(d Dir, _ File) error { _, err := d.Info(); return err }, "fstat"},
	{"Sync", func(d Dir, _ File) error { return d.Sync() }, "fsync"},
	{"SyncFS", func(d Dir, _ File) error { return d.SyncFS() }, "syncfs"},
	{"File.Write", func(_ Dir, f File) error { _, err := f.Write([]byte("x")); return err }, "write"},
	{"File.Sync", func(_ Dir, f File) error { return f.Sync() }, "fdatasync"},
	{"File.Stat", func(_ Dir, f File) error { _, err := f.Stat(); return err }, "fstat"},
	{"File.Touch", func(_ Dir, f File) error { return f.Touch() }, "utimensat"},
	{"File.TryLock", func(_ Dir, f File) error { _, err := f.TryLock(); return err }, "flock"},
	{"File.Close", func(_ Dir, f File) error { return f.Close() }, "close"},
	{"WriteFile", func(d Dir, _ File) error { return WriteFile(d, "w", []byte("x"), 0o600) },
		"openat write fdatasync close renameat fsync"},
}

var kept []any

func keep[T any](v T, err error) error {
	kept = append(kept, v) // open until the process ends: its close is another call
	return err
}

const mark = "/durable-test-mark/"

// childCalls does each call after a mark in the trace.
func childCalls(args []string) error {
	d, err := OpenRoot(args[0])
	if err != nil {
		return err
	}
	f, err := d.Create("file", 0o600)
	if err != nil {
		return err
	}
	if err := WriteFile(d, "a", []byte("content"), 0o600); err != nil {
		return err
	}
	for _, c := range calls {
		_ = unix.Access(mark+c.name, 0) // there is no such file
		if err := c.do(d, f); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	_ = unix.Access(mark+"end", 0)
	return nil
}

func straced(t *testing.T, args []string, name string, childArgs ...string) (*exec.Cmd, string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED, NOT TESTED: no strace here")
	}
	log := filepath.Join(t.TempDir(), "trace")
	cmd := child(t, os.Geteuid(), name, childArgs...)
	cmd.Args = slices.Concat([]string{"strace", "-f", "-o", log}, args, cmd.Args)
	cmd.Path = strace
	return cmd, log
}

var traceLine = regexp.MustCompile(`(?m)^\d+ +(\w+)\((.*)$`)

func TestSystemCallsOfEachStep(t *testing.T) {
	cmd, log := straced(t, []string{"-e", "trace=access,faccessat,open,openat,openat2,newfstatat,fstat,statx,read,pread64,write,lseek,close," +
		"fcntl,getdents64,renameat,renameat2,linkat,unlinkat,mkdirat,utimensat,flock,fdatasync,fsync,syncfs,ftruncate"},
		"calls", testDir(t).Path())
	if out, err := run(t, cmd); err != nil {
		if strings.Contains(out, "ptrace") {
			t.Skipf("SKIPPED, NOT TESTED: strace may not trace here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	trace, err := os.ReadFile(log)
	must(t, err)
	got, at := map[string][]string{}, ""
	for _, m := range traceLine.FindAllStringSubmatch(string(trace), -1) {
		if i := strings.Index(m[2], mark); i >= 0 {
			at, _, _ = strings.Cut(m[2][i+len(mark):], `"`)
		} else {
			got[at] = append(got[at], m[1])
		}
	}
	for _, c := range calls {
		if s := strings.Join(got[c.name], " "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
	t.Logf("%d steps", len(calls))
}

func childWrite(args []string) error {
	d, err := OpenRoot(args[0])
	if err != nil {
		return err
	}
	err = WriteFile(d, "state", []byte("new"), 0o600)
	fmt.Println(err)
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return err
	}
	return nil
}

// The kernel's own answers, one failing at a time, in a process of its own.
func TestInjectedSystemCallErrors(t *testing.T) {
	n := 0
	for call, errnos := range map[string][]string{
		"write": {"ENOSPC", "EIO", "EDQUOT"}, "fdatasync": {"EIO", "ENOSPC", "EDQUOT"},
		"renameat": {"EIO", "ENOSPC", "EACCES"}, "fsync": {"EIO", "ENOSPC"},
	} {
		for _, errno := range errnos {
			d := testDir(t)
			must(t, WriteFile(d, "state", []byte("old"), 0o600))
			cmd, log := straced(t, []string{"-y", "-e", "trace=write,fdatasync,renameat,fsync", "-P", d.Path(),
				"-e", "inject=" + call + ":error=" + errno + ":when=1"}, "write", d.Path())
			if call == "write" || call == "fdatasync" { // of the temporary file, whose path is not known before
				cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return a == "-P" || a == d.Path() })
				cmd.Args = append(cmd.Args, d.Path())
			}
			out, err := run(t, cmd)
			if strings.Contains(out, "ptrace") {
				t.Skipf("SKIPPED, NOT TESTED: strace may not trace here: %s", out)
			}
			trace, rerr := os.ReadFile(log)
			must(t, rerr)
			what := call + " " + errno
			if err != nil || out == "<nil>" {
				t.Errorf("%s: %v: %q\n%s", what, err, out, trace)
				continue
			}
			want := "old"
			if call == "fsync" {
				want = "new"
			}
			if got := content(t, d, "state"); got != want || len(names(t, d)) != 1 {
				t.Errorf("%s: %q, names %v", what, got, names(t, d))
			}
			if c := strings.Count(string(trace), " "+call+"("); call != "write" && c != 1 {
				t.Errorf("%s: called %d times\n%s", what, c, trace)
			}
			n++
		}
	}
	t.Logf("%d injected", n)
}
