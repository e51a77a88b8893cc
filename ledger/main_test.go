package ledger

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if child := os.Getenv("LEDGER_TEST_CHILD"); child != "" {
		os.Exit(runChild(child))
	}
	goleak.VerifyTestMain(m)
}

// runChild is this binary as another process; see barrier_test.go.
func runChild(string) int { return 2 }
