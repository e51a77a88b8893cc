package spool

import (
	"bufio"
	"bytes"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

const (
	// eventLineMost is more than any line that is written here.
	eventLineMost = 64 << 10
	// eventSlack is how far the clocks of those who wrote an event and of the
	// file server may differ before a file is passed over that has news.
	eventSlack = 10 * time.Minute
)

// ReadEvents merges the files by the times in them. Each was written in order
// by one process at a time, so a line of each in memory is enough.
func (r *Run) ReadEvents(ctx context.Context, since time.Time, yield func(beeyard.Event) bool) (err error) {
	files, err := r.eventFiles()
	if err != nil {
		return err
	}
	var open eventHeap
	defer func() {
		for _, c := range open {
			err = errors.Join(err, c.close())
		}
	}()
	for _, info := range files {
		if !since.IsZero() && info.ModTime.Before(since.Add(-eventSlack)) {
			break // the newest come first
		}
		c, err := r.openEventCursor(info, since)
		if err != nil {
			return err
		}
		if c != nil {
			c.order = len(open)
			open = append(open, c)
		}
	}
	heap.Init(&open)
	for n := 0; len(open) > 0; n++ {
		if n%256 == 0 {
			if err := context.Cause(ctx); err != nil {
				return err
			}
		}
		c := open[0]
		if !yield(c.event) {
			return nil
		}
		more, err := c.next()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&open, 0)
			continue
		}
		heap.Pop(&open)
		if err := c.close(); err != nil {
			return err
		}
	}
	return nil
}

// eventCursor is one file and the next event in it.
type eventCursor struct {
	f     durable.File // nil for a file that was small enough to read whole
	in    *bufio.Reader
	since time.Time
	event beeyard.Event
	at    time.Time
	order int // of files with equal times: as listed, so that the order is stable
}

// openEventCursor gives nil for a file without news. A small file is read
// whole: hundreds of them must not take as many descriptors.
func (r *Run) openEventCursor(info durable.Info, since time.Time) (*eventCursor, error) {
	c := &eventCursor{since: since}
	if info.Size <= eventLineMost {
		data, _, err := r.events.ReadFile(info.Name, eventFileMost+eventLineMost)
		if err != nil {
			return nil, eventUnread(err)
		}
		c.in = bufio.NewReaderSize(bytes.NewReader(data), len(data)+1)
	} else {
		f, err := r.events.Open(info.Name)
		if err != nil {
			return nil, eventUnread(err)
		}
		from, err := firstSince(f, info.Size, since)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		c.f, c.in = f, bufio.NewReaderSize(io.NewSectionReader(f, from, 1<<62), eventLineMost)
	}
	more, err := c.next()
	if err != nil || !more {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// eventUnread: removed meanwhile, or another user's: hints that we do not get.
func eventUnread(err error) error {
	if missing(err) || errors.Is(err, durable.ErrNotRegular) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return fmt.Errorf("read events: %w", err)
}

// next reads on to an event that can be read and is not too old.
func (c *eventCursor) next() (bool, error) {
	for {
		line, err := readLine(c.in)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read events: %w", err)
		}
		if e, at, ok := parseEvent(line); ok && !at.Before(c.since) {
			c.event, c.at = e, at
			return true, nil
		}
		if err != nil {
			return false, nil
		}
	}
}

func (c *eventCursor) close() error {
	if c.f == nil {
		return nil
	}
	return c.f.Close()
}

// readLine gives nil for a line that is too long.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	return nil, err
}

// parseEvent passes over what a crash leaves: NUL in place of bytes that were
// appended and not flushed, and torn lines.
func parseEvent(line []byte) (e beeyard.Event, at time.Time, ok bool) {
	line = bytes.Trim(line, "\x00 \r\n")
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil {
		return e, at, false
	}
	at, ok = beeyard.ParseTime(e.Time)
	return e, at, ok
}

// firstSince finds where to start in a long file by halving: who follows a run
// asks for its last second again and again.
func firstSince(f io.ReaderAt, size int64, since time.Time) (int64, error) {
	lo, hi := int64(0), size
	if since.IsZero() {
		return 0, nil
	}
	buf := make([]byte, 2*eventLineMost)
	for hi-lo > eventLineMost {
		mid := lo + (hi-lo)/2
		n, err := f.ReadAt(buf, mid)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read events: %w", err)
		}
		if olderAt(buf[:n], since) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// olderAt: the first readable line that begins in the block is before since.
func olderAt(block []byte, since time.Time) bool {
	_, rest, _ := bytes.Cut(block, []byte("\n"))
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if _, at, ok := parseEvent(line); ok {
			return at.Before(since)
		}
	}
	return false
}

type eventHeap []*eventCursor

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*eventCursor)) }
func (h *eventHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return c
}
