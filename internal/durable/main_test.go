package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const childEnv = "DURABLE_TEST_CHILD"

// children are what this test binary does when it is started as another
// process: for locks between processes, another user, and counting calls.
var children = map[string]func(args []string) error{
	"hold":  childHold,
	"add":   childAdd,
	"write": childWrite,
	"root":  childRoot,
	"calls": childCalls,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child is this binary as another process, run as uid.
func child(t *testing.T, uid int, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	self := os.Args[0]
	if uid != os.Geteuid() {
		needRoot(t, "to run as another user")
		// The binary of go test lies where only its owner may go.
		dir, err := os.MkdirTemp("/tmp", "durable-test-")
		must(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		must(t, os.Chmod(dir, 0o755))
		b, err := os.ReadFile(self)
		must(t, err)
		self = dir + "/child"
		must(t, os.WriteFile(self, b, 0o755))
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.WaitDelay = 10 * time.Second
	if uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		cmd.Dir = "/"
	}
	return cmd
}

func run(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func needRoot(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("SKIPPED, NOT TESTED: needs root %s", why)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plainDir is a folder that is not opened by OpenRoot's rules.
func plainDir(t testing.TB, path string) Dir {
	t.Helper()
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	must(t, err)
	d := newOSDir(fd, path)
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
	})
	return d
}
