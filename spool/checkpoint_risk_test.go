package spool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func chkFailure(id string) failure {
	return failure{id: id, reason: "exit 1", at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func TestRiskLineIsOneLineAndKnownAgain(t *testing.T) {
	for _, id := range []string{"t1", "with space", `quo"te`, "é", strings.Repeat("x", 240)} {
		f := failure{id: id, reason: "line\nbreak\x00 and ~abc123", at: time.Now()}
		line := f.line()
		if strings.ContainsAny(line, "\n\x00") {
			t.Errorf("%q is not one line of text", line)
		}
		if got, ours := failureOf(line); !ours || got != id {
			t.Errorf("%q is read as %q, %v", line, got, ours)
		}
		for _, edited := range []string{line + ".", " " + line, strings.Replace(line, "failed", "Failed", 1), strings.Replace(line, "line", "lime", 1), line[:len(line)-1], line + "\r"} {
			if _, ours := failureOf(edited); ours {
				t.Errorf("%q, which a person has changed, is taken for ours", edited)
			}
		}
	}
	for _, line := range []string{"", "failed", "failed ~abcdef", "failed  ~abcdef" + mark("failed  ~abcdef"), "failed x" + mark("failed x")} {
		if id, ours := failureOf(line); ours {
			t.Errorf("%q is taken for ours, about %q", line, id)
		}
	}
}

// Whatever people write around them: their text stays, byte for byte, and the
// lines stay bounded.
func TestRiskNeverDropsWhatAPersonWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z\r]{0,3}|failed t1|\n| ~|é){0,8}`)
		risk := text.Draw(t, "person")
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			if rapid.Bool().Draw(t, "a person edits") {
				risk = text.Draw(t, "before") + risk + text.Draw(t, "behind")
				continue
			}
			var add []failure
			for range rapid.IntRange(0, 15).Draw(t, "failures") {
				add = append(add, chkFailure(fmt.Sprintf("t%d", rapid.IntRange(0, 20).Draw(t, "id"))))
			}
			done := rapid.SliceOfN(rapid.SampledFrom([]string{"t1", "t2", "t3"}), 0, 2).Draw(t, "done")
			before := risk
			risk = withFailures(risk, add, done)
			if theirsOf(risk) != theirsOf(before) {
				t.Fatalf("what a person wrote in %q became %q", before, risk)
			}
			ours := map[string]bool{}
			for line := range strings.SplitSeq(risk, "\n") {
				if id, is := failureOf(line); is && (ours[id] && len(add) > 0 && id == add[len(add)-1].id) {
					t.Fatalf("%s stands twice in %q", id, risk)
				} else if is {
					ours[id] = true
				}
			}
			if len(ours) > maxFailures {
				t.Fatalf("%d failures in %q", len(ours), risk)
			}
			for _, id := range done {
				if ours[id] {
					t.Fatalf("%s is done and still a blocker in %q", id, risk)
				}
			}
			if n := len(add); n > 0 && !ours[add[n-1].id] && !slices.Contains(done, add[n-1].id) {
				t.Fatalf("the last failure is not in %q", risk)
			}
		}
	})
}

// theirsOf is what stays when our lines are taken out.
func theirsOf(risk string) string {
	var lines []string
	for line := range strings.SplitSeq(risk, "\n") {
		if _, ours := failureOf(line); !ours {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
