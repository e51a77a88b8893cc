package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"beeyard/ledger"

	"github.com/spf13/cobra"
)

// optionalWriter is --writer of commands that a person may give without one,
// while nobody holds the lease.
func (p *program) optionalWriter(cmd *cobra.Command) *string {
	return cmd.Flags().String("writer", "", "the lease's holder; without it the lease must be free or run out")
}

func (p *program) ledgerClose(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "close ID --fix-ref REF --merge-sha SHA --verified-at TIME", Short: "Close an item with proof",
		Args: args(1, 1),
	}
	writer := p.optionalWriter(cmd)
	var e ledger.Evidence
	f := cmd.Flags()
	f.StringVar(&e.FixRef, "fix-ref", "", "the fix: a pull request, an issue, a commit")
	f.StringVar(&e.MergeSHA, "merge-sha", "", "the merged commit: 40 or 64 lower-case hex digits")
	f.StringVar(&e.VerifiedAt, "verified-at", "", "when the fix was verified, RFC 3339, not in the future")
	needFlags(cmd, "fix-ref", "merge-sha", "verified-at")
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.change(cmd.Context(), "close", *writer, func(d *ledger.Document) ledger.Outcome {
			return ledger.Close(d, a[0], *writer, e, at.now)
		})
		return p.answer(cmd, a[0], out, err)
	}
	return cmd
}

func (p *program) ledgerReopen(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reopen ID", Short: "Take back a close that was found to be false",
		Long: "The item becomes fix_pending; its evidence is kept in its history.",
		Args: args(1, 1),
	}
	writer := p.optionalWriter(cmd)
	reason := cmd.Flags().String("reason", "", "why, for the history")
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.change(cmd.Context(), "reopen", *writer, func(d *ledger.Document) ledger.Outcome {
			return ledger.Reopen(d, a[0], *writer, *reason, at.now)
		})
		return p.answer(cmd, a[0], out, err)
	}
	return cmd
}

func (p *program) ledgerRedact(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "redact [--source SOURCE]", Short: "Drop body and quote of sensitive items stored before that was known",
		Long: "With --source, that source is marked sensitive first. It says where older copies\nmay remain, and removes none of those. Needs no lease.",
		Args: args(0, 0),
	}
	source := cmd.Flags().String("source", "", "mark this source sensitive and clean its items")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.change(cmd.Context(), "redact", "", func(d *ledger.Document) ledger.Outcome { return ledger.Redact(d, *source) })
		if err != nil || !out.OK() {
			return p.answer(cmd, at.path, out, err)
		}
		if err := at.file.Clean(cmd.Context()); err != nil {
			return err
		}
		g, err := ledger.NewGit(os.Environ())
		if err != nil {
			g = nil // no git, no history to look into
		}
		remain, err := ledger.Remains(cmd.Context(), g, at.path)
		if err != nil {
			return err
		}
		redacted, _ := out.Payload.Get("redacted")
		return p.show(map[string]any{"word": out.Word, "redacted": redacted, "may_remain": remain}, func(w io.Writer) error {
			fmt.Fprintf(w, "%s\n  redacted: %s\n", out.Word, plain(jsonText(redacted), 0))
			for _, r := range remain {
				if _, err := fmt.Fprintf(w, "  older copies may remain: %s\n", plain(r, 0)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (p *program) ledgerMerge(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "merge BASE OURS THEIRS | merge --install", Short: "Merge three versions of a ledger: a git merge driver",
		Long: `Merges by id and field and writes the result over OURS. A proven close beats an
older open copy, cursors never move back, fields of both sides survive, and of a
true conflict the losing side is kept in the item's history. A version that is no
ledger leaves OURS as it is and ends with 7, on which git keeps the conflict.

--install makes git in this clone use it for the ledger of --state, and names the
ledger in .gitattributes, which is yours to commit.`,
		Args: args(0, 3),
	}
	install := cmd.Flags().Bool("install", false, "configure this clone to merge the ledger with this program")
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		switch {
		case *install && len(a) == 0:
			return p.installMerge(cmd, l)
		case *install || len(a) != 3:
			return usageText(cmd, "it needs BASE OURS THEIRS, or --install")
		}
		conflicts, err := ledger.MergeFiles(a[0], a[1], a[2], ledger.At(p.clock.Now()))
		if err != nil {
			return err
		}
		if conflicts == nil {
			conflicts = []ledger.Conflict{}
		}
		return p.show(map[string]any{"word": ledger.OK, "conflicts": conflicts}, func(w io.Writer) error {
			for _, c := range conflicts {
				if _, err := fmt.Fprintf(w, "%s %s: %s was kept, the other is in the history\n", plain(c.Key, 0), plain(c.Field, 0), c.Kept); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (p *program) installMerge(cmd *cobra.Command, l *ledgerFlags) error {
	at, err := p.openLedger(cmd, l)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved // a link by another name would act as another program
	}
	g, err := ledger.NewGit(os.Environ())
	if err != nil {
		return err
	}
	in, err := ledger.InstallMergeDriver(cmd.Context(), g, at.path, self)
	if err != nil {
		return err
	}
	return p.show(in, func(w io.Writer) error {
		fmt.Fprintf(w, "git merges %s with %s\n", plain(in.Line, 0), plain(in.Driver, 0))
		if in.Attributes != "" {
			fmt.Fprintf(w, "added to %s, which is yours to commit\n", plain(in.Attributes, 0))
		}
		return nil
	})
}
