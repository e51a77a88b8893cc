package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sandboxRun is a run as a handler sees it: it may write its own work folder
// and its own artifact, and nothing beside them.
type sandboxRun struct {
	root, work, artifact, other, status, token, otherRun string
}

func newSandboxRun(t *testing.T) sandboxRun {
	t.Helper()
	root := t.TempDir()
	r := sandboxRun{root: root, work: root + "/run/work", artifact: root + "/run/artifacts/mine.md",
		other: root + "/run/artifacts/other.md", status: root + "/run/status.json", token: root + "/token",
		otherRun: root + "/run2/secret"}
	for _, file := range []string{r.work + "/keep", r.artifact, r.other, r.status, r.token, r.otherRun} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("original"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r sandboxRun) unharmed(t *testing.T) {
	t.Helper()
	for _, file := range []string{r.other, r.status, r.token, r.otherRun} {
		if b, err := os.ReadFile(file); err != nil || string(b) != "original" {
			t.Errorf("%s is now %q, %v", file, b, err)
		}
	}
	if _, err := os.Lstat(r.root + "/run/beside"); err == nil {
		t.Error("a file was made beside the work folder")
	}
}

// sandboxed runs a shell script, or a helper of this binary, in the sandbox
// and returns what it printed.
func sandboxed(t *testing.T, c *controller, r sandboxRun, helper, script string, extra ...*os.File) (string, Result) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out safeBuffer
	capture, err := NewCapture(&out, &out)
	if err != nil {
		t.Fatal(err)
	}
	s := sh(script)
	if helper != "" {
		s = Spec{Path: self, Args: strings.Fields(script), Env: asHelper(helper)}
	}
	s.Dir, s.Stdout, s.Stderr, s.ExtraFiles = r.work, capture.Stdout(), capture.Stderr(), extra
	s.Sandbox = &Sandbox{WriteDirs: []string{r.work, r.artifact}, ReadDirs: []string{r.status}, NetworkOff: true}
	res := c.mustRun(t, s)
	capture.Close()
	return out.String(), res
}

func needsSandbox(t *testing.T, has bool, what string) {
	t.Helper()
	if !has {
		t.Skipf("NOT ENFORCED HERE: %s (%v)", what, SandboxStatus())
	}
}

func init() {
	helpers["dial"] = func(args []string) int {
		d := net.Dialer{Timeout: bound}
		d.SetMultipathTCP(args[0] == "mptcp")
		conn, err := d.Dial(strings.TrimPrefix(args[0], "mp"), args[1])
		if err != nil {
			fmt.Println("denied:", err)
			return 1
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			fmt.Println("denied:", err)
			return 1
		}
		return 0
	}
	helpers["listen"] = func(args []string) int {
		var lc net.ListenConfig
		lc.SetMultipathTCP(args[0] == "mptcp")
		l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println("denied:", err)
			return 1
		}
		fmt.Println(l.Addr())
		return 0
	}
	helpers["socket"] = func(args []string) int {
		family, _ := strconv.Atoi(args[0])
		_, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
		if err != nil {
			fmt.Println("denied:", err)
			return 1
		}
		return 0
	}
	helpers["uring"] = func([]string) int {
		if _, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 8, 0, 0); errno != unix.ENOSYS {
			fmt.Println("io_uring_setup:", errno)
			return 1
		}
		return 0
	}
}

