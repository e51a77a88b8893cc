package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addShow(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "show TASK", Short: "Show one task: payload, attempts, claim, output", GroupID: groupLook,
		Long: `Shows all that is known of a task. Of a running one: how long it has run, and its
timeout or "no timeout".`,
		Example: "  beeyard show audit-1 --json",
		Args:    args(1, 1), ValidArgsFunction: p.completeTasks(),
		RunE: func(cmd *cobra.Command, argv []string) error { return p.showTask(cmd.Context(), argv[0]) },
	})
}

type shownJSON struct {
	taskJSON
	Payload   json.RawMessage        `json:"payload"`
	Running   *float64               `json:"running_seconds"` // null: it does not run
	Attempts  []beeyard.Attempt      `json:"attempts"`
	Dropped   int                    `json:"attempts_dropped"`
	Artifacts []beeyard.ArtifactInfo `json:"artifacts"`
}

func (p *program) showTask(ctx context.Context, id string) (err error) {
	run, err := p.readRun(ctx, "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
	v, err := run.Get(ctx, id)
	if err != nil {
		return err
	}
	files, err := run.ListArtifacts(ctx, id)
	if err != nil && !errors.Is(err, beeyard.ErrNotFound) {
		return err
	}
	out := shownJSON{taskJSON: shownTask(v), Payload: payloadOf(v.Task), Attempts: []beeyard.Attempt{}, Artifacts: orEmpty(files)}
	if v.Task != nil {
		out.Attempts, out.Dropped = orEmpty(v.Task.Ext.Attempts), v.Task.Ext.Dropped
	}
	if out.TaskID == "" {
		out.TaskID = id
	}
	if v.Claim != nil {
		if at, ok := beeyard.ParseTime(v.Claim.Since); ok {
			s := max(0, p.clock.Now().Sub(at).Seconds())
			out.Running = &s
		}
	}
	return p.show(out, func(w io.Writer) error { return p.taskText(w, &out) })
}

func (p *program) taskText(w io.Writer, t *shownJSON) error {
	var b strings.Builder
	line := func(name, format string, a ...any) { fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, a...)) }
	words := func(name string, list []string) {
		if len(list) > 0 {
			line(name, "%s", plain(strings.Join(list, " "), 400))
		}
	}
	text := func(name, s string) {
		if s != "" {
			line(name, "%s", plain(s, 400))
		}
	}
	line("task", "%s", plain(t.TaskID, 0))
	line("state", "%s", p.state(t.State))
	for _, r := range t.Reasons {
		line("", "%s", plain(r.Text, 400))
	}
	text("type", t.TaskType)
	if t.TierHint != nil {
		text("tier", *t.TierHint)
	}
	if t.Priority != 0 {
		line("priority", "%d", t.Priority)
	}
	words("depends on", t.DependsOn)
	words("labels", t.Labels)
	words("refs", t.Refs)
	text("created", strings.TrimSpace(t.CreatedAt+" by "+t.CreatedBy))
	if t.Deadline != nil {
		text("deadline", *t.Deadline)
	}
	line("timeout", "%s", p.timeoutText(t.Timeout))
	if c := t.Claim; c != nil {
		line("worker", "%s", plain(claimText(c), 400))
		if t.Running != nil {
			line("running", "%s", time.Duration(*t.Running*float64(time.Second)).Round(time.Second))
		}
		text("token", c.Token)
	}
	line("attempts", "%d, %d worker deaths", t.Attempt, t.Deaths)
	for _, a := range t.Attempts {
		line("", "%s", plain(attemptText(a), 400))
	}
	if t.Dropped > 0 {
		line("", "and %d earlier ones", t.Dropped)
	}
	if r := t.Result; r != nil {
		text("verdict", r.Verdict)
	}
	for _, f := range t.Artifacts {
		line("file", "%s, %d bytes", plain(f.Name, 0), f.Size)
	}
	words("follow-ups", t.NextIDs)
	text("detail", t.Detail)
	if s := string(t.Payload); s != "null" {
		text("payload", s)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// timeoutText: a task without its own gets its worker's, as far as the
// configuration here tells.
func (p *program) timeoutText(own *beeyard.Duration) string {
	if own != nil {
		return time.Duration(*own).String()
	}
	if c, err := p.conf(); err == nil {
		if d, err := c.duration("worker.timeout", nil); err == nil && d > 0 {
			return d.String() + ", from worker.timeout"
		}
	}
	return "no timeout"
}

func claimText(c *beeyard.ClaimInfo) string {
	s := c.Worker
	if s == "" {
		s = "an operation"
	}
	if c.Host != "" {
		s += fmt.Sprintf(", process %d on %s", c.PID, c.Host)
	}
	switch c.Alive {
	case "no":
		s += ", gone"
	case "stopped":
		s += ", stopped"
	}
	if c.BeatAge >= 0 {
		s += fmt.Sprintf(", beat %s ago", time.Duration(c.BeatAge*float64(time.Second)).Round(time.Second))
	}
	if c.Older {
		s += ", an older program"
	}
	if c.Canceled {
		s += ", cancel requested"
	}
	if c.Note != "" {
		s += ": " + c.Note
	}
	return s
}

func attemptText(a beeyard.Attempt) string {
	s := fmt.Sprintf("%d %s", a.N, a.Outcome)
	if a.Worker != "" {
		s += " by " + a.Worker
	}
	if a.DurationMS > 0 {
		s += " after " + (time.Duration(a.DurationMS) * time.Millisecond).String()
	}
	switch {
	case a.TimedOut:
		s += ", timed out"
	case a.Signal != "":
		s += ", " + a.Signal
	case a.ExitCode != nil:
		s += fmt.Sprintf(", exit %d", *a.ExitCode)
	}
	if a.OOM {
		s += ", out of memory"
	}
	if a.PeakBytes > 0 {
		s += fmt.Sprintf(", %d MiB", a.PeakBytes>>20)
	}
	if a.Reason != "" {
		s += ": " + a.Reason
	}
	if a.StderrTail != "" {
		s += " | " + a.StderrTail
	}
	return s
}
