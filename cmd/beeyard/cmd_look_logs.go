package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addLogs(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "logs TASK", Short: "Print what a task's handler wrote", GroupID: groupLook,
		Long: `Prints the log of a task's last attempt, or of an earlier one with --attempt.
-f goes on until the task has ended, across its attempts; with --json each piece
is then one line of JSON.`,
		Example: "  beeyard logs audit-1 --tail 20 -f",
		Args:    args(1, 1), ValidArgsFunction: p.completeTasks(),
	}
	var l logQuery
	f := cmd.Flags()
	f.BoolVarP(&l.follow, "follow", "f", false, "go on as it grows, until the task has ended")
	f.IntVar(&l.attempt, "attempt", 0, "the attempt; 0: the last one")
	f.IntVar(&l.tail, "tail", 0, "only the last lines; 0: all")
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		if l.attempt < 0 || l.tail < 0 {
			return usageText(cmd, "--attempt and --tail are not negative")
		}
		if l.follow && l.attempt > 0 {
			return usageText(cmd, "-f follows the attempt that runs, not --attempt")
		}
		run, err := p.readRun(cmd.Context(), "")
		if err != nil {
			return err
		}
		defer closing(run, &err)
		l.run, l.id = run, argv[0]
		if l.follow {
			return p.followLog(cmd.Context(), &l)
		}
		return p.printLog(cmd.Context(), &l)
	}
	root.AddCommand(cmd)
}

type logQuery struct {
	run           beeyard.Run
	id            string
	follow        bool
	attempt, tail int
}

type logJSON struct {
	TaskID string `json:"task_id"`
	Log    string `json:"log"`
	Size   int64  `json:"size"`
	Text   string `json:"text"`
}

// logMost bounds what --json holds in memory; a log's own cap is below it.
const logMost = 64 << 20

func (p *program) printLog(ctx context.Context, l *logQuery) (err error) {
	v, err := l.run.Get(ctx, l.id)
	if err != nil {
		return err
	}
	a, err := l.open(ctx, v)
	if err != nil {
		return err
	}
	defer closing(a, &err)
	from, err := tailStart(a, l.tail)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	in := io.NewSectionReader(a, from, a.Info().Size-from)
	if !p.json {
		if _, err := io.Copy(p.rawOut(), in); err != nil {
			return fmt.Errorf("print log: %w", err)
		}
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(in, logMost))
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return p.printJSON(logJSON{l.id, a.Info().Name, a.Info().Size, strings.ToValidUTF8(string(data), "�")})
}

// open opens the log that is asked for. An attempt's log is <task>~<n>.log once
// a later one has begun, <task>.log until then.
func (l *logQuery) open(ctx context.Context, v *beeyard.View) (beeyard.ArtifactReader, error) {
	last := l.id + ".log"
	name := last
	if l.attempt > 0 {
		name = l.id + "~" + strconv.Itoa(l.attempt) + ".log"
	}
	a, err := l.run.OpenArtifact(ctx, name)
	if errors.Is(err, beeyard.ErrNotFound) && v.Task != nil {
		if n := v.Task.Ext.Attempt; l.attempt > 0 && (l.attempt == n || l.attempt == n+1 && v.State == beeyard.StateClaimed) {
			a, err = l.run.OpenArtifact(ctx, last)
		}
	}
	if errors.Is(err, beeyard.ErrNotFound) {
		why := "it has no log: its handler has written nothing"
		if l.attempt > 0 {
			why = fmt.Sprintf("there is no log of attempt %d", l.attempt)
		}
		return nil, &beeyard.Error{Op: "read log", ID: l.id, Err: beeyard.Because(beeyard.ErrNotFound, why),
			Hint: "beeyard show lists its attempts and files"}
	}
	return a, err
}

// tailStart is where the last n lines begin; 0 lines are all.
func tailStart(a beeyard.ArtifactReader, n int) (int64, error) {
	end := a.Info().Size
	if n <= 0 || end == 0 {
		return 0, nil
	}
	buf := make([]byte, 64<<10)
	seen := 0
	for at := end; at > 0; {
		size := min(int64(len(buf)), at)
		at -= size
		if _, err := a.ReadAt(buf[:size], at); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := size - 1; i >= 0; i-- {
			if buf[i] != '\n' || at+i == end-1 {
				continue
			}
			if seen++; seen == n {
				return at + i + 1, nil
			}
		}
	}
	return 0, nil
}
