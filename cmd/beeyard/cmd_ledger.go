package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"beeyard"
	"beeyard/ledger"

	"github.com/spf13/cobra"
)

// lockWait bounds the wait for another process that is writing the same ledger,
// shareWait all that a change takes over a remote.
const (
	lockWait  = 60 * time.Second
	shareWait = 10 * time.Minute
)

// ledgerFlags are what every ledger command takes.
type ledgerFlags struct {
	state, branch, now string
}

func (p *program) addLedger(root *cobra.Command) {
	l := &ledgerFlags{}
	cmd := &cobra.Command{
		Use: "ledger", Short: "What came in, how far it is, who may write, what proves it closed", GroupID: groupOthers,
		Long: `A ledger is one YAML file: sources with their cursors, items with their status,
and the lease of the one writer. Commands that change items need the lease:
acquire it, write, release it.

Exit codes: 3 nothing there, 4 refused, 5 lease lost, 6 locked by another,
7 corrupt, 8 another process kept the file locked.`,
		Example: `  beeyard ledger acquire --state feedback.yml --writer me
  echo '{"status":"ingested"}' | beeyard ledger upsert --state feedback.yml --writer me --source gh --id 12
  beeyard ledger release --state feedback.yml --writer me`,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&l.state, "state", "", "the ledger's file (default: the only one of the setting ledgers)")
	f.StringVar(&l.branch, "branch", "", "REMOTE/BRANCH: share the lease with other machines over git")
	f.StringVar(&l.now, "now", "", "time of the operation, RFC 3339 (default: the clock)")
	for _, add := range []func(*ledgerFlags) *cobra.Command{
		p.ledgerAcquire, p.ledgerRelease, p.ledgerUpsert, p.ledgerCursor, p.ledgerApply, p.ledgerRecord, p.ledgerValidate, p.ledgerImport,
		p.ledgerRead, p.ledgerStatus, p.ledgerList, p.ledgerShow, p.ledgerHistory,
		p.ledgerClose, p.ledgerReopen, p.ledgerRedact, p.ledgerMerge,
	} {
		cmd.AddCommand(add(l))
	}
	root.AddCommand(cmd)
}

// ledgerAt is the ledger that a command works on, on its own or over a branch.
type ledgerAt struct {
	path   string
	file   *ledger.File
	branch *ledger.Branch
	now    ledger.Now
	note   func(format string, a ...any)
}

// fewCollections: a ledger's command lives for some milliseconds and allocates
// five times the file; collecting in between would cost more than it frees.
func fewCollections() { debug.SetGCPercent(400) }

func (p *program) openLedger(cmd *cobra.Command, l *ledgerFlags) (*ledgerAt, error) {
	fewCollections()
	path := l.state
	if path == "" {
		c, err := p.conf()
		if err != nil {
			return nil, err
		}
		all := c.list("ledgers", nil)
		if len(all) != 1 {
			return nil, &beeyard.Error{Op: cmd.CommandPath(), Err: beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("which ledger? The setting ledgers names %d", len(all))),
				Hint: "name one with --state"}
		}
		path = all[0]
	}
	at := &ledgerAt{path: path, note: p.notef, now: ledger.At(p.clock.Now())}
	if l.now != "" {
		now, ok := ledger.ParseTime(l.now)
		if !ok {
			return nil, usageText(cmd, "--now is not a time: "+beeyard.Quote(l.now))
		}
		at.now = ledger.At(now)
	}
	var err error
	if l.branch == "" {
		at.file, err = ledger.OpenFile(path, ledger.Native)
		return at, err
	}
	g, err := ledger.NewGit(os.Environ())
	if err != nil {
		return nil, err
	}
	if at.branch, err = ledger.OpenBranch(cmd.Context(), g, path, l.branch, p.clock); err != nil {
		return nil, err
	}
	at.file = at.branch.File()
	return at, nil
}

// load reads the ledger, after bringing it up to the branch. A missing one is
// ErrNotFound.
func (at *ledgerAt) load(ctx context.Context) (*ledger.Document, error) {
	if at.branch != nil {
		out, err := at.branch.Refresh(ctx)
		if err != nil {
			return nil, err
		}
		if !out.OK() { // to look, what the remote has will do
			at.note("%s: %s; %s", out.Word, out.Reason, out.Next)
		}
	}
	d, err := at.file.Load()
	if err == nil && d == nil {
		err = &beeyard.Error{Op: "read ledger", ID: at.path, Err: beeyard.Because(beeyard.ErrNotFound, string(ledger.NoState)),
			Hint: "'beeyard ledger acquire' starts one"}
	}
	return d, err
}

// change carries out a change: on the file, and with a branch, for every machine.
func (at *ledgerAt) change(ctx context.Context, verb, writer string, change func(*ledger.Document) ledger.Outcome) (ledger.Outcome, error) {
	if at.branch != nil {
		ctx, cancel := context.WithTimeout(ctx, shareWait)
		defer cancel()
		return at.branch.Publish(ctx, verb, writer, change)
	}
	return at.held(ctx, change)
}

// held carries out a change under the lease; over a branch it is published with
// the next apply or release.
func (at *ledgerAt) held(ctx context.Context, change func(*ledger.Document) ledger.Outcome) (ledger.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if at.branch != nil {
		return at.branch.Update(ctx, change)
	}
	return at.file.Update(ctx, change)
}

// answer shows an outcome: its word and payload, or its error.
func (p *program) answer(cmd *cobra.Command, id string, out ledger.Outcome, err error) error {
	if err != nil {
		return err
	}
	if err := out.Err(cmd.CommandPath(), id); err != nil {
		return err
	}
	return p.show(outcomeJSON(out), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, out.Word)
		for k, v := range out.Payload.All() {
			if err == nil {
				_, err = fmt.Fprintf(w, "  %s: %s\n", k, plain(jsonText(v), 0))
			}
		}
		return err
	})
}

func jsonText(v ledger.Value) string {
	if s, ok := v.Str(); ok {
		return s
	}
	data, err := v.MarshalJSON()
	if err != nil {
		return ""
	}
	return string(data)
}

func outcomeJSON(out ledger.Outcome) map[string]any {
	m := map[string]any{"word": out.Word}
	for k, v := range out.Payload.All() {
		m[k] = v
	}
	return m
}

// writerFlag adds --writer, which BEEYARD_WRITER may give too.
func (p *program) writerFlag(cmd *cobra.Command) func() (string, error) {
	w := cmd.Flags().String("writer", "", "who writes: the name that holds the lease [BEEYARD_WRITER]")
	return func() (string, error) {
		if *w == "" {
			*w = p.env("BEEYARD_WRITER")
		}
		if *w == "" {
			return "", usageText(cmd, "it needs --writer")
		}
		return *w, nil
	}
}

// needFlags refuses a call without these flags with exit 2, which cobra's own
// check would not give.
func needFlags(cmd *cobra.Command, names ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, n := range names {
			if !cmd.Flags().Changed(n) {
				return usageText(cmd, "it needs --"+n)
			}
		}
		return nil
	}
}
