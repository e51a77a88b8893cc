package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard/internal/clock"
)

// call is one run of the program within the test, with an environment of its own.
type call struct {
	env   map[string]string
	stdin string
	bound time.Duration // 0: as long as a test may wait
}

// lockedBuffer takes what several goroutines write, as a file does.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type answer struct {
	code           int
	stdout, stderr string
}

func (c call) run(t testing.TB, args ...string) answer {
	t.Helper()
	bound := c.bound
	if bound == 0 {
		bound = patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var out, errs lockedBuffer
	p := &program{stdin: strings.NewReader(c.stdin), stdout: &out, stderr: &errs, clock: clock.Real(),
		getenv: func(name string) (string, bool) {
			v, ok := c.env[name]
			if !ok && name == "PATH" {
				return os.LookupEnv(name)
			}
			return v, ok
		}}
	code := p.main(ctx, append([]string{"beeyard"}, args...))
	return answer{code, out.String(), errs.String()}
}

// yard is a root with a run "r" that has a task in each state that a command
// can meet: ready, blocked, held, claimed (token), done (with output), failed.
type yard struct {
	root  string
	token string
}

func (y yard) env() map[string]string {
	return map[string]string{"BEEYARD_ROOT": y.root, "BEEYARD_RUN": "r", "HOME": filepath.Dir(y.root)}
}

func (y yard) path(parts ...string) string {
	return filepath.Join(append([]string{y.root, "r"}, parts...)...)
}

func newYard(t testing.TB) yard {
	t.Helper()
	y := yard{root: filepath.Join(t.TempDir(), ".swarm")}
	c := call{env: y.env()}
	must0 := func(a answer) answer {
		t.Helper()
		if a.code != 0 {
			t.Fatalf("exit %d: %s%s", a.code, a.stdout, a.stderr)
		}
		return a
	}
	must0(c.run(t, "run", "new", "r", "--json"))
	c.stdin = `{"id":"ready","type":"x"}
{"id":"blocked","type":"x","depends_on":["failed"]}
{"id":"held","type":"x","hold":true}
{"id":"claimed","type":"c"}
{"id":"done","type":"d"}
{"id":"failed","type":"f"}
`
	must0(c.run(t, "enqueue", "-f", "-", "--json"))
	claim := func(typ string) string {
		a := must0(c.run(t, "claim", "--worker-id", "w", "--type", typ))
		v, err := oneJSON([]byte(a.stdout))
		if err != nil {
			t.Fatal(err)
		}
		token, err := at(v, "token")
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	token := claim("d")
	c.stdin = "output"
	must0(c.run(t, "complete", "--task", "done", "--token", token, "--artifact", "-"))
	must0(c.run(t, "complete", "--task", "failed", "--token", claim("f"), "--failure", "--final"))
	if err := os.WriteFile(y.path("artifacts", "done.log"), []byte("a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	y.token = claim("c")
	return y
}

// copy makes the same yard again: cheaper than building each.
func (y yard) copy(t testing.TB) yard {
	t.Helper()
	to := filepath.Join(t.TempDir(), ".swarm")
	if err := os.CopyFS(to, os.DirFS(y.root)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	return yard{root: to, token: y.token}
}
