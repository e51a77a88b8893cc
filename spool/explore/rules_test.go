package explore

import "testing"

// counterexamples names, for each rule, the scenario in which the protocol
// cannot do without it.
var counterexamples = map[rule][]Scenario{
	recordBeforeDecision: {{
		Actors:  []Actor{{Role: worker}, {Role: reaper}},
		Pending: 1, Crashes: 1,
	}},
	reapUsesWholeRecord: {{
		Actors:  []Actor{{Role: worker}, {Role: reaper}},
		Pending: 1, Crashes: 1,
	}},
	directoryUsedOnce: {{
		Actors: []Actor{
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried}, Single: true},
			{Role: olderReaper}, {Role: reaper},
		},
		Pending: 1, Crashes: 1,
	}},
	publishAfterDecision: {{
		Name:    "artifact",
		Actors:  []Actor{{Role: worker, Art: true, Single: true}, {Role: reaper}},
		Pending: 1,
	}, {
		Name:    "follow-up",
		Actors:  []Actor{{Role: worker, Follow: true, Single: true}, {Role: reaper}},
		Pending: 1,
	}},
	followUpUnderLock: {{
		Actors:  []Actor{{Role: worker, Follow: true}, {Role: worker}, {Role: reaper}},
		Pending: 1,
	}},
	enqueueUnderLock: {{
		Actors: []Actor{{Role: enqueuer, Life: 1}, {Role: enqueuer, Life: 2}, {Role: worker}},
	}},
	retryUnderLock: {{
		Actors: []Actor{{Role: retrier}, {Role: enqueuer, Life: 2}},
		Failed: 1,
	}},
	doneWinsByLife: {{
		Actors: []Actor{{Role: olderEnqueuer, Life: 2}, {Role: worker}},
		Done:   1,
	}},
	laterLifeIsCopy: {{
		Actors: []Actor{
			{Role: worker}, {Role: olderEnqueuer, Life: 2, Late: true},
			{Role: olderWorker, Late: true}, {Role: worker, Late: true}, {Role: reaper, Late: true},
		},
		Pending: 1, Reboots: 1,
	}},
	lookBeforeWithdraw: {{
		Actors:  []Actor{{Role: worker, Single: true}, {Role: reaper}},
		Pending: 1,
	}},
	anyoneMayFinish: {{
		Actors:  []Actor{{Role: worker, Times: 2}, {Role: reaper}},
		Pending: 1, Faults: 1,
	}},
	claimThenRecord: {{
		Actors:  []Actor{{Role: holder}, {Role: worker, Outcomes: []outcome{retried}}},
		Pending: 1,
	}},
	missingMeansPublished: {{
		Name: "within one boot it is not looked for",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{retried}}, {Role: olderWorker}, {Role: olderReaper}, {Role: reaper},
		},
		Pending: 1, Crashes: 1,
	}},
	otherBootLooks: {{
		Actors:  []Actor{{Role: worker}, {Role: reaper, Late: true}},
		Pending: 1, Reboots: 1, CutLoses: true,
	}},
	lookInOrder: {{
		Actors:  []Actor{{Role: enqueuer, Life: 2}, {Role: worker}},
		Pending: 1,
	}},
	publishUnderLock: {{
		Actors:  []Actor{{Role: enqueuer, Life: 2}, {Role: worker, Times: 2, Outcomes: []outcome{retried}}},
		Pending: 1,
	}},
	recordPublishedLast: {{
		Name:    "artifact",
		Actors:  []Actor{{Role: worker, Art: true}, {Role: reaper}},
		Pending: 1, Crashes: 1,
	}, {
		Name:    "follow-up",
		Actors:  []Actor{{Role: worker, Follow: true}, {Role: reaper}},
		Pending: 1, Crashes: 1,
	}},
	listedAfterDone: {{
		Actors:  []Actor{{Role: worker}},
		Pending: 1,
	}},
}

// TestEachRuleIsNecessary takes one rule away at a time: the scenarios meant
// for it must then break an invariant, and must not while it is there.
func TestEachRuleIsNecessary(t *testing.T) {
	for _, r := range ruleList {
		t.Run(underscored(ruleNames[r]), func(t *testing.T) {
			necessary(t, r, counterexamples[r])
		})
	}
}

