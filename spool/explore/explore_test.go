package explore

import (
	"os"
	"testing"
)

func nightly() bool { return os.Getenv("BEEYARD_NIGHTLY") == "1" }

// TestNoViolation explores every scenario with all rules on.
func TestNoViolation(t *testing.T) {
	total := 0
	for _, sc := range scenarios {
		t.Run(underscored(sc.Name), func(t *testing.T) { total += explored(t, sc) })
	}
	t.Logf("%d states in all", total)
}

// TestNoViolationNightly explores the larger scenarios.
func TestNoViolationNightly(t *testing.T) {
	if !nightly() {
		t.Skipf("skipped: %d larger scenarios; set BEEYARD_NIGHTLY=1 (and -timeout 30m) to explore them", len(nightlyScenarios))
	}
	total := 0
	for _, sc := range nightlyScenarios {
		t.Run(underscored(sc.Name), func(t *testing.T) { total += explored(t, sc) })
	}
	t.Logf("%d states in all", total)
}

func explored(t *testing.T, sc Scenario) int {
	t.Helper()
	res := newModel(sc, 0).search()
	if res.broken != none {
		t.Fatal(res)
	}
	t.Log(res)
	return res.states
}
