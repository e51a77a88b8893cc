package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/proc"
)

// Process is the handler that starts a program for each task: the task's JSON
// on stdin, its output into the log.
type Process struct {
	// Path is the program, absolute. Args are the operator's, never a task's.
	Path string
	Args []string
	// ArgsFor, when set, gives the program and arguments of a task instead:
	// `each` puts the input line there because its user wrote {}.
	ArgsFor func(t *beeyard.Task) (path string, args []string, err error)
	Env     []string // the base environment, see Environment
	Dir     string
	// Sandbox lets the handler write to its run and claim only, without network.
	Sandbox bool
}

// Check reports ErrUnusable with the reason, before a task is claimed for it.
func (h *Process) Check() error {
	if h.ArgsFor != nil {
		return nil
	}
	return checkProgram(h.Path)
}

func checkProgram(path string) error {
	if err := proc.Preflight(path); err != nil {
		return &beeyard.Error{Op: "check handler", ID: path, Err: fmt.Errorf("%w: %w", beeyard.ErrUnusable, err),
			Hint: "a handler is a program with its run bit set; no task was claimed"}
	}
	return nil
}

// Open makes a slot.
func (h *Process) Open() (Slot, error) { return &processSlot{h}, nil }

type processSlot struct{ h *Process }

func (s *processSlot) Close() error { return nil }

// Do runs the program once.
func (s *processSlot) Do(ctx context.Context, j Job) (Done, error) {
	line, err := j.Claim.Task.Nine()
	if err != nil {
		return Done{}, err
	}
	log, err := j.OpenLog()
	if err != nil {
		return Done{}, err
	}
	path, args := s.h.Path, s.h.Args
	if s.h.ArgsFor != nil {
		if path, args, err = s.h.ArgsFor(j.Claim.Task); err != nil {
			return Done{}, err
		}
	}
	out, err := proc.NewCapture(log, log.Stderr())
	if err != nil {
		return Done{}, fmt.Errorf("make pipes: %w", err)
	}
	p, err := proc.Start(ctx, proc.Spec{
		Path: path, Args: args, Dir: s.h.Dir, Env: append(s.h.Env[:len(s.h.Env):len(s.h.Env)], taskEnv(j)...),
		Stdin: append(line, '\n'), Stdout: out.Stdout(), Stderr: out.Stderr(),
		Timeout: j.Timeout, Grace: j.Grace, Sandbox: s.h.sandbox(j.Claim, path),
	})
	if err != nil {
		return Done{}, errors.Join(err, out.Close())
	}
	r := p.Wait()
	// A log that could not be written fails no task; its error is the log's own.
	_ = out.Close()
	return doneOf(r, log), nil
}

func doneOf(r proc.Result, log Log) Done {
	d := Done{ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, OOM: r.OOM, Duration: r.Duration, Peak: r.PeakMemory}
	if log != nil {
		d.Stderr = log.StderrTail(stderrLines)
	}
	return d
}

// stderrLines are kept in the record.
const stderrLines = 20

// sandbox lets a handler write into its claim's directory alone and read the
// system, its own folder and its run: not the user's home, no other run. There
// is no network.
func (h *Process) sandbox(c *beeyard.Claim, program string) *proc.Sandbox {
	if !h.Sandbox {
		return nil
	}
	read := []string{c.RunDir, filepath.Dir(program)}
	for _, d := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/dev", "/proc"} {
		if durable.IsFolder(d) {
			read = append(read, d)
		}
	}
	if h.Dir != "" {
		read = append(read, h.Dir)
	}
	return &proc.Sandbox{WriteDirs: []string{filepath.Dir(c.ArtifactPath)}, ReadDirs: read, NetworkOff: true}
}

// taskEnv is what a handler is told of its task: names and paths, never text
// that somebody else wrote.
func taskEnv(j Job) []string {
	c := j.Claim
	env := []string{
		"BEEYARD_ATTEMPT=" + strconv.Itoa(c.Task.Ext.Attempt+1),
		"BEEYARD_CLAIM_TOKEN=" + c.Token.String(),
		"BEEYARD_RUN=" + c.RunDir,
		"BEEYARD_RESULT_PATH=" + c.ResultPath,
	}
	for name, v := range map[string]string{
		"RUN_DIR": c.RunDir, "TASK_ID": c.Task.ID, "WORKER_ID": j.Worker,
		"ARTIFACT_PATH": c.ArtifactPath, "LOG_PATH": c.LogPath,
	} {
		env = append(env, "SWARM_"+name+"="+v, "BEEYARD_"+name+"="+v)
	}
	return env
}

// passed are the variables of the worker's own environment that handlers get:
// what programs need to find themselves and speak the user's language.
// Everything else, secrets above all, stays out unless configuration names it.
var passed = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE",
	"LC_MESSAGES", "LC_TIME", "LC_COLLATE", "LC_NUMERIC", "TZ", "TMPDIR", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// Environment builds a handler's base environment by the allow-list and what
// configuration adds to it.
func Environment(lookup func(string) (string, bool), more []string) []string {
	var env []string
	for _, names := range [][]string{passed, more} {
		for _, n := range names {
			if v, ok := lookup(n); ok {
				env = append(env, n+"="+v)
			}
		}
	}
	return env
}
