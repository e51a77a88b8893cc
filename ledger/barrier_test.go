package ledger

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type contender struct {
	name string
	in   io.WriteCloser
	out  *bufio.Reader
	cmd  *exec.Cmd
}

// TestOneHolderOfAnExpiredLease: 30 processes reach for it at once.
func TestOneHolderOfAnExpiredLease(t *testing.T) {
	const processes = 30
	rounds := 40
	switch {
	case os.Getenv("BEEYARD_NIGHTLY") == "1":
		rounds = 200
	case testing.Short():
		rounds = 5
	}
	path := filepath.Join(t.TempDir(), "state.yml")
	var all []*contender
	for i := range processes {
		c := &contender{name: fmt.Sprint("w", i), cmd: exec.CommandContext(t.Context(), childBinary(t))}
		c.cmd.Env = append(os.Environ(), childVar+"=barrier "+path+" "+c.name, "GOMAXPROCS=1")
		c.cmd.Stderr = os.Stderr
		in, err := c.cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.in, c.out = in, bufio.NewReader(out)
		all = append(all, c)
	}
	for _, c := range all {
		if line := c.line(t); line != "ready" {
			t.Fatalf("%s said %q", c.name, line)
		}
	}
	for round := range rounds {
		expired := NewDocument()
		Acquire(expired, "gone", 60, at("2020-01-01T00:00:00Z"))
		if err := os.WriteFile(path, expired.Bytes(Native), 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now().Add(20 * time.Millisecond).UnixNano()
		for _, c := range all {
			if _, err := fmt.Fprintln(c.in, start); err != nil {
				t.Fatal(err)
			}
		}
		winner := ""
		for _, c := range all {
			switch line := c.line(t); line {
			case "STALE-RECLAIMED":
				if winner != "" {
					t.Errorf("round %d: %s and %s both have the lease", round, winner, c.name)
				}
				winner = c.name
			case "LOCKED LEASE-LOST":
			default:
				t.Fatalf("round %d: %s said %q", round, c.name, line)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(data)
		if err != nil {
			t.Fatal(err)
		}
		if l, _ := d.Lease(); winner == "" || l.Writer != winner {
			t.Fatalf("round %d: %q won, the file says %q", round, winner, l.Writer)
		}
	}
	for _, c := range all {
		c.in.Close()
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	t.Logf("MEASURED %d processes reached for an expired lease in %d rounds: one holder each", processes, rounds)
}

func (c *contender) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return strings.TrimSpace(line)
}
