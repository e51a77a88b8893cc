package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"beeyard/internal/clock"

	"github.com/spf13/cobra"
)

// program is one run of the command: what it reads, writes and has been told.
// It decides nothing about a task; it asks a run and shows the answer.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) (string, bool)
	clock          clock.Clock

	json    bool
	noColor bool
	quiet   bool
	rootDir string // --root
	runRef  string // --run
	config  *config

	draining atomic.Bool // a command that ends by its own rules is at work
	exit     func(code int)
}

func newProgram() *program {
	return &program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.LookupEnv, clock: clock.Real(), exit: os.Exit}
}

func (p *program) env(name string) string {
	v, _ := p.getenv(name)
	return v
}

// main runs the command line and returns the exit code.
func (p *program) main(ctx context.Context, args []string) int {
	// The first TERM, INT or HUP ends the context; commands that drain ask for
	// the second themselves (see runWorker).
	ctx, stop := signal.NotifyContext(ctx, stopSignals()...)
	defer stop()
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { p.giveUp(ctx, ended) })
	defer watch.Wait()
	defer close(ended)
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	rest := args[1:]
	if as, ok := compatNames[name]; ok {
		// Called by an older program's name: act as it, without our own flags.
		rest = append([]string{"compat", as}, rest...)
	}
	root := p.root()
	root.SetArgs(rest)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && wantsJSON(rest) {
		p.json = true // a bad flag before it keeps it from being read
	}
	return p.finish(cmd, err)
}

// wantsJSON reports whether --json is among the flags.
func wantsJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--json", "--json=true":
			return true
		case "--":
			return false
		}
	}
	return false
}

// endPatience is how long a command that was told to end may take. A read of a
// terminal or a pipe cannot be called off in Go, and who waits there would
// never end; stopping anywhere is safe, as a kill is.
const endPatience = 2 * time.Second

// giveUp ends the program when a signal came and the command does not end.
// Commands that drain have their own rules.
func (p *program) giveUp(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	late := p.clock.NewTimer(endPatience)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C():
		if !p.draining.Load() && p.exit != nil {
			p.notef("interrupted")
			p.exit(exitFailed)
		}
	}
}

// compatNames are the programs that beeyard acts as when called by their name.
var compatNames = map[string]string{
	"swarm-cli":      "swarm-cli",
	"worker_loop.sh": "worker-loop",
	"sweep-state":    "sweep-state",
}

const (
	groupTasks  = "tasks"
	groupLook   = "look"
	groupRuns   = "runs"
	groupWork   = "work"
	groupOthers = "others"
)

// root builds the whole command tree. Commands are values made by functions;
// there is no package-level state, since each start would pay for it.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "beeyard",
		Short:         "A home for agent work that outlives any one context",
		Long:          "beeyard keeps tasks, checkpoints and ledgers in directories, so that any\nagent, script or person can pick the work up cold.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		Args:          cobra.ArbitraryArgs, // so that an unknown command reaches RunE and exits 2
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.AddGroup(
		&cobra.Group{ID: groupTasks, Title: "Tasks:"},
		&cobra.Group{ID: groupWork, Title: "Doing them:"},
		&cobra.Group{ID: groupLook, Title: "Looking:"},
		&cobra.Group{ID: groupRuns, Title: "Runs and checkpoints:"},
		&cobra.Group{ID: groupOthers, Title: "More:"},
	)
	f := root.PersistentFlags()
	f.BoolVar(&p.json, "json", false, "print one JSON value (or JSON lines), errors too")
	f.StringVar(&p.rootDir, "root", "", "folder that holds the runs (default: nearest .swarm/ upward, else ~/.swarm) [BEEYARD_ROOT]")
	f.StringVar(&p.runRef, "run", "", "run: a path, or an id under the root [BEEYARD_RUN]")
	f.BoolVar(&p.noColor, "no-color", false, "no colour [NO_COLOR]")
	f.BoolVarP(&p.quiet, "quiet", "q", false, "no progress and no notes on stderr")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// cobra asks by itself, but its error would not exit with 2.
		if err := cmd.ValidateFlagGroups(); err != nil {
			return usage(cmd, err)
		}
		return nil
	}
	root.SetFlagErrorFunc(flagError)
	for _, add := range p.commands() {
		add(root)
	}
	guardGroups(root)
	return root
}

// commands lists what registers commands, one function a file.
func (p *program) commands() []func(*cobra.Command) {
	return []func(*cobra.Command){
		p.addEnqueue, p.addClaim, p.addComplete, p.addRelease, p.addHeartbeat, p.addReap,
		p.addRetry, p.addCancel, p.addHold, p.addPrune,
		p.addWork, p.addEach,
		p.addLs, p.addShow, p.addWhy, p.addLogs, p.addWait, p.addWatch, p.addGraph, p.addHistory, p.addDoctor,
		p.addRun, p.addCheckpoint, p.addInit,
		p.addConfig, p.addCompletion, p.addVersion, p.addHelp,
		p.addLedger, p.addCompatSweep, p.addCompat,
	}
}

// guardGroups makes every command that only groups others refuse an unknown
// word with exit 2 and a hint, where cobra would print help and exit 0.
func guardGroups(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.HasSubCommands() && c.Run == nil && c.RunE == nil {
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return unknownCommand(cmd, args[0])
				}
				return usageText(cmd, "it needs a command: "+strings.Join(names(cmd), ", "))
			}
		}
		guardGroups(c)
	}
}

func names(cmd *cobra.Command) []string {
	var all []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, c.Name())
		}
	}
	return all
}
