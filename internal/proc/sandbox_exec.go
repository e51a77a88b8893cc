package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process can only restrict itself. So a sandboxed program is started by
// way of this very binary, which restricts itself and then becomes the
// program. What it should do travels over a socket, not on the command line;
// the same socket brings back why it could not, or its end: it is closed by a
// successful exec.

// sandboxArg as the first argument makes this binary such a go-between.
const sandboxArg = "__sandbox-exec"

// sandboxStart bounds the time from start to exec.
const sandboxStart = 30 * time.Second

var sandboxReady atomic.Bool

type sandboxRequest struct {
	Path    string
	Args    []string
	Sandbox Sandbox
}

type sandboxFailure struct {
	Errno  int    // of exec; 0 if it did not come to that
	Reason string // what else
}

// SandboxMain must be the first thing that main does, and TestMain. In the
// go-between it does not return; otherwise it only notes that it was called,
// without which a Spec with a Sandbox is refused: the go-between would be a
// second run of main.
func SandboxMain() {
	sandboxReady.Store(true)
	if len(os.Args) != 3 || os.Args[1] != sandboxArg {
		return
	}
	fd, err := strconv.Atoi(os.Args[2])
	if err != nil {
		os.Exit(2)
	}
	unix.CloseOnExec(fd)
	sock := os.NewFile(uintptr(fd), "sandbox")
	json.NewEncoder(sock).Encode(becomeProgram(sock))
	os.Exit(126)
}

// becomeProgram returns only if it failed.
func becomeProgram(sock io.Reader) sandboxFailure {
	var req sandboxRequest
	if err := json.NewDecoder(sock).Decode(&req); err != nil {
		return sandboxFailure{Reason: "read request: " + err.Error()}
	}
	// The system call filter is the thread's, and exec keeps that of the
	// thread which calls it.
	runtime.LockOSThread()
	if err := req.Sandbox.restrict(req.Path); err != nil {
		return sandboxFailure{Reason: err.Error()}
	}
	err := syscall.Exec(req.Path, append([]string{req.Path}, req.Args...), os.Environ())
	var errno syscall.Errno
	errors.As(err, &errno)
	return sandboxFailure{Errno: int(errno), Reason: "exec: " + err.Error()}
}

func (c *controller) startSandboxed(ctx context.Context, s Spec) (*Process, error) {
	if !sandboxReady.Load() {
		return nil, errors.New("start in a sandbox: this program does not call proc.SandboxMain first")
	}
	if err := Preflight(s.Path); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	request, err := json.Marshal(sandboxRequest{Path: path, Args: s.Args, Sandbox: *s.Sandbox})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	defer ours.Close()
	between := s
	between.Path = "/proc/self/exe"
	between.Args = []string{sandboxArg, strconv.Itoa(3 + len(s.ExtraFiles))}
	between.ExtraFiles = append(append([]*os.File(nil), s.ExtraFiles...), theirs)
	p, err := c.launch(ctx, between)
	theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s in a sandbox: %w", s.Path, err)
	}
	if err := handOver(ours, request); err != nil {
		p.Kill()
		p.Wait()
		return nil, sandboxError(path, err)
	}
	return p, nil
}

var errNotExeced = errors.New("sandbox go-between failed")

func handOver(sock *os.File, request []byte) error {
	sock.SetDeadline(now().Add(sandboxStart))
	if _, err := sock.Write(request); err != nil {
		return fmt.Errorf("%w: %w", errNotExeced, err)
	}
	var failed sandboxFailure
	switch err := json.NewDecoder(sock).Decode(&failed); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errNotExeced, err)
	case failed.Errno != 0:
		return syscall.Errno(failed.Errno)
	}
	return fmt.Errorf("%w: %s", errNotExeced, failed.Reason)
}

func sandboxError(path string, err error) error {
	if errors.Is(err, syscall.EACCES) {
		return unusable(path, "the sandbox denies it, or its interpreter; what it runs must be in a system folder or in ReadDirs", err)
	}
	if errors.Is(err, errNotExeced) {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return startError(path, "", err)
}

// socketPair makes a local stream; our end can be waited on with deadlines.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "sandbox"), os.NewFile(uintptr(fds[1]), "sandbox"), nil
}

func isDir(path string) (bool, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("sandbox path: %w", err)
	}
	return fi.IsDir(), nil
}