// The twelve escape attempts.
func TestSandboxEscapes(t *testing.T) {
	st := SandboxStatus()
	t.Log(st)
	eachLevel(t, func(t *testing.T, c *controller) {
		// denied runs an attempt that prints "escaped" if it succeeds. That it
		// got so far as to try is shown by "tried"; that it is an attempt at
		// all, by its success without a sandbox.
		denied := func(t *testing.T, script string, free bool) {
			t.Helper()
			fill := func(r sandboxRun) string {
				return "echo tried; " + strings.NewReplacer("RUN", r.root+"/run", "ROOT", r.root, "OTHER", r.other).Replace(script) + " && echo escaped"
			}
			if free {
				r := newSandboxRun(t)
				s := sh(fill(r))
				s.Dir, s.Stdout = r.work, outFile(t)
				c.mustRun(t, s)
				if out := content(t, s.Stdout); !strings.HasSuffix(out, "escaped") {
					t.Errorf("does not succeed without a sandbox: %q", out)
				}
			}
			r := newSandboxRun(t)
			out, res := sandboxed(t, c, r, "", fill(r))
			if !strings.HasPrefix(out, "tried\n") || strings.Contains(out, "escaped") || res.Abandoned {
				t.Errorf("got %q, %+v", out, res)
			}
			r.unharmed(t)
		}
		for _, tc := range []struct{ name, script string }{
			{"write beside the run", "echo x >RUN/beside"},
			{"write through ..", "echo x >../beside"},
			{"write through a link of its own", "ln -s RUN link && echo x >link/beside"},
			{"hard link out", "ln OTHER mine && echo x >mine"},
			{"move in", "mv OTHER mine"},
			{"over another task's artifact", "echo x >OTHER"},
			{"remove another task's artifact", "rm -f OTHER"},
			{"truncate another task's artifact", "truncate -s 0 OTHER"},
			{"over status.json", "echo x >RUN/status.json"},
			{"replace status.json", "echo x >new && mv -f new RUN/status.json"},
			{"read the token", "cat ROOT/token"},
			{"read another run", "cat ROOT/run2/secret"},
			{"list the root", "ls ROOT"},
			{"read the worker's environment", "cat /proc/" + strconv.Itoa(os.Getpid()) + "/environ"},
			{"write from a grandchild after setsid", "setsid sh -c 'sleep 0.05; echo x >RUN/beside && echo escaped' & wait; false"},
			{"leave its cgroup", "echo 0 >/sys/fs/cgroup/unified/cgroup.procs || echo 0 >/sys/fs/cgroup/cgroup.procs"},
			{"trace the worker", "head -c 1 /proc/" + strconv.Itoa(os.Getpid()) + "/auxv | grep -q ."},
			{"set the clock", "date -s now"},
			{"make a device", "mknod dev c 1 3"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				needsSandbox(t, st.Files && st.Truncate, "files")
				denied(t, tc.script, os.Geteuid() == 0)
			})
		}
		t.Run("write through an inherited descriptor", func(t *testing.T) {
			needsSandbox(t, st.Files, "files")
			// A descriptor that is open here, even one not marked close-on-exec,
			// is not open there; one given to be read is not written through
			// /proc.
			r := newSandboxRun(t)
			leak, err := unix.Open(r.other, unix.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(leak)
			closeOnExec() // as at the first start, for what a parent left open
			given, err := os.Open(r.other)
			if err != nil {
				t.Fatal(err)
			}
			defer given.Close()
			out, _ := sandboxed(t, c, r, "", fmt.Sprintf("ls /proc/self/fd; echo x >&%d && echo escaped; echo x >/proc/self/fd/3 && echo escaped", leak), given)
			if strings.Contains(out, "escaped") || strings.Contains(out, fmt.Sprintf("\n%d\n", leak)) {
				t.Errorf("got %q", out)
			}
			r.unharmed(t)
		})
		t.Run("signal the worker", func(t *testing.T) {
			needsSandbox(t, st.Signals, "signals")
			victim := exec.Command("/bin/sleep", "3600")
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { victim.Process.Kill(); victim.Wait() }()
			denied(t, fmt.Sprintf("kill -0 %d", os.Getpid()), true)
			denied(t, fmt.Sprintf("kill -9 %d", victim.Process.Pid), false)
			denied(t, fmt.Sprintf("setsid sh -c 'kill -9 %d'", victim.Process.Pid), false)
			if s, err := readStat(victim.Process.Pid); err != nil || !s.live() {
				t.Error("a process outside was killed")
			}
		})
		t.Run("network", func(t *testing.T) {
			needsSandbox(t, st.Network, "network off")
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			u, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			for _, tc := range []struct{ helper, args string }{
				{"dial", "tcp " + l.Addr().String()},
				{"dial", "mptcp " + l.Addr().String()},
				{"dial", "udp " + u.LocalAddr().String()},
				{"listen", "tcp"},
				{"listen", "mptcp"},
				{"socket", strconv.Itoa(unix.AF_INET6)},
				{"socket", strconv.Itoa(unix.AF_NETLINK)},
				{"socket", strconv.Itoa(unix.AF_VSOCK)},
			} {
				out, res := sandboxed(t, c, newSandboxRun(t), tc.helper, tc.args)
				if res.ExitCode != 1 || !strings.Contains(out, "denied:") {
					t.Errorf("%s %s: %+v, %q", tc.helper, tc.args, res, out)
				}
			}
			if out, res := sandboxed(t, c, newSandboxRun(t), "uring", ""); !res.OK() {
				t.Errorf("io_uring: %+v, %q", res, out)
			}
			if out, res := sandboxed(t, c, newSandboxRun(t), "socket", strconv.Itoa(unix.AF_UNIX)); !res.OK() {
				t.Errorf("a local socket: %+v, %q", res, out)
			}
		})
	})
}

