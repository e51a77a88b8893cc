package ledger

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"beeyard/internal/proc"
)

// Git runs the user's own git, so that credentials, hooks and configuration are
// those of that user. Text from a ledger reaches it on stdin only.
type Git struct {
	path string
	env  []string
}

// Bounds of one git command: the network may hang, a hook may print for ever.
const (
	gitTimeout = 2 * time.Minute
	gitGrace   = 5 * time.Second
	gitOutput  = MaxBytes
)

// repositoryVars are set while a git hook runs and would point every command at
// the hook's repository, index and objects.
var repositoryVars = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_REFLOG_ACTION",
	"GIT_TERMINAL_PROMPT", "LC_ALL", "GIT_OPTIONAL_LOCKS", "GIT_LITERAL_PATHSPECS"}

// NewGit finds git on the PATH of the environment, which git then gets, less
// what ties it to another repository. It never asks at a terminal.
func NewGit(environ []string) (*Git, error) {
	g := &Git{}
	path := ""
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" {
			path = value
		}
		if !slices.Contains(repositoryVars, name) {
			g.env = append(g.env, kv)
		}
	}
	g.env = append(g.env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_LITERAL_PATHSPECS=1")
	var err error
	if g.path, err = proc.Lookup("git", path); err != nil {
		return nil, fmt.Errorf("find git: %w", err)
	}
	return g, nil
}

// gitError is a git command that ended with an exit code.
type gitError struct {
	verb   string
	code   int
	stderr string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: exit %d: %s", e.verb, e.code, e.stderr)
}

// run runs git in a folder and returns its output.
func (g *Git) run(ctx context.Context, dir string, stdin []byte, args ...string) (string, error) {
	verb := args[0]
	// No collection in the background: it would outlive the command.
	args = append([]string{"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.quotePath=false"}, args...)
	out, errOut, res, err := proc.Run(ctx, proc.Spec{Path: g.path, Args: args, Env: g.env, Dir: dir, Stdin: stdin,
		Timeout: gitTimeout, Grace: gitGrace}, gitOutput)
	switch {
	case err != nil:
		return "", fmt.Errorf("git %s: %w", verb, err)
	case res.Stopped != "":
		return "", fmt.Errorf("git %s: stopped: %w", verb, context.Cause(ctx))
	case res.TimedOut:
		return "", fmt.Errorf("git %s: %w after %v", verb, context.DeadlineExceeded, gitTimeout)
	case res.ExitCode != 0:
		return string(out), &gitError{verb, res.ExitCode, said(string(errOut))}
	}
	return string(out), nil
}

var secretInURL = regexp.MustCompile(`//[^/@\s]+@`)

// said bounds what git and its hooks printed and takes credentials out of URLs.
func said(s string) string {
	s = secretInURL.ReplaceAllString(strings.TrimSpace(s), "//***@")
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}
