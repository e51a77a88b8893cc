package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
)

// wish is a task as flags or a line of JSON ask for it.
type wish struct {
	ID          string           `json:"id"`
	Type        string           `json:"type"`
	Payload     json.RawMessage  `json:"payload"`
	DependsOn   []string         `json:"depends_on"`
	Priority    int              `json:"priority"`
	Tier        string           `json:"tier"`
	Label       []string         `json:"label"`
	Ref         []string         `json:"ref"`
	NotBefore   string           `json:"not_before"`
	Timeout     beeyard.Duration `json:"timeout"`
	MaxAttempts int              `json:"max_attempts"`
	MaxDeaths   int              `json:"max_deaths"`
	Backoff     beeyard.Duration `json:"backoff"`
	Deadline    string           `json:"deadline"`
	OnDeadline  string           `json:"on_deadline"`
	CreatedBy   string           `json:"created_by"`
	Hold        bool             `json:"hold"`
}

// wished makes the one task of the flags.
func (p *program) wished(w *wish) ([]*beeyard.Task, error) {
	t, err := p.taskOf(w)
	if err != nil {
		return nil, err
	}
	return []*beeyard.Task{t}, nil
}

func (p *program) taskOf(w *wish) (*beeyard.Task, error) {
	by := w.CreatedBy
	if by == "" {
		by = p.me()
	}
	t := &beeyard.Task{ID: w.ID, Type: w.Type, CreatedBy: by, DependsOn: w.DependsOn, Payload: w.Payload,
		TierHint: w.Tier, Deadline: w.Deadline,
		Ext: beeyard.Ext{Priority: w.Priority, Timeout: w.Timeout, MaxAttempts: w.MaxAttempts, MaxDeaths: w.MaxDeaths,
			Backoff: w.Backoff, Labels: w.Label, Refs: w.Ref, OnDeadline: w.OnDeadline}}
	if bytes.Equal(bytes.TrimSpace(w.Payload), []byte("null")) {
		t.Payload = nil
	}
	if w.Hold {
		t.Ext.Hold = &beeyard.Hold{By: by}
	}
	if w.NotBefore != "" {
		at, err := p.instant("not-before", w.NotBefore)
		if err != nil {
			return nil, err
		}
		t.Ext.NotBefore = beeyard.FormatTime(at)
	}
	return t, nil
}

// instant reads RFC 3339, or a duration from now.
func (p *program) instant(what, s string) (time.Time, error) {
	if at, ok := beeyard.ParseTime(s); ok {
		return at, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return p.clock.Now().Add(d), nil
	}
	return time.Time{}, &beeyard.Error{Op: "read " + what, ID: s,
		Err: beeyard.Because(beeyard.ErrUsage, "neither an RFC 3339 time like 2026-01-31T08:00:00Z nor a duration like 90m")}
}

// me says who acts: the worker whose handler this is, else the user.
func (p *program) me() string {
	for _, name := range []string{"BEEYARD_WORKER_ID", "USER", "LOGNAME"} {
		if v := p.env(name); v != "" && beeyard.ValidText(v) {
			return v
		}
	}
	return "beeyard"
}

// linesMost bounds what one enqueue reads: all of it is held while ids and
// cycles are checked.
const linesMost = 1 << 30

// taskLines reads one task a line. Every line is checked before the first is
// enqueued; the error names the line.
func (p *program) taskLines(file string) (_ []*beeyard.Task, err error) {
	in, err := p.openInput("read tasks", file)
	if err != nil {
		return nil, err
	}
	defer closing(in, &err)
	fail := func(n int, err error) error {
		return &beeyard.Error{Op: "read tasks", ID: file, Err: fmt.Errorf("line %d: %w", n, err),
			Hint: `a line is one JSON object: {"id":"a","type":"audit","payload":{…},"depends_on":["b"]}`}
	}
	var tasks []*beeyard.Task
	s := bufio.NewScanner(io.LimitReader(in, linesMost+1))
	s.Buffer(nil, beeyard.MaxTaskBytes+1)
	total := 0
	for n := 1; s.Scan(); n++ {
		line := s.Bytes()
		if total += len(line) + 1; total > linesMost {
			return nil, fail(n, beeyard.Because(beeyard.ErrUsage, "more than 1 GiB in one go"))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var w wish
		if err := strict.Unmarshal(line, &w, strict.Options{MaxBytes: beeyard.MaxTaskBytes, KnownKeys: true}); err != nil {
			return nil, fail(n, fmt.Errorf("%w: %w", beeyard.ErrUsage, err))
		}
		w.Payload = bytes.Clone(w.Payload) // a view of the scanner's buffer otherwise
		t, err := p.taskOf(&w)
		if err != nil {
			return nil, fail(n, err)
		}
		if err := errors.Join(beeyard.CheckID("task", t.ID), beeyard.CheckType(t.Type)); err != nil {
			return nil, fail(n, err)
		}
		tasks = append(tasks, t)
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fail(len(tasks)+1, beeyard.Because(beeyard.ErrUsage, "a line is longer than a task may be (16 MiB)"))
		}
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return tasks, nil
}

// openInput opens a file that the user names for reading; "-" is stdin.
func (p *program) openInput(op, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(p.stdin), nil
	}
	f, err := durable.OpenNamed(file)
	if err != nil {
		return nil, namedError(op, file, err)
	}
	return f, nil
}

// namedError is that of a file which the user named.
func namedError(op, file string, err error) error {
	sentinel := beeyard.ErrUsage
	switch {
	case errors.Is(err, fs.ErrNotExist):
		sentinel = beeyard.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		sentinel = beeyard.ErrNotAllowed
	case errors.Is(err, fs.ErrExist):
		sentinel = beeyard.ErrExists
	}
	return &beeyard.Error{Op: op, ID: file, Err: fmt.Errorf("%w: %w", sentinel, err)}
}
