package strict

import (
	"fmt"
	"strings"
)

// Unknown words the refusal of a name that is not in known, with the nearest
// known one when it is near enough to be what was meant: `unknown key "tire",
// did you mean "tier"?`. what is "key", "sweeper" and the like.
func Unknown(what, name string, known []string) string {
	text := fmt.Sprintf("unknown %s %q", what, clip(name))
	best, least := "", max(2, len(name)/3)+1
	if len(name) > 64 {
		return text
	}
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best == "" {
		return text
	}
	return text + fmt.Sprintf(", did you mean %q?", best)
}

// distance counts the letters to insert, drop, change or swap with their
// neighbour (optimal string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}
