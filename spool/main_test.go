package spool

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv tells this test binary which of testChildren it is, when a test
// starts it as another process.
const childEnv = "SPOOL_TEST_CHILD"

// testChildren are filled by the init functions of the test files that use them.
var testChildren = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := testChildren[name](os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
