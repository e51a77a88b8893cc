package spool

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"beeyard/internal/durable"
)

const fileIndex = "index"

// openIndex maps the run's index; nil when there is none that can be used.
// That is never an error: the bodies are there to be read.
func (r *Run) openIndex() *index {
	f, err := r.meta.Open(fileIndex)
	if err != nil {
		return nil
	}
	defer f.Close()
	// Replaced by rename only, never cut: see saveIndex and durable.Mmap.
	data, unmap, err := durable.Mmap(f)
	if err != nil {
		return nil
	}
	x, err := openIndexBytes(data)
	if err != nil {
		unmap()
		return nil
	}
	x.release = unmap
	return x
}

// saveIndex replaces the run's index by one of these candidates, which it sorts
// (nearly free for a list that is in order). It is a cache: nothing is flushed, the last writer wins, and an error
// costs the next reader time and nobody anything else.
func (r *Run) saveIndex(list []*candidate) error {
	if r.ro {
		return nil
	}
	sortCandidates(list)
	data := buildIndex(list, rand.Uint64())
	if data == nil {
		return nil
	}
	temp := tempName(fileIndex)
	if err := writeBody(r.meta, temp, data, false); err != nil {
		return err
	}
	if err := r.meta.Rename(temp, r.meta, fileIndex); err != nil {
		return errors.Join(fmt.Errorf("publish index: %w", err), ignoreMissing(r.meta.Remove(temp)))
	}
	return nil
}

// worthSaving: so many bodies were read that a new index saves the next reader
// more than it costs to write one of n entries.
func worthSaving(read, n int) bool { return read >= min(1024, max(256, n/64)) }
