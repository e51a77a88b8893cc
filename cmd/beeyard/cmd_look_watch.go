package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"time"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addWatch(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "watch [RUN]", Short: "Print changes as they happen", GroupID: groupLook,
		Long: `Prints what happens in a run, a line a change, until it is interrupted. A line
"counts" tells how many tasks are in each state whenever that has changed, also
by programs that leave no events. With --json each line is one JSON object.`,
		Example: "  beeyard watch audit --json | jq -r 'select(.kind==\"settled\") | .task_id'",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
	}
	since := cmd.Flags().Duration("since", 0, "begin with what happened so long ago")
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		if *since < 0 {
			return usageText(cmd, "--since is not negative")
		}
		arg := ""
		if len(argv) > 0 {
			arg = argv[0]
		}
		run, err := p.readRun(cmd.Context(), arg)
		if err != nil {
			return err
		}
		defer closing(run, &err)
		err = p.watch(cmd.Context(), run, p.clock.Now().Add(-*since))
		if cmd.Context().Err() != nil {
			return nil // interrupted: the way it ends
		}
		return err
	}
	root.AddCommand(cmd)
}

const (
	watchPoll = 2 * time.Second
	// watchOverlap is how late an event may come into the files: clocks of
	// hosts differ, and a line is written after what it tells.
	watchOverlap = 10 * time.Second
)

// watcher remembers what was printed within the overlap.
type watcher struct {
	p      *program
	run    beeyard.Run
	from   time.Time // nothing older is printed
	latest time.Time
	seen   map[beeyard.Event]bool
	counts map[beeyard.State]int
}

func (p *program) watch(ctx context.Context, run beeyard.Run, from time.Time) error {
	changed, err := run.Changed(ctx)
	if err != nil {
		return err
	}
	w := &watcher{p: p, run: run, from: from, latest: from, seen: map[beeyard.Event]bool{}}
	for {
		begun := p.clock.Now()
		if err := w.news(ctx); err != nil {
			return err
		}
		if err := w.count(ctx); err != nil {
			return err
		}
		took := p.clock.Now().Sub(begun)
		if err := p.pause(ctx, changed, watchPoll); err != nil {
			return err
		}
		// Not at once: an event's line is written after the rename that woke us.
		if err := p.pause(ctx, nil, gatherFor(took)); err != nil {
			return err
		}
	}
}

func (w *watcher) news(ctx context.Context) error {
	since := w.latest.Add(-watchOverlap)
	if since.Before(w.from) {
		since = w.from
	}
	now := map[beeyard.Event]bool{}
	var werr error
	err := w.run.ReadEvents(ctx, since, func(e beeyard.Event) bool {
		at, ok := beeyard.ParseTime(e.Time)
		if !ok || at.Before(since) {
			return true
		}
		now[e] = true
		if at.After(w.latest) {
			w.latest = at
		}
		if !w.seen[e] {
			werr = w.print(e)
		}
		return werr == nil
	})
	if werr != nil {
		return fmt.Errorf("print change: %w", werr)
	}
	if err == nil {
		w.seen = now
	}
	return err
}

func (w *watcher) print(e beeyard.Event) error {
	if w.p.json {
		return w.line(e)
	}
	text := eventText(e)
	if e.TaskID != "" {
		text = e.TaskID + " " + text
	}
	_, err := fmt.Fprintf(w.p.stdout, "%s  %s\n", plain(e.Time, 40), plain(text, 400))
	return err
}

func (w *watcher) line(v any) error {
	enc := json.NewEncoder(w.p.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (w *watcher) count(ctx context.Context) error {
	c, err := w.run.Counts(ctx)
	if err != nil {
		return err
	}
	if w.counts != nil && maps.Equal(w.counts, c.ByState) {
		return nil
	}
	w.counts = c.ByState
	at := beeyard.FormatTime(w.p.clock.Now())
	if w.p.json {
		return w.line(map[string]any{"time": at, "kind": "counts", "by_state": c.ByState})
	}
	_, err = io.WriteString(w.p.stdout, at+"  counts: "+countsLine(c)+"\n")
	return err
}
