// Command beeyard keeps agent work in directories: tasks, checkpoints,
// ledgers. See docs/cli.md for its commands, exit codes and output.
package main

import (
	"context"
	"os"

	"beeyard/internal/proc"
)

// version is set by the linker.
var version = "unknown"

func main() {
	proc.SandboxMain() // returns at once unless this is a sandboxed child
	os.Exit(newProgram().main(context.Background(), os.Args))
}
