package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Each unusable program is told from the others by Preflight, and refused by
// Start with the same reason.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, perm os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), perm); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	bad := file("badinterp", "#!/no/such/interpreter\n", 0o755)
	for _, tc := range []struct{ name, path, reason string }{
		{"empty name", "", "no program is named"},
		{"missing", filepath.Join(dir, "missing"), "does not exist"},
		{"dangling link", dangling, "link to nothing"},
		{"link loop", loop, "symbolic links"},
		{"folder", dir, "a folder"},
		{"below a file", filepath.Join(bad, "x"), "not a directory"},
		{"no run bit", file("norun", "#!/bin/sh\n", 0o644), "run bit"},
		{"empty file", file("empty", "", 0o755), "empty file"},
		{"CRLF", file("crlf", "#!/bin/sh\r\nexit 0\r\n", 0o755), "CRLF"},
		{"CRLF with env", file("crlfenv", "#!/usr/bin/env bash\r\nexit 0\r\n", 0o755), "CRLF"},
		{"interpreter missing", bad, "/no/such/interpreter: it does not exist"},
		{"interpreter is a folder", file("dirinterp", "#!/tmp\n", 0o755), "/tmp: it is a folder"},
		{"no interpreter", file("nointerp", "#!  \n", 0o755), "names no interpreter"},
		{"env finds nothing", file("envx", "#!/usr/bin/env no-such-program-x\n", 0o755), `"no-such-program-x" is not on PATH`},
		{"env -S finds nothing", file("envs", "#!/usr/bin/env -S A=1 no-such-program-x -u\n", 0o755), `"no-such-program-x" is not on PATH`},
		{"endless #! line", file("long", "#!/"+strings.Repeat("x", 300)+"\n", 0o755), "longer than"},
		{"FIFO", fifo, "not a regular file"},
		{"device", "/dev/null", "not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Preflight(tc.path)
			if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("Preflight: %v; want ErrUnusable with %q", err, tc.reason)
			}
			if strings.Contains(tc.name, "env") {
				return // that one starts, and env exits with 127
			}
			p, err := Start(context.Background(), Spec{Path: tc.path})
			if err == nil {
				p.Kill()
				p.Wait()
			}
			if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("Start: %v; want ErrUnusable with %q", err, tc.reason)
			}
		})
	}
}

func TestUsable(t *testing.T) {
	for name, content := range map[string]string{
		"sh":          "#!/bin/sh\nexit 0\n",
		"with spaces": "#! /bin/sh -e\nexit 0\n",
		"env":         "#!/usr/bin/env sh\nexit 0\n",
		"env -S":      "#!/usr/bin/env -S sh -e\nexit 0\n",
		"no newline":  "#!/bin/true",
		"long":        "#!/bin/sh\n" + strings.Repeat("# x\n", 1000) + "exit 0\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := script(t, content)
			if err := Preflight(path); err != nil {
				t.Error(err)
			}
			eachLevel(t, func(t *testing.T, c *controller) {
				if r := c.mustRun(t, Spec{Path: path, Env: []string{"PATH=/usr/bin:/bin"}}); !r.OK() {
					t.Errorf("got %+v", r)
				}
			})
		})
	}
	for _, path := range []string{"/bin/sh", "/bin/true"} {
		if err := Preflight(path); err != nil {
			t.Error(err)
		}
	}
}

// A text without #! is nothing the kernel runs; a shell would, we do not.
func TestNoShebang(t *testing.T) {
	path := script(t, "exit 0\n")
	_, err := Start(context.Background(), Spec{Path: path})
	if !errors.Is(err, ErrUnusable) || !errors.Is(err, syscall.ENOEXEC) || !strings.Contains(err.Error(), "#! line") {
		t.Errorf("got %v", err)
	}
}

// Shortages and a missing folder are not the program's fault.
func TestStartErrorsThatPass(t *testing.T) {
	_, err := Start(context.Background(), Spec{Path: "/bin/true", Dir: "/no/such/folder"})
	if err == nil || errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("missing folder: %v", err)
	}
	_, err = Start(context.Background(), Spec{Path: "/bin/true", Args: []string{strings.Repeat("x", 1<<20)}})
	if err == nil || errors.Is(err, ErrUnusable) || !errors.Is(err, syscall.E2BIG) {
		t.Errorf("arguments too long: %v", err)
	}
}

// A program that was open for writing a moment ago is tried again.
func TestBusyProgram(t *testing.T) {
	path := script(t, "#!/bin/sh\nexit 0\n")
	bin := filepath.Join(filepath.Dir(path), "bin")
	b, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin, b, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(bin, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = Start(context.Background(), Spec{Path: bin})
	if !errors.Is(err, ErrUnusable) || !errors.Is(err, syscall.ETXTBSY) {
		t.Errorf("held open: %v", err)
	}
	f.Close()
	p, err := Start(context.Background(), Spec{Path: bin})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, p)
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if got, err := Lookup("tool", "/bin:"+dir); err != nil || got != filepath.Join(dir, "tool") {
		t.Errorf("got %q, %v", got, err)
	}
	for _, path := range []string{"", ".", "::", "relative", "/bin"} {
		if got, err := Lookup("tool", path); !errors.Is(err, ErrUnusable) {
			t.Errorf("PATH=%q: got %q, %v; want not found", path, got, err)
		}
	}
	if got, err := Lookup("./tool", ""); err != nil || got != "./tool" {
		t.Errorf("got %q, %v", got, err)
	}
}
