package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/proc"
	"beeyard/open"
	"beeyard/worker"

	"github.com/spf13/cobra"
)

const eachMost = 64 << 20 // bytes of input lines

func (p *program) addEach(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "each --run RUN [-f FILE] [--then PROGRAM] -- COMMAND [ARG…]", Short: "Run a command for each input line, durably", GroupID: groupWork,
		Long: `One task an input line, N at a time. {} in an argument becomes the line; without
any, the line is the last argument. No shell is involved. It can be killed and
started again at any moment, by the same command, and goes on where it was; two
of them share the work. --then runs once all lines are done. Exit 1 when a line
failed.`,
		Example: "  beeyard each --run audit -f repos.txt --then ./summarize.sh -- ./audit.sh {}",
		Args:    args(1, -1),
	}
	f := cmd.Flags()
	file := f.StringP("file", "f", "-", "file with one item a line; - is stdin")
	then := f.String("then", "", "program to run once all lines are done")
	f.IntP("concurrency", "j", 1, "lines at once")
	f.Duration("timeout", 0, "a line's longest run; 0: none")
	f.Duration("grace", 10*time.Second, "between TERM and KILL of a command's tree")
	f.Duration("drain-timeout", 30*time.Second, "how long commands may run on after TERM")
	f.Int("max-attempts", 3, "failures before a line fails for good")
	f.Duration("backoff", 10*time.Second, "first delay of a retry, doubled each time")
	list(f, "env", "further environment variables that commands get")
	f.String("worker-id", "", "id of this worker (default <host>-<pid>)")
	cmd.RunE = func(cmd *cobra.Command, argv []string) error {
		c, err := p.conf()
		if err != nil {
			return err
		}
		cfg, err := p.workerConfig(c, cmd)
		if err != nil {
			return err
		}
		lines, err := p.eachLines(*file)
		if err != nil {
			return err
		}
		path, _ := p.getenv("PATH")
		e := &worker.Each{Lines: lines, Command: argv, LookPath: func(n string) (string, error) { return proc.Lookup(n, path) }}
		if *then != "" {
			e.Then = []string{*then}
		}
		if err := e.Check(); err != nil {
			return err
		}
		cfg.Handler = e.Handler(worker.Environment(p.getenv, c.list("worker.env", cmd.Flags())))
		cfg.Filter, cfg.UntilEmpty = e.Filter(), true
		return p.each(cmd.Context(), e, cfg)
	}
	root.AddCommand(cmd)
}

func (p *program) eachLines(file string) ([]string, error) {
	var in io.Reader = p.stdin
	if file != "-" {
		f, err := durable.OpenNamed(file)
		if err != nil {
			return nil, &beeyard.Error{Op: "read lines", ID: file, Err: fmt.Errorf("%w: %w", beeyard.ErrNotFound, err)}
		}
		defer f.Close()
		in = f
	}
	var lines []string
	s := bufio.NewScanner(io.LimitReader(in, eachMost+1))
	s.Buffer(nil, 128<<10) // a longer line could not be an argument
	total, n := 0, 0       // bytes, and lines with the empty ones
	for s.Scan() {
		n++
		line := strings.TrimSuffix(s.Text(), "\r")
		if total += len(line) + 1; total > eachMost {
			return nil, &beeyard.Error{Op: "read lines", ID: file, Err: beeyard.Because(beeyard.ErrUsage, "more than 64 MiB of lines")}
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !beeyard.ValidText(line) {
			return nil, &beeyard.Error{Op: "read lines", ID: file, Err: beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("line %d is not UTF-8 text", n))}
		}
		lines = append(lines, line)
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("line %d is longer than 128 KiB, more than an argument may be", n+1))
		}
		return nil, &beeyard.Error{Op: "read lines", ID: file, Err: err}
	}
	return lines, nil
}

