package spool

import (
	"errors"
	"strconv"

	"beeyard"
	"beeyard/internal/strict"
)

// maxCheckpointText bounds each text that a write brings.
const maxCheckpointText = 1 << 20

// checkEdit refuses what could not be read back as it was meant.
func checkEdit(e beeyard.CheckpointEdit) error {
	var errs []error
	bad := func(what, why string) {
		errs = append(errs, &beeyard.Error{Op: "write checkpoint", Err: beeyard.Because(beeyard.ErrUsage, what+" "+why)})
	}
	for _, f := range []struct {
		name string
		text *string
	}{
		{"summary", e.Summary}, {"next step", e.NextStep}, {"next task id", e.NextTaskID},
		{"resume command", e.ResumeCommand}, {"risk", e.Risk}, {"current worker", e.CurrentWorker},
	} {
		switch {
		case f.text == nil:
		case len(*f.text) > maxCheckpointText:
			bad(f.name, "is larger than 1 MiB")
		case !beeyard.ValidText(*f.text):
			bad(f.name, "is not UTF-8 text, or holds a NUL")
		}
	}
	if e.NextTaskID != nil {
		if err := beeyard.CheckStoredID(*e.NextTaskID); err != nil {
			errs = append(errs, err)
		}
		if e.Complete {
			bad("next task id", "cannot be set for a workflow that is complete")
		}
	}
	for k, v := range e.Metadata {
		if err := strict.Check(v, strict.Options{}); err != nil {
			bad("metadata "+strconv.Quote(k), "is not JSON: "+err.Error())
		}
	}
	return errors.Join(errs...)
}
