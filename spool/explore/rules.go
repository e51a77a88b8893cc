package explore

// rule is one rule of the protocol that the model can do without.
type rule uint32

const (
	recordBeforeDecision rule = 1 << iota
	reapUsesWholeRecord
	directoryUsedOnce
	publishAfterDecision
	followUpUnderLock
	enqueueUnderLock
	retryUnderLock
	doneWinsByLife
	laterLifeIsCopy
	lookBeforeWithdraw
	anyoneMayFinish
	claimThenRecord
	missingMeansPublished

	// The rules below are not in the protocol's list. Each mends a hole that
	// these models found in its text.
	lateByRev
	lostArtifactUnderLock
	operationGoesBack
	supersedeByOneRename
	clashUnderLock
	artifactKeepsLaterLife
	takenBeforeRecordAside
	answerByRecord
	helpedLooks
	heldIsCopy
	missingUnderLock
	helpedSyncs
	reapSyncsRecord

	// And these are orders within its steps that it words in passing.
	otherBootLooks
	lookInOrder
	publishUnderLock
	recordPublishedLast
	listedAfterDone
)

// ruleNames words each rule as the protocol does.
var ruleNames = map[rule]string{
	recordBeforeDecision:  "record before decision",
	reapUsesWholeRecord:   "reap uses a whole record",
	directoryUsedOnce:     "(D, x) used once",
	publishAfterDecision:  "artifact and follow-ups after decision",
	followUpUnderLock:     "follow-up looked for under the lock",
	enqueueUnderLock:      "enqueue under the lock",
	retryUnderLock:        "retry out of failed under the lock",
	doneWinsByLife:        "done wins by life, not by name",
	laterLifeIsCopy:       "a later life counts as a copy",
	lookBeforeWithdraw:    "a writer looks for its own x~taken before it withdraws a record",
	anyoneMayFinish:       "anyone may finish x~taken, also when D's owner lives",
	claimThenRecord:       "an operation claims first, then writes its record",
	missingMeansPublished: "missing record means published within one boot",

	lateByRev:              "a copy with a lower rev makes no record late",
	lostArtifactUnderLock:  "a lost artifact's record is replaced under the lock",
	operationGoesBack:      "a dead operation's task goes back where it was",
	supersedeByOneRename:   "a superseded record in done is kept first, then replaced by one rename",
	clashUnderLock:         "a clash in done is resolved under the lock",
	artifactKeepsLaterLife: "an artifact replaces another only under the lock, after a look for a later life's success",
	answerByRecord:         "a helped writer compares the record, not the token alone",
	heldIsCopy:             "a claim looks for a copy in held too",
	helpedLooks:            "a writer whose record another finisher moved looks where it went",
	helpedSyncs:            "what another finisher published is synced before it is relied on",
	reapSyncsRecord:        "a reaper syncs the whole record that it decides with",
	missingUnderLock:       "a missing record is replaced under the lock of the look",
	otherBootLooks:         "a missing record of another boot is looked for",
	publishUnderLock:       "a record enters pending or held under the lock",
	lookInOrder:            "a look goes pending, held, claimed, failed, done",
	recordPublishedLast:    "the record is published after its follow-ups and artifact",
	listedAfterDone:        "completed_tasks gets an id after done has it",
	takenBeforeRecordAside: "a lone record is kept aside after a look for x.json, then for x~taken",
}

// ruleList is the protocol's own list, in its order.
var ruleList = []rule{
	recordBeforeDecision, reapUsesWholeRecord, directoryUsedOnce, publishAfterDecision,
	followUpUnderLock, enqueueUnderLock, retryUnderLock, doneWinsByLife, laterLifeIsCopy,
	lookBeforeWithdraw, anyoneMayFinish, claimThenRecord, missingMeansPublished,
}
