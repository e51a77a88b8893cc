package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/proc"
	"beeyard/worker"

	"github.com/spf13/cobra"
)

func (p *program) addWork(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "work", Short: "Do the tasks of a run with a handler", GroupID: groupWork,
		Long: `Claims tasks and has a handler do each: a program that gets the task's JSON on
stdin and may write its output to $BEEYARD_ARTIFACT_PATH. Exit 0: done. 75: try
again later. 77: the same task on the next tier. Anything else: retried while
attempts are left. TERM: no new tasks, running ones may end within the drain
time; a second TERM ends them at once.`,
		Example: "  beeyard work --run audit --handler ./audit.sh --concurrency 4 --until-empty",
		Args:    args(0, 0),
	}
	f := cmd.Flags()
	f.String("worker-id", "", "id of this worker (default <host>-<pid>); name one for services")
	f.String("handler", "", "program that does one task")
	f.String("handler-mode", "process", "process: one process a task; lines: one that stays, a JSON line in, a JSON line out")
	f.Int("concurrency", 1, "tasks at once")
	f.Duration("poll-interval", 5*time.Second, "how often to look when no event comes")
	f.Duration("heartbeat-interval", 30*time.Second, "how often to beat")
	f.Duration("stale-after", 300*time.Second, "silence after which a claim whose death cannot be proven is taken")
	f.Duration("drain-timeout", 30*time.Second, "how long handlers may run on after TERM")
	f.Duration("grace", 10*time.Second, "between TERM and KILL of a handler's tree")
	f.Duration("timeout", 0, "a task's longest run where it names none; 0: none")
	f.Int("max-attempts", 3, "failed settles before a task fails")
	f.Int("max-deaths", 3, "worker deaths before a task fails")
	f.Duration("backoff", 10*time.Second, "first delay of a retry, doubled each time")
	f.Duration("max-backoff", 10*time.Minute, "longest delay of a retry")
	f.Int("log-cap", 10<<20, "bytes of a task's log")
	list(f, "env", "further environment variables that handlers get")
	f.String("sandbox", "off", "off, or on: handlers may write to their claim only and have no network")
	types := list(f, "task-type-filter", "only tasks of these types")
	tiers := list(f, "tier", "only tasks of these tiers")
	labels := list(f, "label", "only tasks with all of these labels")
	most := f.Int("max-iterations", 0, "end after so many tasks; 0: no end")
	once := f.Bool("once", false, "do one task, or none if none is ready")
	untilEmpty := f.Bool("until-empty", false, "end when nothing is left to do")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := p.conf()
		if err != nil {
			return err
		}
		cfg, err := p.workerConfig(c, cmd)
		if err != nil {
			return err
		}
		cfg.Filter = beeyard.Filter{Types: *types, Tiers: *tiers, Labels: *labels}
		cfg.MaxIterations, cfg.Once, cfg.UntilEmpty = *most, *once, *untilEmpty
		if cfg.Handler, err = p.handler(c, cmd, cfg); err != nil {
			return err
		}
		run, err := p.openRun(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer run.Close()
		defer outliveReaders()()
		cfg.Report = p.workLines()
		sum, err := p.runWorker(cmd.Context(), run, cfg)
		if p.json {
			if err == nil {
				return p.printJSON(map[string]any{"kind": "ended", "handled": sum.Handled, "by_outcome": sum.By})
			}
		} else {
			p.notef("%d tasks handled", sum.Handled)
		}
		return err
	}
	root.AddCommand(cmd)
}

// workerConfig reads the settings of a worker.
func (p *program) workerConfig(c *config, cmd *cobra.Command) (worker.Config, error) {
	var cfg worker.Config
	var errs []error
	duration := func(key string) time.Duration {
		d, err := c.duration(key, cmd.Flags())
		errs = append(errs, err)
		return d
	}
	count := func(key string) int {
		n, err := c.int(key, cmd.Flags())
		errs = append(errs, err)
		return n
	}
	cfg.ID = c.get("worker.id", cmd.Flags()).text
	if cfg.ID == "" {
		cfg.ID = defaultWorkerID()
	}
	errs = append(errs, beeyard.CheckID("worker", cfg.ID))
	cfg.Concurrency = count("worker.concurrency")
	cfg.Poll, cfg.Heartbeat = duration("worker.poll_interval"), duration("worker.heartbeat_interval")
	cfg.StaleAfter, cfg.Drain = duration("worker.stale_after"), duration("worker.drain_timeout")
	cfg.Grace, cfg.Timeout = duration("worker.grace"), duration("worker.timeout")
	cfg.Limits = beeyard.Limits{MaxAttempts: count("worker.max_attempts"), MaxDeaths: count("worker.max_deaths"),
		Backoff: duration("worker.backoff"), MaxBackoff: duration("worker.max_backoff")}
	cfg.LogCap = int64(count("worker.log_cap"))
	cfg.Tiers = c.list("tiers", nil)
	return cfg, errors.Join(errs...)
}

