package beeyard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"beeyard"

	"pgregory.net/rapid"
)

func settle(t testing.TB, task *beeyard.Task, s beeyard.Settlement) *beeyard.Task {
	t.Helper()
	next, err := task.Settle(s, "0:w~abcdefghijklmnop", now, 0)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestSettle(t *testing.T) {
	lim := beeyard.Limits{MaxAttempts: 2, MaxDeaths: 2, Backoff: time.Second}
	task := &beeyard.Task{ID: "t", CreatedAt: "2026-01-01T00:00:00Z", TierHint: "haiku"}
	for _, c := range []struct {
		name    string
		ext     beeyard.Ext
		s       beeyard.Settlement
		place   beeyard.Place
		outcome beeyard.Outcome
		attempt int
	}{
		{"done", beeyard.Ext{}, beeyard.Settlement{Outcome: beeyard.OutcomeDone}, beeyard.PlaceDone, beeyard.OutcomeDone, 1},
		{"first failure", beeyard.Ext{}, beeyard.Settlement{Outcome: beeyard.OutcomeRetry}, beeyard.PlaceHeld, beeyard.OutcomeRetry, 1},
		{"last failure", beeyard.Ext{Attempt: 1}, beeyard.Settlement{Outcome: beeyard.OutcomeRetry}, beeyard.PlaceFailed, beeyard.OutcomeFailed, 2},
		{"deaths are no failures", beeyard.Ext{Attempt: 5, Deaths: 5}, beeyard.Settlement{Outcome: beeyard.OutcomeRetry}, beeyard.PlaceHeld, beeyard.OutcomeRetry, 6},
		{"final", beeyard.Ext{}, beeyard.Settlement{Outcome: beeyard.OutcomeFailed, Final: true}, beeyard.PlaceFailed, beeyard.OutcomeFailed, 1},
		{"no attempt spent", beeyard.Ext{Attempt: 1}, beeyard.Settlement{Outcome: beeyard.OutcomeRetry, NoSpend: true, RetryAfter: time.Minute}, beeyard.PlaceHeld, beeyard.OutcomeRetry, 1},
		{"release", beeyard.Ext{Attempt: 1}, beeyard.Settlement{Outcome: beeyard.OutcomeRelease}, beeyard.PlacePending, beeyard.OutcomeRelease, 1},
		{"first death", beeyard.Ext{}, beeyard.Settlement{Outcome: beeyard.OutcomeReaped}, beeyard.PlacePending, beeyard.OutcomeReaped, 1},
		{"last death", beeyard.Ext{Attempt: 1, Deaths: 1}, beeyard.Settlement{Outcome: beeyard.OutcomeReaped}, beeyard.PlaceFailed, beeyard.OutcomeFailed, 2},
		{"escalate", beeyard.Ext{}, beeyard.Settlement{Outcome: beeyard.OutcomeEscalate, Tier: "opus"}, beeyard.PlacePending, beeyard.OutcomeEscalate, 1},
		{"no tier left", beeyard.Ext{}, beeyard.Settlement{Outcome: beeyard.OutcomeEscalate}, beeyard.PlaceFailed, beeyard.OutcomeFailed, 1},
		{"canceled", beeyard.Ext{Attempt: 1}, beeyard.Settlement{Outcome: beeyard.OutcomeCanceled}, beeyard.PlaceFailed, beeyard.OutcomeCanceled, 1},
		{"a hold outlives a release", beeyard.Ext{Hold: &beeyard.Hold{}}, beeyard.Settlement{Outcome: beeyard.OutcomeRelease}, beeyard.PlaceHeld, beeyard.OutcomeRelease, 0},
		{"a not-before outlives a death", beeyard.Ext{NotBefore: beeyard.FormatTime(now.Add(time.Hour))}, beeyard.Settlement{Outcome: beeyard.OutcomeReaped}, beeyard.PlaceHeld, beeyard.OutcomeReaped, 1},
		{"retry by a person counts anew", beeyard.Ext{Attempt: 2, AttemptBase: 2}, beeyard.Settlement{Outcome: beeyard.OutcomeRetry}, beeyard.PlaceHeld, beeyard.OutcomeRetry, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			old := *task
			old.Ext = c.ext
			c.s.Limits = lim
			n := settle(t, &old, c.s)
			if n.Ext.Target != c.place || n.Ext.Outcome != c.outcome || n.Ext.Attempt != c.attempt {
				t.Fatalf("to %s as %s, attempt %d", n.Ext.Target, n.Ext.Outcome, n.Ext.Attempt)
			}
		})
	}
	if n := settle(t, &beeyard.Task{Ext: beeyard.Ext{Deaths: 2, Attempt: 2}}, beeyard.Settlement{Outcome: beeyard.OutcomeReaped}); n.Ext.Reason != "worker died 3 times" {
		t.Fatalf("reason %q", n.Ext.Reason)
	}
	if _, err := task.Settle(beeyard.Settlement{Outcome: "odd"}, "", now, 0); !errors.Is(err, beeyard.ErrUsage) {
		t.Fatalf("unknown outcome: %v", err)
	}
}

