package explore

import (
	"strings"
	"testing"
)

// TestPowerCut keeps all fsyncs: no state that a cut may leave breaks a promise.
// At night the work that follows recovery is cut as well.
func TestPowerCut(t *testing.T) {
	total := 0
	check := func(t *testing.T, story cutStory, deep bool) {
		res := newModel(Scenario{}, 0).cut(story, "", deep)
		total += res.states
		if res.broken != "" {
			t.Fatal(res.broken)
		}
		t.Logf("%s: %d system calls, %d states, no promise broken", story.name, res.calls, res.states)
	}
	for _, story := range cutStories {
		t.Run(underscored(story.name), func(t *testing.T) { check(t, story, nightly()) })
	}
	t.Run("settle_with_a_helper", func(t *testing.T) {
		for _, story := range helpedStories() {
			check(t, story, false)
		}
	})
	t.Run("settle_of_a_worker_that_dies", func(t *testing.T) {
		for n := 1; n <= 18; n++ {
			check(t, reapedStory(n), false)
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

// cutCounterexamples names, for each rule that a power cut needs, the stories
// that break a promise without it. One of them must.
var cutCounterexamples = map[rule][]cutStory{
	otherBootLooks:    {settleStory},
	lateByRev:         {retryStory},
	heldIsCopy:        {holdStory},
	operationGoesBack: {cancelStory},
	reapSyncsRecord:   {decideStory},
	helpedSyncs:       helpedStories(),
}

// TestEachCutRuleIsNecessary takes those rules away.
func TestEachCutRuleIsNecessary(t *testing.T) {
	for r := rule(1); ruleNames[r] != ""; r <<= 1 {
		stories := cutCounterexamples[r]
		if stories == nil {
			continue
		}
		t.Run(underscored(ruleNames[r]), func(t *testing.T) {
			found := false
			for _, story := range stories {
				res := newModel(Scenario{}, r).cut(story, "", false)
				if res.broken != "" {
					t.Logf("%s: %s", story.name, res.broken)
					found = true
				}
			}
			if !found {
				t.Fatal("without it every state keeps every promise")
			}
		})
	}
}

func helpedStories() []cutStory {
	var out []cutStory
	for n := 1; n <= 12; n++ {
		out = append(out, helpedStory(n))
	}
	return out
}

func underscored(s string) string { return strings.ReplaceAll(s, " ", "_") }
