package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"beeyard"
	"beeyard/open"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

// addCompat adds the older programs. Each has a command tree of its own: their
// flags are theirs, and ours (--run, --quiet …) are unknown to them.
func (p *program) addCompat(root *cobra.Command) {
	g := p.compatGroup(root)
	g.Long = `Acts as the older programs do: same flags, same output, same exit codes. Called
by one of their names (swarm-cli, worker_loop.sh, sweep-state), beeyard acts as
that program; compat link makes such links.`
	for name, t := range map[string]struct {
		use, short string
		tree       func() *cobra.Command
	}{
		"swarm-cli":   {"swarm-cli COMMAND …", "The older queue and checkpoint commands", p.swarmCLI},
		"worker-loop": {"worker-loop --run-dir DIR --worker-id ID --handler PROGRAM …", "The older worker: one task at a time", p.workerLoop},
	} {
		g.AddCommand(&cobra.Command{
			Use: t.use, Short: t.short, Long: t.short + ". See beeyard compat " + name + " --help.", DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, argv []string) error { return p.asOlder(cmd, t.tree(), argv) },
		})
	}
	g.AddCommand(p.compatLink())
}

// asOlder runs an older program's command line, and ends as it would.
func (p *program) asOlder(cmd, tree *cobra.Command, argv []string) error {
	tree.SilenceErrors, tree.SilenceUsage = true, true
	tree.CompletionOptions.DisableDefaultCmd = true
	tree.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	tree.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	tree.SetArgs(argv)
	tree.SetIn(p.stdin)
	tree.SetOut(p.stdout)
	tree.SetErr(p.stderr)
	err := tree.ExecuteContext(cmd.Context())
	if err == nil {
		return nil
	}
	code := olderCode(err)
	var e *exitError
	if !errors.As(err, &e) || e.err != nil {
		fmt.Fprintf(p.stderr, "%s: %s\n", tree.Name(), strings.TrimPrefix(err.Error(), tree.Name()+": "))
		if hint := beeyard.HintOf(err); hint != "" {
			fmt.Fprintf(p.stderr, "  %s\n", hint)
		}
	}
	return silent(code)
}

// olderCode: 2 for misuse, 1 for all else, unless the command said otherwise.
func olderCode(err error) int {
	var e *exitError
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, beeyard.ErrUsage):
		return exitUsage
	}
	return exitFailed
}

// olderTree groups an older program's commands.
func olderTree(name, short string, commands ...*cobra.Command) *cobra.Command {
	tree := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return usageText(cmd, "it needs a command: "+strings.Join(names(cmd), ", "))
		}}
	tree.AddCommand(commands...)
	return tree
}

// olderFlags are the flags of one older command that hold text.
type olderFlags struct{ cmd *cobra.Command }

func (f olderFlags) text(name, doc string) *string { return f.cmd.Flags().String(name, "", doc) }

// need refuses a command line without these flags, or with one of them empty.
func need(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if cmd.Flags().Lookup(name).Value.String() == "" {
			return usageText(cmd, "it needs --"+name)
		}
	}
	return nil
}

// given is the value of an optional flag; nil when it is left out or empty, as
// in --next-task-id "$NEXT" of a script that has no next.
func given(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}

// commaList splits a,b and passes over blanks.
func commaList(s string) []string {
	var list []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// seconds reads a plain number of seconds, at least least.
func seconds(cmd *cobra.Command, flag, text string, least float64) (time.Duration, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < least || n > 1e9 {
		return 0, usageText(cmd, "--"+flag+" is not a number of seconds: "+beeyard.Quote(text))
	}
	return time.Duration(n * float64(time.Second)), nil
}

// olderAccess says what an older command may do to a folder that is no run.
type olderAccess int

const (
	olderMakes   olderAccess = iota // makes it
	olderChanges                    // needs it
	olderLooks
)

// olderRun opens a run by its path alone: older programs know no root.
func (p *program) olderRun(path string, access olderAccess) (*spool.Run, error) {
	host, err := open.Host()
	if err != nil {
		return nil, err
	}
	o := spool.Options{Host: host, Warn: p.warn, ReadOnly: access == olderLooks}
	if access == olderMakes {
		return spool.OpenOlder(path, o, p.clock)
	}
	return spool.Open(path, o, p.clock)
}

// withOlder opens a run, does and closes.
func (p *program) withOlder(path string, access olderAccess, do func(r *spool.Run) error) error {
	r, err := p.olderRun(path, access)
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}
