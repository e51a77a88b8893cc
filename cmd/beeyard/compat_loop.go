package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/proc"
	"beeyard/spool"
	"beeyard/worker"

	"github.com/spf13/cobra"
)

// exitUnusable is the older worker loop's for a handler that is not executable.
const exitUnusable = 3

// workerLoop is the older worker.
func (p *program) workerLoop() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker_loop.sh", Short: "The older worker: one task at a time", Args: args(0, 0),
		Long: `Claims tasks, one at a time, and starts the handler for each: the task's JSON on
one line of stdin, the whole environment, its output where this program's goes.
Exit 0 of the handler moves the task to done/, anything else to failed/, at
once. TERM waits for the handler that runs.`,
	}
	f := olderFlags{cmd}
	run, id, handler := f.text("run-dir", "folder of the run, made if it is missing"), f.text("worker-id", "id of this worker"), f.text("handler", "program that does one task")
	types := f.text("task-type-filter", "only these types, separated by commas")
	poll := cmd.Flags().String("poll-interval", "5", "seconds between looks when there is nothing to do")
	beat := cmd.Flags().String("heartbeat-interval", "30", "seconds between beats")
	most := cmd.Flags().Int("max-iterations", 0, "end after so many tasks; 0: no end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := need(cmd, "run-dir", "worker-id", "handler"); err != nil {
			return err
		}
		l := &worker.OlderLoop{Worker: *id, Types: commaList(*types), MaxIterations: *most, Clock: p.clock,
			Report: func(text string) { p.notef("%s", plain(text, 500)) }}
		var errs [3]error
		l.Poll, errs[0] = seconds(cmd, "poll-interval", *poll, 0)
		l.Heartbeat, errs[1] = seconds(cmd, "heartbeat-interval", *beat, 0.01)
		errs[2] = spool.CheckOlderWorker(*id)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		if *most < 0 {
			return usageText(cmd, "--max-iterations is not negative")
		}
		var err error
		if l.Handler, err = p.olderHandler(*handler); err != nil {
			return &exitError{code: exitUnusable, err: err}
		}
		err = p.withOlder(*run, olderMakes, func(r *spool.Run) error {
			l.Run, l.RunDir = r.Compat(), r.Location()
			return p.runOlderLoop(cmd.Context(), l)
		})
		if errors.Is(err, beeyard.ErrUnusable) {
			return &exitError{code: exitUnusable, err: err}
		}
		return err
	}
	return cmd
}

// runOlderLoop cleans up after killed workers first, and reaps as PID 1.
func (p *program) runOlderLoop(ctx context.Context, l *worker.OlderLoop) error {
	p.draining.Store(true)
	defer p.draining.Store(false)
	helpers, stop := context.WithCancel(context.WithoutCancel(ctx))
	killed, reap, err := worker.PrepareHost(helpers, os.Getpid() == 1)
	if err != nil {
		p.notef("end what killed workers left: %v", err)
	}
	if killed > 0 {
		p.notef("ended %d processes that a killed worker had left", killed)
	}
	var wg sync.WaitGroup
	if reap != nil {
		wg.Go(func() {
			if err := reap(); err != nil && helpers.Err() == nil {
				p.notef("%v", err)
			}
		})
	}
	_, err = l.Do(ctx)
	stop()
	wg.Wait()
	return err
}

// olderHandler resolves the handler in the current folder and looks whether it
// can run.
func (p *program) olderHandler(name string) (proc.Spec, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return proc.Spec{}, fmt.Errorf("resolve handler: %w", err)
	}
	if err := proc.Preflight(path); err != nil {
		return proc.Spec{}, &beeyard.Error{Op: "check handler", ID: path, Err: fmt.Errorf("%w: %w", beeyard.ErrUnusable, err),
			Hint: "a handler is a program with its run bit set; no task was claimed"}
	}
	out, _ := p.stdout.(*os.File) // not a file: a test's buffer, which no child can write to
	errOut, _ := p.stderr.(*os.File)
	s := proc.Spec{Path: path, Env: os.Environ(), Stdout: out, Stderr: errOut, Grace: olderGrace}
	if shellScript(path) {
		s.Path, s.Args = "/bin/sh", []string{path}
	}
	return s, nil
}

// olderGrace is what outlives a handler gets between TERM and KILL.
const olderGrace = 10 * time.Second

// shellScript: a shell, which the older loop is, runs a text without a #! line
// as a script; the kernel refuses it.
func shellScript(path string) bool {
	f, err := durable.OpenNamed(path)
	if err != nil {
		return false // it may be run without being readable
	}
	defer f.Close()
	head := make([]byte, 128)
	n, err := f.Read(head)
	head = head[:n]
	return err == nil && !bytes.HasPrefix(head, []byte("#!")) && !bytes.HasPrefix(head, []byte("\x7fELF")) && bytes.IndexByte(head, 0) < 0
}
