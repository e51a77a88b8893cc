package spool

import (
	"errors"
	"fmt"

	"beeyard"
)

// refusalsShown bounds what an error says of a large batch.
const refusalsShown = 10

// refusals collects why parts of a batch are refused, so that one answer names
// them all.
type refusals struct {
	errs []error
	n    int
}

func (f *refusals) add(err error) {
	if err == nil {
		return
	}
	if f.n++; f.n <= refusalsShown {
		f.errs = append(f.errs, err)
	}
}

func (f *refusals) err() error {
	switch {
	case f.n == 0:
		return nil
	case f.n == 1:
		return f.errs[0]
	case f.n > refusalsShown:
		return errors.Join(append(f.errs, fmt.Errorf("and %d more", f.n-refusalsShown))...)
	}
	return errors.Join(f.errs...)
}

func inUseError(id string, f found) error {
	return &beeyard.Error{Op: "enqueue", ID: id, Err: beeyard.Because(beeyard.ErrExists, inUseText(f)),
		Hint: "an id is used once in a run: choose another, pass over what is there with --if-absent, or run a finished task again with retry"}
}

func inUseText(f found) string {
	switch f.place {
	case beeyard.PlaceArchive:
		return "the id is in use: it was pruned or archived"
	case beeyard.PlaceHeld:
		return "the id is in use: it is in held/, waiting"
	}
	return "the id is in use: it is " + string(f.place)
}

func foldClash(id, other string) error {
	return &beeyard.Error{Op: "enqueue", ID: id,
		Err:  beeyard.Because(beeyard.ErrExists, "it differs from "+beeyard.Quote(other)+" only by case, which some file systems do not keep apart"),
		Hint: "choose an id that differs by more than case"}
}
