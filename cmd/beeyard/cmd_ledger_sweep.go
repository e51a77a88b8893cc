package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
	"beeyard/ledger"

	"github.com/spf13/cobra"
)

func (p *program) ledgerAcquire(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "acquire --writer NAME", Short: "Take the lease, or renew one's own",
		Long: "Takes the lease when nobody has it, when it is proven to have run out, or when\nit is one's own already. With --branch it answers OK only after the lease has\nbeen pushed and found to be ours in what came back.",
		Args: args(0, 0),
	}
	writer := p.writerFlag(cmd)
	ttl := cmd.Flags().Duration("ttl", ledger.DefaultTTL*time.Minute, "how long the lease lasts without a write; whole minutes")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w, err := writer()
		if err != nil {
			return err
		}
		if *ttl < time.Minute || *ttl%time.Minute != 0 {
			return usageText(cmd, "--ttl must be whole minutes, from 1m")
		}
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.change(cmd.Context(), "acquire", w, func(d *ledger.Document) ledger.Outcome {
			return ledger.Acquire(d, w, int64(*ttl/time.Minute), at.now)
		})
		if err == nil && out.OK() {
			// What a writer that was killed left behind. The lease is ours whether
			// or not that can be tidied.
			if cerr := at.file.Clean(cmd.Context()); cerr != nil {
				p.notef("temporary files of a killed writer may be left: %v", cerr)
			}
		}
		return p.answer(cmd, at.path, out, err)
	}
	return cmd
}

func (p *program) ledgerRelease(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "release --writer NAME", Short: "Give the lease back", Args: args(0, 0)}
	writer := p.writerFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w, err := writer()
		if err != nil {
			return err
		}
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.change(cmd.Context(), "release", w, func(d *ledger.Document) ledger.Outcome { return ledger.Release(d, w) })
		return p.answer(cmd, at.path, out, err)
	}
	return cmd
}

func (p *program) ledgerUpsert(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "upsert --writer NAME --source SOURCE --id ID [ITEM]", Short: "Put an item, or some fields of it",
		Long: `The item is a JSON object on stdin (or an argument, which other users of the
machine can see). Keys that are sent are replaced, all others stay. Body and
quote of a sensitive item are dropped before anything is written. A proven close
stays closed unless the status is fix_pending or --reopen is given.`,
		Args: args(0, 1),
	}
	writer := p.writerFlag(cmd)
	f := cmd.Flags()
	source := f.String("source", "", "source id")
	id := f.String("id", "", "the item's id at its source")
	reopen := f.Bool("reopen", false, "let any status open a proven close again")
	needFlags(cmd, "source", "id")
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		w, err := writer()
		if err != nil {
			return err
		}
		text := []byte(strings.Join(a, ""))
		if len(a) == 0 {
			if text, err = p.readAll(16 << 20); err != nil {
				return err
			}
		}
		v, err := ledger.ParseJSON(text)
		if err != nil || v.Map() == nil {
			reason := "the item is not a JSON object"
			if err != nil {
				reason += ": " + err.Error()
			}
			return usageText(cmd, reason)
		}
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.held(cmd.Context(), func(d *ledger.Document) ledger.Outcome {
			return ledger.Put(d, ledger.Upsert{Writer: w, Source: *source, ID: *id, Fields: v.Map(), Reopen: *reopen}, at.now)
		})
		return p.answer(cmd, ledger.ItemKey(*source, *id), out, err)
	}
	return cmd
}

// readAll reads stdin within a bound.
func (p *program) readAll(most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(p.stdin, most+1))
	if err != nil {
		return nil, fmt.Errorf("read stdin: %w", err)
	}
	if int64(len(data)) > most {
		return nil, &beeyard.Error{Op: "read stdin", Err: beeyard.Because(beeyard.ErrUsage, fmt.Sprintf("more than %d bytes", most))}
	}
	return data, nil
}

func (p *program) ledgerCursor(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cursor --source SOURCE [--to CURSOR --past-item ID --writer NAME]", Short: "Show or move a source's cursor",
		Long: "Without --to it shows the cursor. With it, the cursor moves past an item that is\nin the ledger, and never back unless --force says so.",
		Args: args(0, 0),
	}
	writer := p.writerFlag(cmd)
	f := cmd.Flags()
	move := ledger.CursorMove{}
	f.StringVar(&move.Source, "source", "", "source id")
	f.StringVar(&move.To, "to", "", "where the cursor goes")
	f.StringVar(&move.PastItem, "past-item", "", "the item that it moves past")
	f.BoolVar(&move.Force, "force", false, "let the cursor move back")
	needFlags(cmd, "source")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		if !f.Changed("to") {
			d, err := at.load(cmd.Context())
			if err != nil {
				return err
			}
			return p.answer(cmd, move.Source, ledger.Cursor(d, move.Source), nil)
		}
		if !f.Changed("past-item") {
			return usageText(cmd, "--to needs --past-item")
		}
		if move.Writer, err = writer(); err != nil {
			return err
		}
		out, err := at.held(cmd.Context(), func(d *ledger.Document) ledger.Outcome { return ledger.Advance(d, move, at.now) })
		return p.answer(cmd, move.Source, out, err)
	}
	return cmd
}

