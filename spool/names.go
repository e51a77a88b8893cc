package spool

import (
	"strings"

	"beeyard"
	"beeyard/internal/durable"
)

// Folders of a run. Older programs know the first four and artifacts/.
const (
	dirPending    = "pending"
	dirClaimed    = "claimed"
	dirDone       = "done"
	dirFailed     = "failed"
	dirHeld       = "held"
	dirArtifacts  = "artifacts"
	dirQuarantine = "quarantine"
	dirEvents     = "events"
	dirMeta       = ".beeyard"

	fileStatus     = "status.json"
	fileStatusLock = ".status.lock"
	fileQueueLock  = ".queue.lock"
	fileBeat       = ".heartbeat"
	fileBeatNote   = ".heartbeat-note"
)

const (
	folderMode = 0o700
	fileMode   = 0o600
)

// Names inside a claim directory D. None but the claim itself ends in .json,
// so that an older program, which looks for *.json, sees only claims.
const (
	tagRecord   = "out"      // x~out.<r>: a prepared record, the whole next version of x
	tagTaken    = "taken"    // x~taken.<r>: the decided claim; r names its record
	tagNext     = "next"     // x~next.<r>: a follow-up asked for while the handler runs
	tagArtifact = "artifact" // x~artifact: staged output
	tagResult   = "result"   // x~result: what the handler says of its own work
	tagCancel   = "cancel"   // x~cancel: a request to cancel
	tagClaim    = "json"     // x.json: the claim
)

func bodyName(id string) string { return id + ".json" }

func tagged(id, tag, r string) string {
	if r == "" {
		return id + "~" + tag
	}
	return id + "~" + tag + "." + r
}

// parseEntry reads a name found in a claim directory. tag is "" for a name
// that the protocol does not use (temporary files, a beat).
func parseEntry(name string) (id, tag, r string) {
	if strings.HasPrefix(name, ".") && (name == fileBeat || name == fileBeatNote || isTemp(name)) {
		return "", "", ""
	}
	if id, ok := strings.CutSuffix(name, ".json"); ok {
		return id, tagClaim, ""
	}
	at := strings.LastIndexByte(name, '~')
	if at <= 0 {
		return "", "", ""
	}
	id = name[:at]
	tag, r, _ = strings.Cut(name[at+1:], ".")
	switch tag {
	case tagRecord, tagTaken, tagNext:
		if len(r) != recordNonce {
			return "", "", ""
		}
	case tagArtifact, tagResult, tagCancel:
		if r != "" {
			return "", "", ""
		}
	default:
		return "", "", ""
	}
	return id, tag, r
}

// taskIDOf is the id that a name in a state folder stands for; false for names
// that are no task's: temporary ones, and those without .json. Hidden names
// count, as they do for older programs.
func taskIDOf(name string) (string, bool) {
	id, ok := strings.CutSuffix(name, ".json")
	return id, ok && beeyard.CheckStoredID(id) == nil
}

// isTemp: temporary names start with a dot and never end in .json.
func isTemp(name string) bool {
	return strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".json")
}

// recordNonce is how many characters tie a decision to its record.
const recordNonce = 8

// nonce is n random characters of [a-z0-9]. They name; they keep no secret.
func nonce(n int) string { return durable.Random(n) }

// tempName is a name for a file that is being written; janitors know it.
func tempName(what string) string { return durable.TempName(what) }
