package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSignalEndsWhoWaitsForInput: a read of a pipe cannot be called off, and
// TERM must end the command all the same.
func TestSignalEndsWhoWaitsForInput(t *testing.T) {
	r := makeRun(t)
	for _, args := range [][]string{
		{"enqueue", "--run", r.Location(), "-f", "-"},
		{"each", "--run", r.Location(), "--", "/bin/true"},
		{"enqueue", "--run", r.Location(), "--id", "a", "--type", "t", "--payload-file", "-"},
	} {
		in, out, err := os.Pipe()
		must(t, err)
		cmd := exec.CommandContext(testContext(t), binary(t), args...)
		cmd.Stdin = in
		must(t, cmd.Start())
		must(t, in.Close())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// The signal counts once the program has put its handler up; one that comes
		// before that ends it too.
		time.Sleep(200 * time.Millisecond)
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%v: exit 0 after TERM", args)
			}
		case <-time.After(testBound):
			t.Fatalf("%v: TERM does not end it", args)
		}
		must(t, out.Close())
	}
}
