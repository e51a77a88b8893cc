package explore

import (
	"strings"
	"testing"
)

// TestPowerCut keeps all fsyncs: no state that a cut may leave breaks a promise.
func TestPowerCut(t *testing.T) {
	total := 0
	check := func(t *testing.T, story cutStory) {
		res := newModel(Scenario{}, 0).cut(story, "", nightly())
		total += res.states
		if res.broken != "" {
			t.Fatal(res.broken)
		}
		t.Logf("%s: %d system calls, %d states, no promise broken", story.name, res.calls, res.states)
	}
	for _, story := range cutStories {
		t.Run(underscored(story.name), func(t *testing.T) { check(t, story) })
	}
	t.Run("settle_with_a_helper", func(t *testing.T) {
		for n := 1; n <= 12; n++ {
			check(t, helpedStory(n))
		}
	})
	t.Run("settle_of_a_worker_that_dies", func(t *testing.T) {
		for n := 1; n <= 18; n++ {
			check(t, reapedStory(n))
		}
	})
	t.Logf("%d states in all", total)
}

// TestEachFsyncIsNecessary leaves out one of the eight at a time.
func TestEachFsyncIsNecessary(t *testing.T) {
	for _, label := range eightFsyncs {
		t.Run(underscored(label), func(t *testing.T) {
			story := settleStory
			if label == syncTemp || label == syncPending {
				story = enqueueStory
			}
			res := newModel(Scenario{}, 0).cut(story, label, false)
			switch {
			case res.skipped == 0:
				t.Fatal("the program has no such fsync")
			case res.broken == "":
				t.Fatalf("without it %d states keep every promise", res.states)
			}
			t.Log(res.broken)
		})
	}
}

// TestEachCutRuleIsNecessary leaves out the rules that only a power cut needs.
func TestEachCutRuleIsNecessary(t *testing.T) {
	for r, story := range map[rule]cutStory{
		otherBootLooks:    settleStory,
		lateByRev:         retryStory,
		heldIsCopy:        holdStory,
		operationGoesBack: cancelStory,
		reapSyncsRecord:   decideStory,
	} {
		t.Run(underscored(ruleNames[r]), func(t *testing.T) {
			res := newModel(Scenario{}, r).cut(story, "", false)
			if res.broken == "" {
				t.Fatalf("without it %d states keep every promise", res.states)
			}
			t.Log(res.broken)
		})
	}
	t.Run(underscored(ruleNames[helpedSyncs]), func(t *testing.T) {
		for n := 1; n <= 12; n++ {
			res := newModel(Scenario{}, helpedSyncs).cut(helpedStory(n), "", false)
			if res.broken != "" {
				t.Logf("%s: %s", helpedStory(n).name, res.broken)
				return
			}
		}
		t.Fatal("without it every state keeps every promise")
	})
}

func underscored(s string) string { return strings.ReplaceAll(s, " ", "_") }
