package spool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"beeyard"
	"beeyard/internal/durable"
)

const (
	filePruned = "pruned"
	dirArchive = "archive"
)

// prunedList is what was read of .beeyard/pruned so far. The file only grows,
// a line of JSON an id: a line that a power cut tore, or left as NULs, is no
// JSON and says nothing.
type prunedList struct {
	mu   sync.Mutex
	ino  uint64
	end  int64 // bytes understood, up to the end of a line
	size int64 // of the file when it was read
	ids  map[string]beeyard.Outcome
}

type prunedLine struct {
	ID      string          `json:"id"`
	Outcome beeyard.Outcome `json:"outcome"`
	At      string          `json:"at,omitempty"`
}

// pruned gives the ids whose bodies were archived or deleted, and how each
// ended. The map is not to be changed.
func (r *Run) pruned() (map[string]beeyard.Outcome, error) {
	l := &r.enq.list
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := r.meta.Stat(filePruned)
	switch {
	case missing(err):
		l.ino, l.end, l.size, l.ids = 0, 0, 0, nil
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look at pruned list: %w", err)
	case info.Ino == l.ino && info.Size == l.size:
		return l.ids, nil
	}
	if err := l.read(r.meta); err != nil {
		return nil, fmt.Errorf("read pruned list: %w", err)
	}
	return l.ids, nil
}

// read goes on from where the last one ended.
func (l *prunedList) read(meta durable.Dir) (err error) {
	f, err := meta.Open(filePruned)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	ids := maps.Clone(l.ids) // readers of the old map go on undisturbed
	if info.Ino != l.ino || info.Size < l.end || ids == nil {
		l.end, ids = 0, map[string]beeyard.Outcome{}
	}
	data := make([]byte, info.Size-l.end)
	if _, err := io.ReadFull(io.NewSectionReader(f, l.end, int64(len(data))), data); err != nil {
		return err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(whole) {
		var p prunedLine
		if json.Unmarshal(line, &p) == nil && beeyard.CheckStoredID(p.ID) == nil && p.Outcome != "" {
			ids[p.ID] = p.Outcome
		}
	}
	l.ino, l.end, l.size, l.ids = info.Ino, l.end+int64(len(whole)), info.Size, ids
	return nil
}

// listPruned appends ids to the list and flushes it, before any body moves: an
// id whose body is gone and that is listed nowhere would be free again. The
// caller holds .queue.lock.
func (r *Run) listPruned(lines []prunedLine) (err error) {
	existed, err := r.meta.Exists(filePruned)
	if err != nil {
		return fmt.Errorf("look at pruned list: %w", err)
	}
	// The line feed before ends what a power cut may have torn.
	text := []byte("\n")
	for _, p := range lines {
		b, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode pruned id: %w", err)
		}
		text = append(append(text, b...), '\n')
	}
	f, err := r.meta.Append(filePruned, fileMode)
	if err != nil {
		return fmt.Errorf("open pruned list: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(text); err != nil {
		return fmt.Errorf("write pruned list: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync pruned list: %w", err)
	}
	if !existed {
		if err := r.meta.Sync(); err != nil {
			return fmt.Errorf("sync pruned list's name: %w", err)
		}
	}
	return nil
}

// archiveDir is .beeyard/archive, empty while nothing was archived.
func (r *Run) archiveDir() (durable.Dir, error) {
	r.enq.mu.Lock()
	defer r.enq.mu.Unlock()
	return r.lazyDir(&r.enq.archive, dirArchive)
}

func (r *Run) ensureArchive() (durable.Dir, error) { return r.ensureDir(&r.enq.archive, dirArchive) }
