package main

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addHistory(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "history TASK", Short: "Show what happened to a task", GroupID: groupLook,
		Long: `Shows a task's attempts, which its record keeps, and the events about it, which
are hints that workers leave: after a crash some may be missing.`,
		Example: "  beeyard history audit-1",
		Args:    args(1, 1), ValidArgsFunction: p.completeTasks(),
		RunE: func(cmd *cobra.Command, argv []string) error { return p.history(cmd.Context(), argv[0]) },
	})
}

type historyJSON struct {
	TaskID   string            `json:"task_id"`
	State    beeyard.State     `json:"state"`
	Attempts []beeyard.Attempt `json:"attempts"`
	Dropped  int               `json:"attempts_dropped"`
	Events   []beeyard.Event   `json:"events"`
}

// eventsMost bounds the events of one task that are shown; the newest count.
const eventsMost = 10_000

func (p *program) history(ctx context.Context, id string) (err error) {
	run, err := p.readRun(ctx, "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
	v, err := run.Get(ctx, id)
	if err != nil {
		return err
	}
	out := historyJSON{TaskID: id, State: v.State, Attempts: []beeyard.Attempt{}, Events: []beeyard.Event{}}
	if v.Task != nil {
		out.Attempts, out.Dropped = orEmpty(v.Task.Ext.Attempts), v.Task.Ext.Dropped
	}
	err = run.ReadEvents(ctx, time.Time{}, func(e beeyard.Event) bool {
		if e.TaskID == id {
			if len(out.Events) == eventsMost {
				out.Events = out.Events[1:]
			}
			out.Events = append(out.Events, e)
		}
		return true
	})
	if err != nil {
		return err
	}
	return p.show(out, func(w io.Writer) error { return historyText(w, v, &out) })
}

// historyText lines attempts and events up in time. A settled event says what
// the attempt says better, and is left out beside it.
func historyText(w io.Writer, v *beeyard.View, h *historyJSON) error {
	type row struct{ at, text string }
	var rows []row
	tokens := map[string]bool{}
	if v.Task != nil && v.Task.CreatedAt != "" {
		rows = append(rows, row{v.Task.CreatedAt, "created by " + v.Task.CreatedBy})
	}
	for _, a := range h.Attempts {
		tokens[a.Token] = true
		rows = append(rows, row{a.EndedAt, "attempt " + attemptText(a)})
	}
	for _, e := range h.Events {
		if e.Kind == "enqueued" || tokens[e.Token] && e.Kind == "settled" {
			continue
		}
		rows = append(rows, row{e.Time, eventText(e)})
	}
	sort.SliceStable(rows, func(i, j int) bool {
		a, aok := beeyard.ParseTime(rows[i].at)
		b, bok := beeyard.ParseTime(rows[j].at)
		return aok && bok && a.Before(b)
	})
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s  %s\n", plain(r.at, 40), plain(r.text, 400)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s is %s\n", plain(h.TaskID, 0), h.State)
	return err
}

func eventText(e beeyard.Event) string {
	s := e.Kind
	if e.Worker != "" {
		s += " by " + e.Worker
	}
	if e.State != "" && string(e.State) != e.Kind {
		s += ", " + string(e.State)
	}
	if e.Detail != "" && e.Detail != e.Worker {
		s += ": " + e.Detail
	}
	return s
}
