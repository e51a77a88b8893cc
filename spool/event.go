package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"beeyard"
	"beeyard/internal/durable"
)

const (
	// eventFileMost is when a process goes on in another file.
	eventFileMost = 4 << 20
	// eventsMost bounds events/ as a whole; the oldest files go first.
	eventsMost = 64 << 20
	// eventFilesMost bounds their number, which is what reading them costs.
	eventFilesMost = 512
	eventDetail    = 4 << 10
	eventSuffix    = ".jsonl"
)

// eventLog is this process's file of events.
type eventLog struct {
	mu     sync.Mutex
	f      durable.File // opened at the first event
	size   int64
	torn   bool // a write failed half way: the next begins a new line
	closed bool
}

// event tells of something that has happened. A hint: it is not flushed, a
// crash may tear it, and no error of it is worth failing what it tells of. The
// record is in the tasks.
func (r *Run) event(kind string, t *beeyard.Task, token, detail string) {
	if r.ro {
		return
	}
	e := beeyard.Event{Time: beeyard.FormatTime(r.clk.Now()), Kind: kind, Token: token, Detail: clipText(detail, eventDetail)}
	if t != nil {
		e.TaskID, e.State = t.ID, eventState(kind, t, token)
	}
	if tok, err := beeyard.ParseToken(token); err == nil {
		e.Worker = tok.Worker
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = r.chk.ev.append(r, append(line, '\n'))
	}
	if err != nil {
		r.note("events cannot be written: %v", err)
	}
}

// eventState is the state that the event led to, where the body alone says it.
func eventState(kind string, t *beeyard.Task, token string) beeyard.State {
	switch {
	case kind == "claimed":
		return beeyard.StateClaimed
	case token == "" || t.Ext.Token != token:
		return ""
	case t.Ext.Target == beeyard.PlaceDone:
		return beeyard.StateDone
	case t.Ext.Target == beeyard.PlaceFailed && t.Ext.Outcome == beeyard.OutcomeCanceled:
		return beeyard.StateCanceled
	case t.Ext.Target == beeyard.PlaceFailed:
		return beeyard.StateFailed
	}
	return ""
}

func clipText(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "")
}

func (l *eventLog) append(r *Run, line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	if l.f != nil && l.size >= eventFileMost {
		f := l.f
		l.f = nil
		if err := f.Close(); err != nil {
			return fmt.Errorf("close events: %w", err)
		}
	}
	if l.f == nil {
		f, size, err := r.openEvents()
		if err != nil {
			return err
		}
		l.f, l.size = f, size
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.f.Write(line)
	l.size += int64(n)
	l.torn = err != nil && (n > 0 || l.torn)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}

func (l *eventLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("close events: %w", err)
	}
	return nil
}

// openEvents opens a file that only this process writes: its flock says so. One
// that a process left which has ended is gone on with, or every command of a
// script would leave a file of one line.
func (r *Run) openEvents() (durable.File, int64, error) {
	free, err := r.trimEvents()
	if err != nil {
		return nil, 0, err
	}
	for _, info := range free {
		if f, size, err := r.adoptEvents(info); err != nil || f != nil {
			return f, size, err
		}
	}
	name := strconv.Itoa(r.host.PID) + "~" + nonce(beeyard.NonceLen) + eventSuffix
	f, err := r.events.Append(name, fileMode)
	if err != nil {
		return nil, 0, fmt.Errorf("make event file: %w", err)
	}
	if _, err := f.TryLock(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("lock event file: %w", err), f.Close())
	}
	return f, 0, nil
}

// adoptEvents gives nil when another has the file, or it is full or gone.
func (r *Run) adoptEvents(seen durable.Info) (f durable.File, size int64, err error) {
	f, err = r.events.Append(seen.Name, fileMode)
	if err != nil {
		return nil, 0, nil // another user's, or a link: not ours to write
	}
	defer func() {
		if err != nil || size < 0 {
			err = errors.Join(err, f.Close())
			f = nil
		}
	}()
	locked, err := f.TryLock()
	if err != nil || !locked {
		return f, -1, nil
	}
	info, err := f.Stat()
	if err != nil {
		return f, -1, fmt.Errorf("look at event file: %w", err)
	}
	there, err := r.events.Stat(seen.Name)
	if err != nil || there.Ino != info.Ino || info.Size >= eventFileMost {
		return f, -1, ignoreMissing(err) // removed before we had the lock
	}
	if info.Size == 0 {
		return f, 0, nil
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size-1); err != nil && !errors.Is(err, io.EOF) {
		return f, -1, fmt.Errorf("read event file: %w", err)
	}
	if last[0] != '\n' { // torn: what we write must not become its second half
		if _, err := f.Write([]byte{'\n'}); err != nil {
			return f, -1, fmt.Errorf("write event file: %w", err)
		}
		info.Size++
	}
	return f, info.Size, nil
}