func (p *program) ledgerApply(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "apply --writer NAME", Short: "Carry out a stream of upserts and cursor moves with one write",
		Long: `Reads one operation a line from stdin and answers each with a line, once all are
durable:

  {"op":"upsert","source":"gh","id":"12","item":{"status":"ingested"}}
  {"op":"cursor","source":"gh","to":"12","past_item":"12"}

Each operation stands for itself unless --atomic is given. The exit code is that
of the first that failed.`,
		Args: args(0, 0),
	}
	writer := p.writerFlag(cmd)
	atomic := cmd.Flags().Bool("atomic", false, "all or nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w, err := writer()
		if err != nil {
			return err
		}
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		ops, err := ledger.ReadOperations(p.stdin, w)
		if err != nil {
			return err
		}
		var answers []ledger.Answer
		out, err := at.change(cmd.Context(), "apply", w, func(d *ledger.Document) (out ledger.Outcome) {
			answers, out = ledger.Apply(d, ops, *atomic, at.now)
			return out
		})
		if err != nil {
			return err
		}
		buf := bufio.NewWriter(p.stdout)
		for _, a := range answers {
			line, err := a.MarshalJSON()
			if err != nil {
				return err
			}
			if !p.json {
				line = []byte(strings.TrimRight(fmt.Sprintf("%d %s %s", a.Line, a.Outcome.Word, plain(a.Outcome.Reason, 200)), " "))
			}
			if _, err := buf.Write(append(line, '\n')); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
		if err := buf.Flush(); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return out.Err(cmd.CommandPath(), at.path)
	}
	return cmd
}

func (p *program) ledgerRecord(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "record --writer NAME --outcome OUTCOME", Short: "Record how a run ended; needs no lease",
		Args: args(0, 0),
	}
	writer := p.writerFlag(cmd)
	f := cmd.Flags()
	outcome := f.String("outcome", "", strings.Join(ledger.Outcomes, ", "))
	counts := f.String("counts", "{}", "counts as a JSON object")
	stamp := f.String("timestamp", "", "when the run ended (default: --now)")
	needFlags(cmd, "outcome")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		w, err := writer()
		if err != nil {
			return err
		}
		if !slices.Contains(ledger.Outcomes, *outcome) {
			return usageText(cmd, "--outcome is one of "+strings.Join(ledger.Outcomes, ", "))
		}
		v, err := ledger.ParseJSON([]byte(*counts))
		if err != nil || v.Map() == nil {
			return usageText(cmd, "--counts is not a JSON object")
		}
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		if *stamp == "" {
			*stamp = at.now.Text
		} else if _, ok := ledger.ParseTime(*stamp); !ok {
			return usageText(cmd, "--timestamp is not a time: "+beeyard.Quote(*stamp))
		}
		out, err := at.change(cmd.Context(), "record", w, func(d *ledger.Document) ledger.Outcome {
			return ledger.Record(d, ledger.Run{Writer: w, Outcome: *outcome, Timestamp: *stamp, Counts: v})
		})
		return p.answer(cmd, at.path, out, err)
	}
	return cmd
}

func (p *program) ledgerValidate(l *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "validate", Short: "Make every closed item without proof fix_pending; needs no lease",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := p.openLedger(cmd, l)
			if err != nil {
				return err
			}
			out, err := at.change(cmd.Context(), "validate", "", func(d *ledger.Document) ledger.Outcome { return ledger.Validate(d, at.now) })
			return p.answer(cmd, at.path, out, err)
		},
	}
}

func (p *program) ledgerImport(l *ledgerFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import --file FILE", Short: "Take cursors and items from an older state file; needs no lease",
		Long: "Takes what fits and skips the rest. A cursor never moves back, and an item that\nis here already keeps its fields.",
		Args: args(0, 0),
	}
	f := cmd.Flags()
	file := f.String("file", "", "the older state, JSON")
	sourceMap := f.StringArray("source-map", nil, "CHANNEL=SOURCE, or a JSON object: source ids of channels; may be repeated")
	needFlags(cmd, "file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		data, err := durable.ReadNamed(*file, ledger.MaxBytes)
		if err != nil {
			return &beeyard.Error{Op: "read older state", ID: *file, Err: fmt.Errorf("%w: %w", beeyard.ErrNotFound, err)}
		}
		v, err := ledger.ParseJSON(data)
		if err != nil || v.Map() == nil {
			return usageText(cmd, "the file is not a JSON object")
		}
		channels, err := channelMap(*sourceMap)
		if err != nil {
			return usage(cmd, err)
		}
		at, err := p.openLedger(cmd, l)
		if err != nil {
			return err
		}
		out, err := at.change(cmd.Context(), "import", "", func(d *ledger.Document) ledger.Outcome { return ledger.Import(d, v.Map(), channels, at.now) })
		return p.answer(cmd, at.path, out, err)
	}
	return cmd
}

// channelMap reads CHANNEL=SOURCE and JSON objects of them.
func channelMap(texts []string) (map[string]string, error) {
	channels := map[string]string{}
	for _, text := range texts {
		if strings.HasPrefix(text, "{") {
			if err := strict.Unmarshal([]byte(text), &channels, strict.Options{}); err != nil {
				return nil, fmt.Errorf("--source-map is no JSON object of strings: %w", err)
			}
			continue
		}
		channel, source, ok := strings.Cut(text, "=")
		if !ok || channel == "" || source == "" {
			return nil, fmt.Errorf("--source-map is not CHANNEL=SOURCE: %s", beeyard.Quote(text))
		}
		channels[channel] = source
	}
	return channels, nil
}
