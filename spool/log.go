package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"

	"beeyard"
	"beeyard/internal/durable"
)

// keptLogs bounds the logs of one attempt number: claims that spend no attempt
// (released, drained) leave logs under the same one, as often as they come.
const keptLogs = 10

// openLog gives a new artifacts/<task>.log. One that is there is an earlier
// claim's and becomes <task>~<n>.log, n being that attempt's number, or
// <task>~<n>.<k>.log beside it; past keptLogs the last is replaced. Nothing is
// flushed: a log that a power cut shortens costs nobody a promise.
func (r *Run) openLog(ctx context.Context, c *beeyard.Claim) (beeyard.LogFile, error) {
	id := c.Task.ID
	if err := beeyard.CheckStoredID(id); err != nil {
		return nil, err
	}
	name := id + ".log"
	for range 8 {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		f, err := r.artifacts.Create(name, fileMode)
		if err == nil {
			return &logFile{f: f}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create log: %w", err)
		}
		if err := r.rotateLog(name, id+"~"+strconv.Itoa(max(c.Task.Ext.Attempt, 1))); err != nil {
			return nil, fmt.Errorf("keep an earlier log: %w", err)
		}
	}
	return nil, fmt.Errorf("create log of %s: %w: somebody else keeps making it", beeyard.Quote(id), beeyard.ErrConflict)
}

func (r *Run) rotateLog(name, base string) error {
	for k := 1; k < keptLogs; k++ {
		to := base + ".log"
		if k > 1 {
			to = base + "." + strconv.Itoa(k) + ".log"
		}
		err := r.artifacts.RenameExcl(name, r.artifacts, to)
		if !errors.Is(err, fs.ErrExist) {
			return ignoreMissing(err)
		}
	}
	return ignoreMissing(r.artifacts.Rename(name, r.artifacts, base+"."+strconv.Itoa(keptLogs)+".log"))
}

// logFile is a log that is written from its start.
type logFile struct {
	mu  sync.Mutex
	f   durable.File
	end int64
}

var _ beeyard.LogFile = (*logFile)(nil)

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.writeAt(p, l.end)
	l.end += int64(n)
	return n, err
}

func (l *logFile) WriteAt(p []byte, off int64) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.writeAt(p, off)
	l.end = max(l.end, off+int64(n))
	return n, err
}

func (l *logFile) writeAt(p []byte, off int64) (int, error) {
	if _, err := l.f.Seek(off, io.SeekStart); err != nil {
		return 0, fmt.Errorf("write log: %w", err)
	}
	n, err := l.f.Write(p)
	if err != nil {
		return n, fmt.Errorf("write log: %w", err)
	}
	return n, nil
}

func (l *logFile) Close() error { return l.f.Close() }
