package spool

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"beeyard"
)

// maxFailures is how many failures stand in risk; the record of all is failed/.
const maxFailures = 10

// failure is a task that has failed for good.
type failure struct {
	id, reason string
	at         time.Time
}

const failurePrefix = "failed "

// line is one line of risk. It ends in a digest of itself, so that a line which
// a person has changed, or has written in this form, is never taken for ours
// and dropped. The reason is somebody's text: quoted, it is one line.
func (f failure) line() string {
	text := failurePrefix + beeyard.FormatTime(f.at) + " " + strconv.Quote(f.id) + ": " + beeyard.Quote(f.reason)
	return text + mark(text)
}

func mark(text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // hash.Hash: never an error
	return fmt.Sprintf(" ~%06x", h.Sum32()&0xffffff)
}

const markLen = 8

// failureOf is the id that one of our lines is about; false for any other line.
func failureOf(line string) (id string, ours bool) {
	if !strings.HasPrefix(line, failurePrefix) || len(line) < len(failurePrefix)+markLen {
		return "", false
	}
	text := line[:len(line)-markLen]
	if mark(text) != line[len(text):] {
		return "", false
	}
	_, rest, _ := strings.Cut(text[len(failurePrefix):], " ")
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", false
	}
	id, err = strconv.Unquote(quoted)
	return id, err == nil
}

// withFailures is risk with failures added behind what people wrote, the last
// maxFailures of them, one a task; those of tasks that are done by now go.
// Nothing that a person wrote is changed.
func withFailures(risk string, add []failure, done []string) string {
	if len(add) == 0 && (len(done) == 0 || !strings.Contains(risk, failurePrefix)) {
		return risk
	}
	gone := make(map[string]bool, len(done)+len(add))
	for _, id := range done {
		gone[id] = true
	}
	var fresh []string
	for i := len(add) - 1; i >= 0 && len(fresh) < maxFailures; i-- {
		if f := add[i]; !gone[f.id] {
			gone[f.id] = true
			fresh = append(fresh, f.line())
		}
	}
	slices.Reverse(fresh)
	var theirs, ours []string
	for line := range strings.SplitSeq(risk, "\n") {
		if id, is := failureOf(line); !is {
			theirs = append(theirs, line)
		} else if !gone[id] {
			ours = append(ours, line)
		}
	}
	ours = append(ours, fresh...)
	ours = ours[max(0, len(ours)-maxFailures):]
	if text := strings.Join(theirs, "\n"); text != "" {
		ours = slices.Insert(ours, 0, text)
	}
	return strings.Join(ours, "\n")
}
