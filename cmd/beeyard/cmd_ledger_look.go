package main

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"beeyard/ledger"

	"github.com/spf13/cobra"
)

func (p *program) ledgerRead(l *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "read", Short: "Print the whole ledger",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := p.openLedger(cmd, l)
			if err != nil {
				return err
			}
			d, err := at.load(cmd.Context())
			if err != nil {
				return err
			}
			return p.show(d, func(w io.Writer) error {
				_, err := w.Write(d.Bytes(ledger.Native))
				return err
			})
		},
	}
}

func (p *program) ledgerStatus(l *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what is open, by source and status, and who holds the lease",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := p.openLedger(cmd, l)
			if err != nil {
				return err
			}
			d, err := at.load(cmd.Context())
			if err != nil {
				return err
			}
			s := ledger.StatusOf(d, at.now)
			return p.show(s, func(w io.Writer) error { return printStatus(w, s) })
		},
	}
}

func printStatus(w io.Writer, s ledger.Status) error {
	if s.Lease == nil {
		fmt.Fprintln(w, "lease: nobody")
	} else {
		fmt.Fprintf(w, "lease: %s since %s", plain(s.Lease.Writer, 80), plain(s.Lease.Since, 40))
		if s.Lease.Until != "" {
			fmt.Fprintf(w, " until %s", s.Lease.Until)
		}
		if s.Lease.Note != "" {
			fmt.Fprintf(w, " (%s)", s.Lease.Note)
		}
		fmt.Fprintln(w)
	}
	if last := s.LastRun.Map(); last != nil {
		word := func(key string) string { v, _ := last.Get(key); return plain(jsonText(v), 80) }
		fmt.Fprintf(w, "last run: %s at %s by %s\n", word("outcome"), word("timestamp"), word("writer"))
	}
	fmt.Fprintf(w, "items: %d, open %d, closed %d, source gone %d\n\n", s.Items, s.Open, s.Closed, s.Gone)
	err := table(w, func(w io.Writer) {
		fmt.Fprintln(w, "SOURCE\tOPEN\tCURSOR\tSTATUSES")
		for _, src := range s.Sources {
			var parts []string
			for status, n := range src.Statuses {
				parts = append(parts, fmt.Sprintf("%s %d", plain(orDash(status), 40), n))
			}
			sort.Strings(parts)
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", plain(src.Source, 60), src.Open, plain(cursorText(src.Cursor), 40), strings.Join(parts, ", "))
		}
	})
	if err != nil || len(s.Oldest) == 0 {
		return err
	}
	fmt.Fprintln(w, "\noldest open:")
	return printRows(w, s.Oldest)
}

func cursorText(v ledger.Value) string {
	if v.Kind() == ledger.Null {
		return "-"
	}
	return jsonText(v)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func printRows(w io.Writer, rows []ledger.Row) error {
	return table(w, func(w io.Writer) {
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", plain(r.Key, 80), plain(orDash(r.Status), 20), orDash(r.At), plain(r.Title, 80))
		}
	})
}

func (p *program) ledgerList(l *ledgerFlags) *cobra.Command {
	var filter ledger.Filter
	cmd := &cobra.Command{
		Use: "list", Short: "List items, oldest first",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := p.openLedger(cmd, l)
			if err != nil {
				return err
			}
			d, err := at.load(cmd.Context())
			if err != nil {
				return err
			}
			rows := ledger.Rows(d, filter)
			return p.show(rows, func(w io.Writer) error { return printRows(w, rows) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&filter.Sources, "source", nil, "only this source; may be repeated")
	f.StringArrayVar(&filter.Statuses, "status", nil, "only this status; may be repeated")
	f.BoolVar(&filter.Open, "open", false, "only what is neither closed nor gone at its source")
	f.StringVar(&filter.Text, "text", "", "only items whose key or title has this text")
	f.IntVar(&filter.Limit, "limit", 0, "at most so many; 0: all")
	return cmd
}

func (p *program) ledgerShow(l *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one item",
		Long: "ID is the item's key (source:id), or its id where only one item has it.",
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, a []string) error {
			at, err := p.openLedger(cmd, l)
			if err != nil {
				return err
			}
			d, err := at.load(cmd.Context())
			if err != nil {
				return err
			}
			key, o := d.Find(a[0])
			if key == "" {
				return o.Err(cmd.CommandPath(), a[0])
			}
			v, _ := d.Items().Get(key)
			return p.show(map[string]any{"key": key, "item": v}, func(w io.Writer) error {
				fmt.Fprintln(w, plain(key, 0))
				return table(w, func(w io.Writer) {
					for k, v := range v.Map().All() {
						fmt.Fprintf(w, "  %s\t%s\n", plain(k, 60), plain(jsonText(v), 2000))
					}
				})
			})
		},
	}
}

func (p *program) ledgerHistory(l *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "history [ID]", Short: "Show closes taken back and what merges lost, oldest first",
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, a []string) error {
			at, err := p.openLedger(cmd, l)
			if err != nil {
				return err
			}
			d, err := at.load(cmd.Context())
			if err != nil {
				return err
			}
			key := ""
			if len(a) == 1 {
				var o ledger.Outcome
				if key, o = d.Find(a[0]); key == "" {
					return o.Err(cmd.CommandPath(), a[0])
				}
			}
			changes := ledger.History(d, key)
			return p.show(changes, func(w io.Writer) error {
				return table(w, func(w io.Writer) {
					for _, c := range changes {
						word := func(k string) string { v, _ := c.Entry.Map().Get(k); return plain(jsonText(v), 60) }
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", word("at"), plain(c.Key, 80), word("change"), plain(jsonText(c.Entry), 300))
					}
				})
			})
		},
	}
}
