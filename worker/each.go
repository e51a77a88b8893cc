package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/proc"
)

// Types of the tasks that each makes.
const (
	EachType = "each"
	ThenType = "then"
)

// Each is a durable xargs: one task an input line, and at the end one that
// depends on them all. Enqueueing it again adds what is missing and nothing
// else, so the same call goes on where an earlier one was killed.
type Each struct {
	Lines []string
	// Command is run for each line; "{}" in an argument becomes the line, and
	// without any it is the last argument. No shell is involved.
	Command []string
	Then    []string // run once all are done; empty: nothing
	// LookPath resolves the command's name.
	LookPath func(name string) (string, error)
}

type eachPayload struct {
	Item string `json:"item"`
	Line int    `json:"line"`
}

// EachID names the task of a line: readable, and the same at every start. n
// counts earlier lines with the same text.
func EachID(line string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", line, n))
	var b strings.Builder
	for _, r := range line {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	name := strings.Trim(b.String(), "-_")
	if name == "" {
		name = "line"
	}
	// Lower case: two lines that differ by case alone get ids that do not.
	return strings.ToLower(name) + "-" + hex.EncodeToString(sum[:5])
}

// Tasks are what to enqueue, in the order of the input.
func (e *Each) Tasks(now time.Time) ([]*beeyard.Task, error) {
	seen := map[string]int{}
	var tasks []*beeyard.Task
	var ids []string
	for i, line := range e.Lines {
		n := seen[line]
		seen[line]++
		payload, err := json.Marshal(eachPayload{line, i + 1})
		if err != nil {
			return nil, fmt.Errorf("encode line %d: %w", i+1, err)
		}
		id := EachID(line, n)
		ids = append(ids, id)
		tasks = append(tasks, &beeyard.Task{ID: id, Type: EachType, CreatedBy: "beeyard each", Payload: payload,
			// A microsecond apart, so that the queue's order is the input's.
			CreatedAt: beeyard.FormatTime(now.Add(time.Duration(i) * time.Microsecond))})
	}
	if len(e.Then) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(ids, "\x00")))
		payload, err := json.Marshal(map[string]int{"items": len(ids)})
		if err != nil {
			return nil, fmt.Errorf("encode summary: %w", err)
		}
		tasks = append(tasks, &beeyard.Task{ID: "then-" + hex.EncodeToString(sum[:5]), Type: ThenType, CreatedBy: "beeyard each",
			DependsOn: ids, Payload: payload, CreatedAt: beeyard.FormatTime(now.Add(time.Duration(len(ids)) * time.Microsecond))})
	}
	return tasks, nil
}

// Check reports ErrUnusable for a command that cannot be run.
func (e *Each) Check() error {
	for _, argv := range [][]string{e.Command, e.Then} {
		if len(argv) == 0 {
			continue
		}
		path, err := e.resolve(argv[0])
		if err != nil {
			return err
		}
		if err := checkProgram(path); err != nil {
			return err
		}
	}
	return nil
}

func (e *Each) resolve(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return filepath.Abs(name)
	}
	path, err := e.LookPath(name)
	if err != nil {
		return "", &beeyard.Error{Op: "find command", ID: name, Err: fmt.Errorf("%w: %w", beeyard.ErrUnusable, err)}
	}
	return path, nil
}

// ArgsFor is the program and its arguments for a task of this run.
func (e *Each) ArgsFor(t *beeyard.Task) (string, []string, error) {
	argv := e.Command
	var item string
	if t.Type == ThenType {
		argv = e.Then
	} else {
		var p eachPayload
		if err := json.Unmarshal(t.Payload, &p); err != nil {
			return "", nil, beeyard.Because(beeyard.ErrNotTask, "it was not made by beeyard each")
		}
		item = p.Item
	}
	if len(argv) == 0 {
		return "", nil, beeyard.Because(beeyard.ErrUsage, "there is no command for tasks of type "+beeyard.Quote(t.Type))
	}
	path, err := e.resolve(argv[0])
	if err != nil {
		return "", nil, err
	}
	if t.Type == ThenType {
		return path, argv[1:], nil
	}
	args, found := make([]string, 0, len(argv)), false
	for _, a := range argv[1:] {
		found = found || strings.Contains(a, "{}")
		args = append(args, strings.ReplaceAll(a, "{}", item))
	}
	if !found {
		args = append(args, item)
	}
	return path, args, nil
}

// Handler runs the commands.
func (e *Each) Handler(env []string) Handler {
	return eachHandler{&Process{ArgsFor: e.ArgsFor, Env: env}, e}
}

type eachHandler struct {
	*Process
	e *Each
}

func (h eachHandler) Check() error { return h.e.Check() }

// Filter takes the tasks that each makes and nothing else of the run.
func (e *Each) Filter() beeyard.Filter { return beeyard.Filter{Types: []string{EachType, ThenType}} }

// PrepareHost makes this process the one that orphans of handlers come to, as
// PID 1 of a container must, and ends trees that a killed worker left. reap
// runs until ctx ends; nil when it is not needed.
func PrepareHost(ctx context.Context, pid1 bool) (killed int, reap func() error, err error) {
	killed, err = proc.CleanStale()
	if pid1 {
		reap = func() error { return proc.ReapOrphans(ctx) }
	}
	return killed, reap, err
}
