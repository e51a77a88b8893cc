package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// shebangMax is how much of a first line Linux looks at (BINPRM_BUF_SIZE).
const shebangMax = 256

// Preflight looks whether path can be run, without running it. A nil result is
// no promise: the kernel has the last word. An error matches ErrUnusable and
// says precisely what is wrong.
func Preflight(path string) error { return preflight(path, os.Getenv("PATH")) }

func preflight(path, searchPath string) error {
	if path == "" {
		return unusable(`""`, "no program is named", nil)
	}
	if err := runnable(path); err != nil {
		return err
	}
	// Opened only after it proved to be a regular file: opening a FIFO would
	// wait for its writer. NONBLOCK covers one put there in between.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a program may be run without being readable
	}
	if err != nil {
		return unusable(path, reason(err), err)
	}
	defer f.Close()
	head := make([]byte, shebangMax)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return unusable(path, "it is an empty file", nil)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return unusable(path, "it cannot be read: "+reason(err), err)
	}
	return checkShebang(path, head[:n], searchPath)
}

// runnable checks what the file system says of path.
func runnable(path string) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, lerr := os.Lstat(path); lerr == nil {
			return unusable(path, "it is a link to nothing", err)
		}
		return unusable(path, "it does not exist", err)
	case err != nil:
		return unusable(path, reason(err), err)
	case fi.IsDir():
		return unusable(path, "it is a folder", nil)
	case !fi.Mode().IsRegular():
		return unusable(path, "it is not a regular file", nil)
	case fi.Mode().Perm()&0o111 == 0:
		return unusable(path, "it has no run bit (chmod +x sets it)", nil)
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return unusable(path, "this user may not run it (permission bits, or a noexec mount)", err)
	}
	return nil
}

func checkShebang(path string, head []byte, searchPath string) error {
	if !bytes.HasPrefix(head, []byte("#!")) {
		return nil
	}
	line, _, whole := bytes.Cut(head[2:], []byte("\n"))
	if bytes.HasSuffix(line, []byte("\r")) {
		return unusable(path, "its first line ends in CRLF; save it with Unix line ends", nil)
	}
	fields := strings.Fields(string(line))
	if len(fields) == 0 {
		return unusable(path, "its #! line names no interpreter", nil)
	}
	if !whole && len(head) == shebangMax && len(fields) == 1 {
		return unusable(path, fmt.Sprintf("its #! line is longer than %d bytes", shebangMax), nil)
	}
	interpreter := fields[0]
	if err := runnable(interpreter); err != nil {
		var u *UnusableError
		errors.As(err, &u)
		return unusable(path, fmt.Sprintf("its interpreter %s: %s", interpreter, u.Reason), u.Err)
	}
	if filepath.Base(interpreter) != "env" {
		return nil
	}
	name := envProgram(fields[1:])
	if name == "" || strings.Contains(name, "/") {
		return nil
	}
	if _, err := Lookup(name, searchPath); err != nil {
		return unusable(path, fmt.Sprintf("its interpreter %q is not on PATH (%s)", name, searchPath), err)
	}
	return nil
}

// envProgram is the program that `env args…` would run, or empty if that is
// more than this wants to know.
func envProgram(args []string) string {
	for _, a := range args {
		switch {
		case a == "-S", a == "-i", strings.Contains(a, "="):
		case strings.HasPrefix(a, "-"):
			return ""
		default:
			return a
		}
	}
	return ""
}

// Lookup finds name in searchPath (the form of PATH) as execvp would; a name
// with a slash is returned as it is. Empty and relative entries are skipped:
// they would run whatever lies in the current folder.
func Lookup(name, searchPath string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var denied error
	for _, dir := range filepath.SplitList(searchPath) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		err := runnable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", unusable(name, "it is not on PATH", fs.ErrNotExist)
}
