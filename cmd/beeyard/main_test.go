package main

import (
	"os"
	"testing"

	"beeyard/internal/proc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	proc.SandboxMain() // a sandboxed child of a command run in this process starts here
	// The machine's own settings must not decide what tests see.
	for _, name := range inherited() {
		os.Unsetenv(name)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBinary()
		os.Exit(code)
	}))
}
