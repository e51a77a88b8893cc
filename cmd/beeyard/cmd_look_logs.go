package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"

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
		defer func() { err = errors.Join(err, run.Close()) }()
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

func (p *program) printLog(ctx context.Context, l *logQuery) error {
	v, err := l.run.Get(ctx, l.id)
	if err != nil {
		return err
	}
	a, err := l.open(ctx, v)
	if err != nil {
		return err
	}
	defer a.Close()
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

// followPoll is how often a growing log is read; how often its task is looked
// at is followLooks times that.
const (
	followPoll  = 200 * time.Millisecond
	followLooks = 5
)

// followLog prints the log as it grows until the task has ended. A new attempt
// begins a new file under the same name; what tells the two apart is the inode.
func (p *program) followLog(ctx context.Context, l *logQuery) error {
	f := &follower{p: p, l: l, out: p.rawOut()}
	defer f.close()
	for n := 0; ; n++ {
		ended := false
		if n%followLooks == 0 {
			v, err := l.run.Get(ctx, l.id)
			if err != nil {
				return unlessEnded(ctx, err)
			}
			ended = v.State.Finished()
			if err := f.reopen(ctx, v); err != nil {
				return unlessEnded(ctx, err)
			}
		}
		if err := f.copy(); err != nil {
			return err
		}
		if ended {
			return nil
		}
		if clock.Sleep(ctx, p.clock, followPoll) != nil {
			return nil // the user ended it, which is how following ends
		}
	}
}

// unlessEnded is nil where the context's end is the reason.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type follower struct {
	p    *program
	l    *logQuery
	out  io.Writer
	a    beeyard.ArtifactReader
	ino  uint64
	at   int64
	more []byte // the beginning of a character
}

func (f *follower) close() {
	if f.a != nil {
		_ = f.a.Close() // only read
	}
}

func (f *follower) reopen(ctx context.Context, v *beeyard.View) error {
	a, err := f.l.open(ctx, v)
	if errors.Is(err, beeyard.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	ino := inode(a)
	if f.a != nil && ino == f.ino {
		return a.Close()
	}
	if f.a == nil {
		if f.at, err = tailStart(a, f.l.tail); err != nil {
			return errors.Join(fmt.Errorf("read log: %w", err), a.Close())
		}
	} else {
		if err := f.copy(); err != nil {
			return errors.Join(err, a.Close())
		}
		f.at = 0
	}
	f.close()
	f.a, f.ino = a, ino
	return nil
}

// inode is 0 for stores whose artifacts are no files: there a log grows on.
func inode(a beeyard.ArtifactReader) uint64 {
	if s, ok := a.(interface{ Stat() (durable.Info, error) }); ok {
		if info, err := s.Stat(); err == nil {
			return info.Ino
		}
	}
	return 0
}

func (f *follower) copy() error {
	if f.a == nil {
		return nil
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := f.a.ReadAt(buf, f.at)
		if n > 0 {
			f.at += int64(n)
			if werr := f.print(buf[:n]); werr != nil {
				return fmt.Errorf("print log: %w", werr)
			}
		}
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

func (f *follower) print(b []byte) error {
	if !f.p.json {
		_, err := f.out.Write(b)
		return err
	}
	b = append(f.more, b...)
	// A character that came in two reads is not broken.
	cut := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut = len(b) - i
			}
			break
		}
	}
	f.more = bytes.Clone(b[cut:])
	if cut == 0 {
		return nil
	}
	return json.NewEncoder(f.p.stdout).Encode(logJSON{f.l.id, f.a.Info().Name, f.at, strings.ToValidUTF8(string(b[:cut]), "�")})
}

// rawOut is stdout for what somebody else wrote: to a terminal without control
// sequences, which could change what the user sees; to a file or a pipe as it is.
func (p *program) rawOut() io.Writer {
	if isTerminal(p.stdout) {
		return &tameWriter{w: p.stdout}
	}
	return p.stdout
}

type tameWriter struct {
	w    io.Writer
	more []byte
}

func (t *tameWriter) Write(b []byte) (int, error) {
	all := append(t.more, b...)
	var out []byte
	for len(all) > 0 && utf8.FullRune(all) {
		r, size := utf8.DecodeRune(all)
		all = all[size:]
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf)) {
			if r == '\r' {
				continue
			}
			r = utf8.RuneError
		}
		out = utf8.AppendRune(out, r)
	}
	t.more = bytes.Clone(all)
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