// Whatever happens to a task: the revision rises by one each time, its life
// stays, attempts never fall, deaths never exceed attempts, the old body is
// untouched, and a finished target comes with a finished outcome.
func TestSettleInvariants(t *testing.T) {
	outcomes := []beeyard.Outcome{beeyard.OutcomeDone, beeyard.OutcomeFailed, beeyard.OutcomeRetry, beeyard.OutcomeEscalate, beeyard.OutcomeRelease,
		beeyard.OutcomeCanceled, beeyard.OutcomeReaped, beeyard.OutcomeHold, beeyard.OutcomeUnhold, beeyard.OutcomeRequeue}
	rapid.Check(t, func(t *rapid.T) {
		task := &beeyard.Task{ID: "t", CreatedAt: "2026-01-01T00:00:00Z", Ext: beeyard.Ext{UID: "u"}}
		for range rapid.IntRange(1, 250).Draw(t, "settles") {
			before, err := task.Encode()
			if err != nil {
				t.Fatal(err)
			}
			next, err := task.Settle(beeyard.Settlement{
				Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), NoSpend: rapid.Bool().Draw(t, "no spend"),
				Tier: rapid.SampledFrom([]string{"", "opus"}).Draw(t, "tier"),
			}, "1:w~abcdefghijklmnop", now, rapid.Float64Range(0, 0.999).Draw(t, "jitter"))
			if err != nil {
				t.Fatal(err)
			}
			if after, err := task.Encode(); err != nil || string(after) != string(before) {
				t.Fatal("the old body was changed")
			}
			e := next.Ext
			if e.Rev != task.Ext.Rev+1 || next.Life() != task.Life() || e.Attempt < task.Ext.Attempt || e.Deaths > e.Attempt {
				t.Fatalf("%+v after %+v", e, task.Ext)
			}
			if len(e.Attempts) > beeyard.MaxHistory || len(e.Attempts)+e.Dropped != int(e.Rev) {
				t.Fatalf("history of %d, %d dropped, at revision %d", len(e.Attempts), e.Dropped, e.Rev)
			}
			ended := e.Outcome == beeyard.OutcomeDone || e.Outcome == beeyard.OutcomeFailed || e.Outcome == beeyard.OutcomeCanceled
			if ended != e.Target.Ended() {
				t.Fatalf("%s goes to %s", e.Outcome, e.Target)
			}
			task = next
		}
	})
}

func TestBackoff(t *testing.T) {
	l := beeyard.Limits{}.For(&beeyard.Task{})
	for n, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 4: 80 * time.Second, 7: 10 * time.Minute, 1 << 40: 10 * time.Minute} {
		if got := l.Delay(n, 0); got != want {
			t.Errorf("delay %d: %s, want %s", n, got, want)
		}
		if got := l.Delay(n, 0.999); got < want/2 || got > want {
			t.Errorf("delay %d with jitter: %s of %s", n, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	good := "12:w.1~abcdefgh01234567"
	tok, err := beeyard.ParseToken(good)
	if err != nil || tok.String() != good || tok.Dir() != "w.1~abcdefgh01234567" || tok.Rev != 12 {
		t.Fatalf("%+v, %v", tok, err)
	}
	if op, err := beeyard.ParseToken("0:~abcdefgh01234567"); err != nil || op.Worker != "" {
		t.Fatalf("an operation's: %+v, %v", op, err)
	}
	for _, bad := range []string{"", ":", "1", "01:w~abcdefgh01234567", "-1:w~abcdefgh01234567", "1:w~abcdefgh0123456", "1:w~ABCDEFGH01234567",
		"1:../w~abcdefgh01234567", "1:w/x~abcdefgh01234567", "1:a..b~abcdefgh01234567", good + "\n", strings.Repeat("9", 30) + ":w~abcdefgh01234567"} {
		if _, err := beeyard.ParseToken(bad); !errors.Is(err, beeyard.ErrUsage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestIDs(t *testing.T) {
	for _, good := range []string{"a", "A-1", "0.x_y", strings.Repeat("a", 128), "conx", "com10"} {
		if err := beeyard.CheckID("task", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "../x", "a/b", "a\x00b", "/etc/x", `..\x`, "-rf", "x.json", "X.JSON", "a..b", strings.Repeat("a", 129),
		"CON", "con.txt", "LPT1", "a\nb", "é", "a~b", ".hidden", "a b"} {
		if err := beeyard.CheckID("task", bad); !errors.Is(err, beeyard.ErrUsage) {
			t.Errorf("%q is taken: %v", bad, err)
		}
	}
	for _, good := range []string{"é", "a~b", ".hidden", "a b", "-rf", strings.Repeat("a", 240)} {
		if err := beeyard.CheckStoredID(good); err != nil {
			t.Errorf("stored %q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "a\x00b", "a\x1b", "\xff", strings.Repeat("a", 241)} {
		if err := beeyard.CheckStoredID(bad); err == nil {
			t.Errorf("stored %q is taken", bad)
		}
	}
}
