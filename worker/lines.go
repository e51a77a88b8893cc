package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/proc"
	"beeyard/internal/strict"
)

// Lines is the handler that stays: one process a slot, a task's JSON a line
// in, a result's JSON a line out. It takes the cost of fork and exec away from
// small tasks. A process that dies is started again for the next task.
type Lines struct {
	Path  string
	Args  []string
	Env   []string
	Dir   string
	Grace time.Duration
	Clock clock.Clock
}

// Check reports ErrUnusable with the reason.
func (h *Lines) Check() error { return checkProgram(h.Path) }

// Open makes a slot; its process starts with its first task.
func (h *Lines) Open() (Slot, error) { return &linesSlot{h: h}, nil }

type linesSlot struct {
	h *Lines
	p *proc.LineProcess
}

// answer is what the process writes for each task.
type answer struct {
	TaskID   string          `json:"task_id"`
	Exit     int             `json:"exit"`
	Error    string          `json:"error"`
	Artifact *string         `json:"artifact"` // the output's text; or write it to artifact_path
	Result   *beeyard.Result `json:"result"`
}

func (s *linesSlot) Close() error {
	if s.p != nil {
		s.p.Close()
		s.p = nil
	}
	return nil
}

// Do sends one task and waits for its answer.
func (s *linesSlot) Do(ctx context.Context, j Job) (Done, error) {
	line, err := request(j)
	if err != nil {
		return Done{}, err
	}
	if s.p == nil {
		// Not under ctx: the process outlives this task.
		s.p, err = proc.StartLines(context.Background(), proc.Spec{Path: s.h.Path, Args: s.h.Args, Env: s.h.Env, Dir: s.h.Dir, Grace: s.h.Grace})
		if err != nil {
			return Done{}, err
		}
	}
	log := &lazyLog{open: j.OpenLog}
	s.p.SetStderr(log)
	begun := s.h.Clock.Now()
	text, err := s.p.Do(ctx, line, j.Timeout)
	took := s.h.Clock.Now().Sub(begun)
	if err == nil {
		// What it says between tasks is nobody's, and this log is about to close.
		s.p.SetStderr(nil)
	}
	var died *proc.DiedError
	switch {
	case errors.As(err, &died):
		s.p.Close()
		s.p = nil
		d := doneOf(died.Result, log.log)
		d.Duration, d.Error = took, died.Reason
		if d.ExitCode == 0 && d.Signal == "" {
			d.ExitCode = 1 // it left without an answer: whatever its code, the task is not done
		}
		return d, nil
	case err != nil:
		return Done{}, err
	}
	return s.read(ctx, j, text, took, log)
}

func (s *linesSlot) read(ctx context.Context, j Job, text []byte, took time.Duration, log *lazyLog) (Done, error) {
	d := Done{Duration: took}
	if log.log != nil {
		d.Stderr = log.log.StderrTail(stderrLines)
	}
	var a answer
	if err := strict.Unmarshal(text, &a, strict.Options{MaxBytes: proc.MaxLine}); err != nil {
		return s.confused(d, "its answer is not the JSON that is asked for: "+err.Error()), nil
	}
	if a.TaskID != j.Claim.Task.ID {
		return s.confused(d, "it answered for "+beeyard.Quote(a.TaskID)), nil
	}
	d.ExitCode, d.Error, d.Result = a.Exit, a.Error, a.Result
	if a.Artifact != nil && a.Exit == 0 {
		if err := j.Stage(ctx, strings.NewReader(*a.Artifact)); err != nil && !errors.Is(err, beeyard.ErrClaimLost) {
			return Done{}, fmt.Errorf("stage its output: %w", err)
		}
	}
	return d, nil
}

// confused ends a process whose answers cannot be matched to tasks any more:
// the next task's answer might be this one's.
func (s *linesSlot) confused(d Done, why string) Done {
	s.p.Kill()
	s.p.Close()
	s.p = nil
	d.ExitCode, d.Error = 1, why
	return d
}

// request is the nine fields and, under "beeyard", what a handler that is
// started for each task finds in its environment.
func request(j Job) ([]byte, error) {
	nine, err := j.Claim.Task.Nine()
	if err != nil {
		return nil, err
	}
	c := j.Claim
	more, err := json.Marshal(map[string]any{
		"attempt": c.Task.Ext.Attempt + 1, "token": c.Token.String(), "run": c.RunDir, "run_dir": c.RunDir,
		"worker_id": j.Worker, "artifact_path": c.ArtifactPath, "log_path": c.LogPath, "result_path": c.ResultPath,
	})
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return append(append(append(bytes.TrimSuffix(nine, []byte("}")), `, "beeyard": `...), more...), '}'), nil
}

// lazyLog makes the log when the process says something while it does the task.
type lazyLog struct {
	open func() (Log, error)
	log  Log
}

func (l *lazyLog) Write(b []byte) (int, error) {
	if l.log == nil {
		log, err := l.open()
		if err != nil {
			return 0, err
		}
		l.log = log
	}
	return l.log.Stderr().Write(b)
}
