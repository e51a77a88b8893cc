package explore

import (
	"os"
	"strings"
	"testing"
)

// TestNoViolation explores every scenario with all rules on.
func TestNoViolation(t *testing.T) {
	total := 0
	for _, sc := range scenarios {
		t.Run(strings.ReplaceAll(sc.Name, " ", "_"), func(t *testing.T) {
			if sc.Nightly && os.Getenv("BEEYARD_NIGHTLY") != "1" {
				t.Skip("skipped: large; set BEEYARD_NIGHTLY=1 to explore it")
			}
			res := newModel(sc, 0).search()
			total += res.states
			if res.broken != none {
				t.Fatal(res)
			}
			t.Log(res)
		})
	}
	t.Logf("%d states in all", total)
}
