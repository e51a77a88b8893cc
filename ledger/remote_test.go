package ledger

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"beeyard/internal/clock"
)

const ledgerPath = "docs/feedback-sweep/state.yml"

// gitEnv keeps the machine's own git configuration out of the tests.
func gitEnv(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME=" + home}
}

// remote is a bare repository and the clones of several machines.
type remote struct {
	t    *testing.T
	bare string
	home string
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIP: no git here")
	}
	dir := t.TempDir()
	r := &remote{t, filepath.Join(dir, "remote.git"), filepath.Join(dir, "home")}
	if err := os.Mkdir(r.home, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git(dir, "init", "--quiet", "--bare", "-b", "main", r.bare)
	seed := filepath.Join(dir, "seed")
	r.git(dir, "init", "--quiet", "-b", "main", seed)
	r.write(filepath.Join(seed, "README"), "hello\n")
	r.write(filepath.Join(seed, "src", "main.c"), "int main;\n")
	r.git(seed, "add", ".")
	r.git(seed, "commit", "--quiet", "-m", "start")
	r.git(seed, "push", "--quiet", r.bare, "main")
	return r
}

func (r *remote) git(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=Tester", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Dir, cmd.Env = dir, gitEnv(r.home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *remote) write(path, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// clone is one machine.
func (r *remote) clone(name string) string {
	r.t.Helper()
	dir := filepath.Join(filepath.Dir(r.bare), name)
	r.git(filepath.Dir(r.bare), "clone", "--quiet", r.bare, dir)
	return dir
}

func (r *remote) branch(clone, spec string) *Branch {
	r.t.Helper()
	g, err := NewGit(gitEnv(r.home))
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := OpenBranch(r.t.Context(), g, filepath.Join(clone, ledgerPath), spec, clock.Real())
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

// shared reads the ledger that the remote has.
func (r *remote) shared(branch string) *Document {
	r.t.Helper()
	d, err := Read([]byte(r.git(r.bare, "show", branch+":"+ledgerPath) + "\n"))
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}
