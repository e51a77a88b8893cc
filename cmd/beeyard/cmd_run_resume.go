package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addRunResume(parent *cobra.Command) {
	parent.AddCommand(&cobra.Command{
		Use: "resume [RUN]", Short: "Print all that a cold agent needs to go on",
		Long: `Prints what somebody who knows nothing needs to go on: the human's words
(BACKLOG.md), who the agent is (portrait.md), the checkpoint, what is ready, what
is blocked or failed and why, and the newest artifacts.`,
		Example: "  beeyard run resume audit",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
		RunE: func(cmd *cobra.Command, argv []string) error {
			arg := ""
			if len(argv) > 0 {
				arg = argv[0]
			}
			return p.resume(cmd.Context(), arg)
		},
	})
}

const (
	headMost     = 10 // tasks of a state, and artifacts, that a resume names
	headNameMost = 20
)

type resumeJSON struct {
	RunID      string                 `json:"run_id"`
	Location   string                 `json:"location"`
	Backlog    string                 `json:"backlog"`
	Portrait   string                 `json:"portrait"`
	Checkpoint *checkpointJSON        `json:"checkpoint"` // null: there is none
	Counts     beeyard.Counts         `json:"counts"`
	Claimed    []taskJSON             `json:"claimed"`
	Ready      []taskJSON             `json:"ready"`
	Blocked    []taskJSON             `json:"blocked"`
	Held       []taskJSON             `json:"held"` // and waiting
	Failed     []taskJSON             `json:"failed"`
	Artifacts  []beeyard.ArtifactInfo `json:"artifacts"` // the newest
}

func (p *program) resume(ctx context.Context, arg string) (err error) {
	run, err := p.readRun(ctx, arg)
	if err != nil {
		return err
	}
	defer closing(run, &err)
	r := resumeJSON{RunID: run.ID(), Location: run.Location()}
	if r.Backlog, err = run.Note(ctx, "BACKLOG.md"); err != nil {
		return err
	}
	if r.Portrait, err = run.Note(ctx, "portrait.md"); err != nil {
		return err
	}
	c, err := run.Checkpoint(ctx)
	if err != nil && !errors.Is(err, beeyard.ErrNotFound) {
		return err
	}
	if err == nil {
		r.Checkpoint = shownCheckpoint(c)
	}
	if r.Counts, err = run.Counts(ctx); err != nil {
		return err
	}
	for _, head := range []struct {
		to     *[]taskJSON
		states []beeyard.State
	}{
		{&r.Claimed, []beeyard.State{beeyard.StateClaimed}},
		{&r.Ready, []beeyard.State{beeyard.StateReady}},
		{&r.Blocked, []beeyard.State{beeyard.StateBlocked}},
		{&r.Held, []beeyard.State{beeyard.StateHeld, beeyard.StateWaiting}},
		{&r.Failed, []beeyard.State{beeyard.StateFailed, beeyard.StateCanceled}},
	} {
		*head.to = []taskJSON{}
		n := 0
		for _, s := range head.states {
			n += r.Counts.ByState[s]
		}
		if n == 0 {
			continue
		}
		page, err := run.List(ctx, beeyard.Query{States: head.states, Limit: headMost})
		if err != nil {
			return err
		}
		for _, v := range page.Tasks {
			*head.to = append(*head.to, shownTask(v))
		}
	}
	files, err := run.ListArtifacts(ctx, "")
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(a beeyard.ArtifactInfo) bool { return strings.HasSuffix(a.Name, ".log") })
	slices.SortStableFunc(files, func(a, b beeyard.ArtifactInfo) int { return b.Modified.Compare(a.Modified) })
	r.Artifacts = orEmpty(files[:min(len(files), headNameMost)])
	return p.show(r, func(w io.Writer) error { return p.resumeText(w, &r) })
}

func (p *program) resumeText(w io.Writer, r *resumeJSON) error {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s at %s\n", plain(r.RunID, 0), plain(r.Location, 0))
	for _, note := range []struct{ name, text string }{{"BACKLOG.md", r.Backlog}, {"portrait.md", r.Portrait}} {
		if note.text != "" {
			fmt.Fprintf(&b, "\n%s\n", note.name)
			paragraph(&b, note.text)
		}
	}
	if c := r.Checkpoint; c != nil {
		b.WriteString("\ncheckpoint\n")
		checkpointText(&b, c, r.Counts.Open())
	}
	fmt.Fprintf(&b, "\ntasks: %s\n", countsLine(r.Counts))
	for _, head := range []struct {
		name  string
		tasks []taskJSON
	}{{"claimed", r.Claimed}, {"ready, in order", r.Ready}, {"blocked", r.Blocked}, {"held or waiting", r.Held}, {"failed", r.Failed}} {
		if len(head.tasks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %s\n", head.name)
		for _, t := range head.tasks {
			line := plain(t.TaskID, 0)
			if t.Claim != nil {
				line += ": " + plain(claimText(t.Claim), 200)
			}
			if len(t.Reasons) > 0 && t.Claim == nil {
				line += ": " + plain(t.Reasons[0].Text, 200)
			}
			b.WriteString("    " + line + "\n")
		}
	}
	if len(r.Artifacts) > 0 {
		b.WriteString("\nnewest artifacts\n")
		for _, a := range r.Artifacts {
			fmt.Fprintf(&b, "  artifacts/%s, %d bytes\n", plain(a.Name, 0), a.Size)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// paragraph indents somebody's text, a line at a time, and keeps it harmless.
func paragraph(b *strings.Builder, text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString("  " + plain(strings.TrimSuffix(line, "\r"), 0) + "\n")
	}
}