// each enqueues what is missing, works, and tells how it went.
func (p *program) each(ctx context.Context, e *worker.Each, cfg worker.Config) error {
	run, err := p.openOrMakeRun(ctx)
	if err != nil {
		return err
	}
	defer run.Close()
	tasks, err := e.Tasks(p.clock.Now())
	if err != nil {
		return err
	}
	answers, err := run.Enqueue(ctx, tasks, beeyard.EnqueueOptions{IfAbsent: true})
	if err != nil {
		return err
	}
	added := 0
	for _, a := range answers {
		if a.Status == "enqueued" {
			added++
		}
	}
	if old := len(answers) - added; old > 0 {
		p.notef("going on: %d of %d tasks were here already", old, len(answers))
	}
	defer outliveReaders()()
	bar := p.newBar(len(tasks))
	ids := make(map[string]bool, len(tasks))
	for _, t := range tasks {
		ids[t.ID] = true
	}
	bar.base, err = countEnded(ctx, run, ids)
	if err != nil {
		return err
	}
	lines := p.workLines()
	cfg.Report = func(ev worker.Event) {
		bar.hear(ev)
		if !bar.on {
			lines(ev)
		}
	}
	_, err = p.runWorker(ctx, run, cfg)
	bar.end()
	if err != nil {
		return err
	}
	return p.eachEnd(ctx, run, tasks)
}

type eachResult struct {
	Run      string                `json:"run"`
	Total    int                   `json:"total"`
	ByState  map[beeyard.State]int `json:"by_state"`
	Failed   []string              `json:"failed"`
	Artifact string                `json:"then_artifact,omitempty"`
}

func (p *program) eachEnd(ctx context.Context, run beeyard.Run, tasks []*beeyard.Task) error {
	ctx = context.WithoutCancel(ctx)
	res := eachResult{Run: run.Location(), Total: len(tasks), ByState: map[beeyard.State]int{}, Failed: []string{}}
	for _, t := range tasks {
		v, err := run.Get(ctx, t.ID)
		if err != nil {
			return err
		}
		res.ByState[v.State]++
		if v.State == beeyard.StateFailed || v.State == beeyard.StateCanceled {
			res.Failed = append(res.Failed, t.ID)
		}
		if t.Type == worker.ThenType && v.State == beeyard.StateDone && v.Task.Ext.Artifact != nil {
			res.Artifact = filepath.Join(run.Location(), "artifacts", t.ID+".md")
		}
	}
	if p.json {
		if err := p.printJSON(res); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.stdout, "%d of %d done", res.ByState[beeyard.StateDone], res.Total)
		if len(res.Failed) > 0 {
			fmt.Fprintf(p.stdout, ", %d failed: %s", len(res.Failed), plain(strings.Join(res.Failed, " "), 300))
		}
		fmt.Fprintln(p.stdout)
		if res.Artifact != "" {
			fmt.Fprintln(p.stdout, res.Artifact)
		}
		if len(res.Failed) > 0 {
			p.notef("beeyard logs TASK shows what a line wrote; beeyard retry TASK lets it run again when this command is repeated")
		}
		if res.ByState[beeyard.StateBlocked] > 0 {
			p.notef("--then did not run: it waits until every line is done")
		}
	}
	if res.ByState[beeyard.StateDone] < res.Total {
		return silent(exitFailed)
	}
	return nil
}

func countEnded(ctx context.Context, run beeyard.Run, ids map[string]bool) (int, error) {
	n := 0
	for id := range ids {
		v, err := run.Get(ctx, id)
		if err != nil {
			return 0, err
		}
		if v.State.Finished() {
			n++
		}
	}
	return n, nil
}

// openOrMakeRun opens the run that was named, or makes it: the same command
// starts and goes on.
func (p *program) openOrMakeRun(ctx context.Context) (beeyard.Run, error) {
	run, err := p.openRun(ctx, "")
	if err == nil || !errors.Is(err, beeyard.ErrNotFound) {
		return run, err
	}
	name, nerr := p.runName("")
	if nerr != nil || name == "" || strings.Contains(name, "://") {
		return nil, errors.Join(err, nerr)
	}
	path := name
	if !strings.ContainsRune(name, filepath.Separator) {
		if err := beeyard.CheckID("run", name); err != nil {
			return nil, err
		}
		root, err := p.rootPath()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(root, name)
	}
	made, err := open.CreateDir(ctx, path, beeyard.Checkpoint{Summary: "Created by beeyard each"}, open.Options{Warn: p.warn, Clock: p.clock})
	if errors.Is(err, beeyard.ErrExists) {
		return open.Run(ctx, path, open.Options{Warn: p.warn, Clock: p.clock}) // another one was faster
	}
	return made, err
}
