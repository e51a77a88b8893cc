package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

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