// mends names, for each rule that these models add to the protocol's text, the
// scenario that its text alone does not survive.
var mends = map[rule][]Scenario{
	lateByRev: {{
		Actors: []Actor{{Role: retrier}, {Role: worker, Late: true}},
		Failed: 1, Reboots: 1, CutDoubles: true,
	}},
	heldIsCopy: {{
		Actors:  []Actor{{Role: holder}, {Role: worker, Late: true}},
		Pending: 1, Reboots: 1, CutDoubles: true,
	}},
	helpedLooks: {{
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{retried}},
			{Role: worker, Late: true, Times: 2, Outcomes: []outcome{retried}},
			{Role: worker, Late: true}, {Role: reaper, Late: true, Times: 2},
		},
		Pending: 1, Reboots: 1, CutDoubles: true,
	}},
	missingUnderLock: {{
		Actors: []Actor{
			{Role: worker}, {Role: worker, Late: true, Outcomes: []outcome{retried}},
			{Role: reaper, Late: true}, {Role: reaper, Late: true},
		},
		Pending: 1, Reboots: 1, CutLoses: true,
	}},
	lostArtifactUnderLock: {{
		Actors: []Actor{
			{Role: worker, Art: true}, {Role: worker, Late: true},
			{Role: reaper, Late: true}, {Role: reaper, Late: true},
		},
		Pending: 1, Reboots: 1, CutLoses: true,
	}},
	operationGoesBack: {{
		Actors: []Actor{{Role: canceler}, {Role: worker}, {Role: reaper}},
		Held:   1, Crashes: 1,
	}},
	supersedeByOneRename: {{
		Actors: []Actor{{Role: olderEnqueuer, Life: 2}, {Role: worker}},
		Done:   1,
	}},
	clashUnderLock: {{
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2}, {Role: olderEnqueuer, Life: 3},
			{Role: worker}, {Role: worker},
		},
		Done: 1,
	}},
	artifactKeepsLaterLife: {{
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2}, {Role: worker, Art: true}, {Role: worker, Art: true}, {Role: reaper},
		},
		Pending: 1,
	}},
	answerByRecord: {{
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{retried}, Single: true}, {Role: reaper}, {Role: reaper},
		},
		Pending: 1,
	}},
	takenBeforeRecordAside: {{
		Actors:  []Actor{{Role: worker, Single: true}, {Role: reaper}, {Role: reaper}},
		Pending: 1, SplitListing: true,
	}},
}

// TestEachMendIsNecessary does the same for the mends.
func TestEachMendIsNecessary(t *testing.T) {
	for r := lateByRev; r <= missingUnderLock; r <<= 1 {
		t.Run(underscored(ruleNames[r]), func(t *testing.T) {
			necessary(t, r, mends[r])
		})
	}
}

// TestEachOrderIsNecessary does the same for orders within the steps.
func TestEachOrderIsNecessary(t *testing.T) {
	for r := otherBootLooks; ruleNames[r] != ""; r <<= 1 {
		t.Run(underscored(ruleNames[r]), func(t *testing.T) {
			necessary(t, r, counterexamples[r])
		})
	}
}

func necessary(t *testing.T, r rule, in []Scenario) {
	t.Helper()
	if len(in) == 0 {
		t.Fatal("no scenario is meant for this rule")
	}
	for _, sc := range in {
		name := sc.Name
		if name != "" {
			name += ": "
		}
		if res := newModel(sc, 0).search(); res.broken != none {
			t.Fatalf("%swith the rule: %v", name, res)
		}
		res := newModel(sc, r).search()
		if res.broken == none {
			t.Fatalf("%swithout the rule %d states hold every invariant", name, res.states)
		}
		t.Logf("%s%v", name, res)
	}
}

// TestEachRuleHasACounterexample keeps a rule from being added without a proof
// that it is needed.
func TestEachRuleHasACounterexample(t *testing.T) {
	for r, name := range ruleNames {
		if len(counterexamples[r])+len(mends[r])+len(cutCounterexamples[r]) == 0 {
			t.Errorf("nothing shows that %q is necessary", name)
		}
	}
}
