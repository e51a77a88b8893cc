package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"beeyard"
	"beeyard/internal/durable"
)

// ExportOptions say how a run is exported.
type ExportOptions struct {
	// Live exports a run that is being worked on: running tasks are exported as
	// pending, their attempt not counted. Without it such a run is refused, since
	// the same task would run here and where the export is imported.
	Live bool
	// Progress, when set, hears of each file.
	Progress func(files int, bytes int64)
}

// ExportReport tells what an export holds.
type ExportReport struct {
	RunID string `json:"run_id"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"` // of all files, unpacked
	// Claims were not settled and are exported as pending.
	Claims []string `json:"claims_as_pending,omitempty"`
	// Skipped are names that are no regular files, which no export holds.
	Skipped []string `json:"skipped,omitempty"`
	// Changed: tasks moved while the run was read. The export is whole, each
	// task in it once; it is not the state of one instant.
	Changed bool `json:"changed,omitempty"`
}

// Export writes the whole run as one stream: every body byte for byte, the
// checkpoint, artifacts, events, notes, the archive and the list of pruned ids.
//
// A claim is of this host and this moment, so none is exported. Decided claims
// are finished first. A task whose claimer is gone goes out as pending with its
// body unchanged; its death is not counted, as nobody has judged it yet. While
// a claimer lives the export is refused with ErrConflict, unless o.Live.
func (r *Run) Export(ctx context.Context, w io.Writer, o ExportOptions) (ExportReport, error) {
	x := &exporter{r: r, o: o, report: ExportReport{RunID: r.id}}
	if err := x.finishDecided(ctx); err != nil {
		return x.report, err
	}
	before, err := r.signature()
	if err != nil {
		return x.report, err
	}
	seen, err := r.scan(ctx)
	if err != nil {
		return x.report, err
	}
	if err := x.claims(ctx, seen); err != nil {
		return x.report, err
	}
	head := exportHead{Format: exportFormat, Export: nonce(beeyard.NonceLen), RunID: r.id, At: beeyard.FormatTime(r.clk.Now())}
	if x.w, err = newExportWriter(w, filepath.Base(r.path), head, o.Progress); err != nil {
		return x.report, fmt.Errorf("export: %w", err)
	}
	// The checkpoint before the records, which it must not be ahead of; what is
	// archived after what is done, since tasks move that way; outputs after the
	// records that name them.
	for _, step := range []func(context.Context) error{
		x.top,
		func(ctx context.Context) error { return x.bodies(ctx, seen) },
		x.meta,
		func(ctx context.Context) error { return x.folder(ctx, r.artifacts, dirArtifacts) },
		func(ctx context.Context) error { return x.folder(ctx, r.quarantine, dirQuarantine) },
		func(ctx context.Context) error { return x.folder(ctx, r.events, dirEvents) },
	} {
		if err := step(ctx); err != nil {
			return x.report, fmt.Errorf("export: %w", err)
		}
	}
	if err := x.w.close(); err != nil {
		return x.report, fmt.Errorf("export: %w", err)
	}
	after, err := r.signature()
	if err != nil {
		return x.report, err
	}
	x.report.Changed = after != before
	x.report.Files, x.report.Bytes = x.w.tally.end.Files, x.w.tally.end.Bytes
	return x.report, nil
}

type exporter struct {
	r      *Run
	o      ExportOptions
	w      *exportWriter
	report ExportReport
	sent   map[string]bool // names of bodies
}

// finishDecided carries decisions out, so that none is left to export.
func (x *exporter) finishDecided(ctx context.Context) error {
	var ids []string
	err := x.r.eachClaimDir(ctx, func(_ string, dir durable.Dir) (bool, error) {
		e, err := listEntries(dir)
		for _, n := range e.taken {
			id, _, _ := parseEntry(n)
			ids = append(ids, id)
		}
		return true, err
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := x.r.writable("export a run with decided claims"); err != nil {
		return err
	}
	for _, id := range ids {
		if err := x.r.finishTaken(ctx, id); err != nil {
			return fmt.Errorf("finish what was decided: %w", err)
		}
	}
	return nil
}

// claims refuses a run whose tasks somebody is working on.
func (x *exporter) claims(ctx context.Context, seen []sighting) error {
	var live []string
	for i := range seen {
		s := &seen[i]
		if s.place != beeyard.PlaceClaimed {
			continue
		}
		gone, err := x.claimerGone(ctx, s)
		if err != nil {
			return err
		}
		if !gone {
			live = append(live, s.id)
		}
		x.report.Claims = append(x.report.Claims, s.id)
	}
	slices.Sort(x.report.Claims)
	if len(live) == 0 || x.o.Live {
		return nil
	}
	slices.Sort(live)
	return &beeyard.Error{Op: "export run", ID: x.r.id,
		Err:  beeyard.Because(beeyard.ErrConflict, fmt.Sprintf("%d tasks are being worked on: %s", len(live), some(live))),
		Hint: "stop the workers first, or say that running tasks are to be exported as pending"}
}

func (x *exporter) claimerGone(ctx context.Context, s *sighting) (bool, error) {
	dir, err := x.r.claimed.OpenDir(s.claim)
	if missing(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("open claim directory: %w", err)
	}
	defer closeRead(dir)
	l, err := x.r.liveness(ctx, s.claim, dir)
	if err != nil {
		return false, fmt.Errorf("look at claimer: %w", err)
	}
	switch l.State {
	case lifeAlive, lifeStopped:
		return false, nil
	case lifeDead:
		return true, nil
	}
	newest := l.BeatAt
	info, err := dir.Stat(s.name())
	if err != nil {
		return missing(err), ignoreMissing(err)
	}
	if info.ChangeTime.After(newest) {
		newest = info.ChangeTime
	}
	return x.r.clk.Now().Sub(newest) > defaultStaleAfter, nil
}

// bodies sends each task once, wherever it is by the time it is read.
func (x *exporter) bodies(ctx context.Context, seen []sighting) error {
	x.sent = make(map[string]bool, len(seen))
	for i := range seen {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		there, err := x.body(&seen[i])
		if err != nil {
			return err
		}
		if there {
			continue
		}
		lives, err := x.r.livesOf(ctx, seen[i].id)
		if err != nil {
			return err
		}
		for j := range lives {
			if _, err := x.body(&lives[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *exporter) body(s *sighting) (there bool, err error) {
	dir, release, err := x.r.dirOf(s)
	defer release()
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open claim directory: %w", err)
	}
	data, info, err := dir.ReadFile(s.name(), beeyard.MaxTaskBytes)
	place := s.place
	if place == beeyard.PlaceClaimed {
		place = beeyard.PlacePending
	}
	name := string(place) + "/" + bodyName(s.id)
	switch {
	case missing(err):
		return false, nil
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		x.report.Skipped = append(x.report.Skipped, name)
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read task: %w", err)
	}
	if x.sent[name] {
		// Two lives of the id, one of them running: both cannot be pending.
		name = dirQuarantine + "/" + lateName(s.id, nonce(recordNonce), "json")
	}
	x.sent[name] = true
	return true, x.w.data(name, data, info.ModTime)
}