// What is not forbidden works as without a sandbox.
func TestSandboxAllows(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		r := newSandboxRun(t)
		out, res := sandboxed(t, c, r, "", strings.NewReplacer("RUN", r.root+"/run", "MINE", r.artifact).Replace(`
			set -e
			echo new >file; mkdir -p a b; mv file a/; mv a/file b/; ln b/file a/; cat b/file; rm -r a
			echo artifact >MINE; cat MINE; cat RUN/status.json; echo
			ls /usr/bin >/dev/null; echo x >/dev/null; echo dev >/dev/stderr
			setsid sh -c 'echo grandchild'
			sleep 60 & kill $! && echo killed its own`))
		want := "new\nartifact\noriginal\ndev\ngrandchild\nkilled its own\n"
		if !res.OK() || out != want {
			t.Errorf("got %+v, %q; want %q", res, out, want)
		}
		r.unharmed(t)
	})
}

// All that Start promises holds in a sandbox too.
func TestSandboxedTree(t *testing.T) {
	eachLevel(t, func(t *testing.T, c *controller) {
		dir := t.TempDir()
		box := &Sandbox{WriteDirs: []string{dir}}
		s := sh("cat; echo ${#0} $A; exit 75")
		s.Args = append(s.Args, "arg0")
		s.Env, s.Stdin, s.Stdout, s.Sandbox = append(s.Env, "A=b"), []byte("in "), outFile(t), box
		if r := c.mustRun(t, s); r.ExitCode != 75 {
			t.Errorf("got %+v", r)
		}
		if got := content(t, s.Stdout); got != "in 4 b" {
			t.Errorf("output %q", got)
		}
		m := mark()
		s = sh("setsid sleep " + m + " & wait")
		s.Sandbox, s.Timeout, s.Grace = box, time.Second, 0
		if r := c.mustRun(t, s); !r.TimedOut {
			t.Errorf("got %+v", r)
		}
		noneLeft(t, m)
		if r := c.mustRun(t, func() Spec { s := sh("kill -9 $$"); s.Sandbox = box; return s }()); r.Signal != "SIGKILL" {
			t.Errorf("got %+v", r)
		}
		l := startLines(t, c, func() Spec { s := sh(echoLines); s.Sandbox = box; return s }())
		if got, err := l.Do(t.Context(), []byte("x"), bound); err != nil || string(got) != "answer x" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestSandboxErrors(t *testing.T) {
	dir := t.TempDir()
	crlf := script(t, "#!/bin/sh\r\n")
	plain := script(t, "exit 0\n")
	for _, tc := range []struct {
		name, path string
		box        Sandbox
		unusable   bool
		reason     string
	}{
		{"missing program", dir + "/missing", Sandbox{}, true, "does not exist"},
		{"CRLF", crlf, Sandbox{}, true, "CRLF"},
		{"no #! line", plain, Sandbox{}, true, "#! line"},
		{"missing folder", "/bin/true", Sandbox{WriteDirs: []string{dir + "/missing"}}, false, dir + "/missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Start(context.Background(), Spec{Path: tc.path, Sandbox: &tc.box})
			if err == nil {
				p.Kill()
				p.Wait()
			}
			if err == nil || errors.Is(err, ErrUnusable) != tc.unusable || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("interpreter out of reach", func(t *testing.T) {
		needsSandbox(t, SandboxStatus().Files, "files")
		interpreter := filepath.Join(t.TempDir(), "sh")
		b, err := os.ReadFile("/bin/sh")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(interpreter, b, 0o755); err != nil {
			t.Fatal(err)
		}
		path := script(t, "#!"+interpreter+"\nexit 0\n")
		_, err = Start(context.Background(), Spec{Path: path, Sandbox: &Sandbox{}})
		if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "ReadDirs") {
			t.Errorf("got %v", err)
		}
		p, err := Start(context.Background(), Spec{Path: path, Sandbox: &Sandbox{ReadDirs: []string{filepath.Dir(interpreter)}}})
		if err != nil {
			t.Fatal(err)
		}
		if r := waitFor(t, p); !r.OK() {
			t.Errorf("with ReadDirs: %+v", r)
		}
	})
}

func TestSandboxStatus(t *testing.T) {
	st := SandboxStatus()
	t.Logf("%s/%s: %v", runtime.GOOS, runtime.GOARCH, st)
	for r, want := range map[SandboxReport]string{
		{}: "NOT enforced",
		{Landlock: 2, Files: true, Network: true}:                                           "NOT enforced: truncation, signals",
		{Landlock: 7, Files: true, Truncate: true, TCP: true, Signals: true, Network: true}: "enforced (Landlock 7",
	} {
		if got := r.String(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
		if r.Full() != strings.HasPrefix(r.String(), "enforced") {
			t.Errorf("%+v: Full is %v", r, r.Full())
		}
	}
}