// defaultWorkerID is unique to this process: two that shared an id would hide
// each other's death.
func defaultWorkerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	var b strings.Builder
	for _, r := range host {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' && b.Len() > 0 {
			b.WriteRune(r)
		}
		if b.Len() == 64 {
			break
		}
	}
	if b.Len() == 0 {
		b.WriteString("host")
	}
	return fmt.Sprintf("%s-%d", b.String(), os.Getpid())
}

func (p *program) handler(c *config, cmd *cobra.Command, cfg worker.Config) (worker.Handler, error) {
	path := c.get("worker.handler", cmd.Flags()).text
	if path == "" {
		return nil, usageText(cmd, "it needs --handler PROGRAM")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolve handler: %w", err)
	}
	env := worker.Environment(p.getenv, c.list("worker.env", cmd.Flags()))
	var sandbox bool
	switch v := c.get("worker.sandbox", cmd.Flags()); v.text {
	case "off", "":
	case "on":
		sandbox = true
		if s := proc.SandboxStatus(); !s.Files || !s.Network {
			p.notef("sandbox: NOT fully enforced on this kernel (files %v, network %v)", s.Files, s.Network)
		}
	default:
		return nil, c.badValue("worker.sandbox", v, beeyard.Because(beeyard.ErrUsage, "it is on or off"))
	}
	switch v := c.get("worker.handler_mode", cmd.Flags()); v.text {
	case "process":
		return &worker.Process{Path: path, Env: env, Sandbox: sandbox}, nil
	case "lines":
		if sandbox {
			return nil, usageText(cmd, "the sandbox is for --handler-mode process: a handler that stays cannot be held to one task's folder")
		}
		return &worker.Lines{Path: path, Env: env, Grace: cfg.Grace, Clock: p.clock}, nil
	default:
		return nil, c.badValue("worker.handler_mode", v, beeyard.Because(beeyard.ErrUsage, "it is process or lines"))
	}
}

// runWorker runs w until it ends by itself or is told to: the first TERM
// drains, the second ends handlers at once.
func (p *program) runWorker(ctx context.Context, run beeyard.Run, cfg worker.Config) (worker.Summary, error) {
	p.draining.Store(true)
	defer p.draining.Store(false)
	w, err := worker.New(run, cfg, p.clock)
	if err != nil {
		return worker.Summary{By: map[beeyard.Outcome]int{}}, err
	}
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
	// The first signal ended ctx already; only later ones count here.
	second := make(chan os.Signal, 1)
	signal.Notify(second, stopSignals()...)
	wg.Go(func() {
		defer signal.Stop(second)
		var count stopCount
		for {
			select {
			case <-second:
				if count.again(p.clock.Now()) {
					p.notef("second signal: ending handlers at once")
					w.StopNow()
				}
			case <-helpers.Done():
				return
			}
		}
	})
	sum, err := w.Run(ctx)
	stop()
	wg.Wait()
	proc.Close() // the cgroups kept for reuse
	return sum, err
}

// workLines shows what a worker does: JSON lines on stdout, or notes on stderr.
func (p *program) workLines() func(worker.Event) {
	if p.json {
		enc := json.NewEncoder(p.stdout)
		enc.SetEscapeHTML(false)
		return func(e worker.Event) {
			out := map[string]any{"time": beeyard.FormatTime(p.clock.Now()), "kind": e.Kind}
			for k, v := range map[string]string{"task_id": e.TaskID, "outcome": string(e.Outcome), "state": string(e.State), "text": e.Text} {
				if v != "" {
					out[k] = v
				}
			}
			if e.Kind == "settled" {
				out["duration_ms"] = e.Took.Milliseconds()
			}
			if len(e.Reaps) > 0 {
				out["reaped"] = e.Reaps
			}
			_ = enc.Encode(out) // a reader that went away must not stop the work
		}
	}
	return func(e worker.Event) {
		if line := workLine(e); line != "" {
			p.notef("%s", line)
		}
	}
}

func workLine(e worker.Event) string {
	id := plain(e.TaskID, 60)
	switch e.Kind {
	case "started":
		return "worker " + e.Text + " started"
	case "settled":
		s := fmt.Sprintf("%s %s in %s", id, e.Outcome, e.Took.Round(time.Millisecond))
		if e.Outcome != beeyard.OutcomeDone && e.Text != "" {
			s += ": " + plain(e.Text, 200)
		}
		return s
	case "reaped":
		var parts []string
		for _, r := range e.Reaps {
			parts = append(parts, fmt.Sprintf("%s of %s %s", plain(r.TaskID, 60), plain(r.Worker, 60), r.Action))
		}
		return "reaped: " + strings.Join(parts, "; ")
	case "claimed":
		return ""
	}
	if id != "" {
		return id + ": " + plain(e.Text, 400)
	}
	return plain(e.Text, 400)
}
