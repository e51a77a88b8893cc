package spool

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"beeyard"
	"beeyard/internal/durable"
)

// ArchiveOptions say how a run is packed away.
type ArchiveOptions struct {
	// Remove takes the run's folder away after the archive was verified. It is
	// refused while anybody is attached to the run, when the run changed since,
	// and when the folder holds what the archive does not.
	Remove bool
	// Progress, when set, hears of each file.
	Progress func(files int, bytes int64)
}

// ArchiveReport tells what was packed.
type ArchiveReport struct {
	ExportReport
	File    string `json:"file"`
	Size    int64  `json:"size"` // packed
	Removed bool   `json:"removed"`
}

// Archive packs the run into one gzipped file, which Import takes, and reads it
// back to prove every digest before it gets its name. When it returns nil the
// file is durable. ErrExists when the name is taken; the run is not removed
// unless o.Remove says so, and then only after all that.
func (r *Run) Archive(ctx context.Context, file string, o ArchiveOptions) (ArchiveReport, error) {
	out := ArchiveReport{File: file}
	if o.Remove {
		if err := r.unattended(ctx); err != nil {
			return out, err
		}
		// Now, since the first lock makes the lock's file, which is a change.
		unlock, err := r.lockQueue(ctx)
		if err != nil {
			return out, err
		}
		unlock()
	}
	before, err := r.wholeSignature()
	if err != nil {
		return out, err
	}
	dir, err := durable.OpenRoot(filepath.Dir(file))
	if err != nil {
		return out, fmt.Errorf("open the archive's folder: %w", err)
	}
	err = r.pack(ctx, dir, filepath.Base(file), o, &out)
	if err = errors.Join(err, dir.Close()); err != nil || !o.Remove {
		return out, err
	}
	if err := r.remove(ctx, before, &out); err != nil {
		return out, err
	}
	out.Removed = true
	return out, nil
}

func (r *Run) pack(ctx context.Context, dir durable.Dir, name string, o ArchiveOptions, out *ArchiveReport) error {
	if there, err := dir.Exists(name); err != nil || there {
		if err == nil {
			err = &beeyard.Error{Op: "archive run", ID: out.File, Err: beeyard.Because(beeyard.ErrExists, "there is such a file"), Hint: "choose another name"}
		}
		return err
	}
	f, temp, err := durable.CreateTemp(dir, name, fileMode)
	if err != nil {
		return fmt.Errorf("create archive: %w", err)
	}
	err = r.packInto(ctx, f, o, out)
	if err = errors.Join(err, f.Close()); err == nil {
		err = verifyFile(ctx, dir, temp, out)
	}
	if err == nil {
		if err = dir.RenameExcl(temp, dir, name); errors.Is(err, fs.ErrExist) {
			err = &beeyard.Error{Op: "archive run", ID: out.File, Err: fmt.Errorf("%w: %w", beeyard.ErrExists, err), Hint: "choose another name"}
		}
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(temp)))
	}
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync archive's folder: %w", err)
	}
	return nil
}

func (r *Run) packInto(ctx context.Context, f durable.File, o ArchiveOptions, out *ArchiveReport) (err error) {
	z := gzip.NewWriter(f)
	out.ExportReport, err = r.Export(ctx, z, ExportOptions{Progress: o.Progress})
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync archive: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at archive: %w", err)
	}
	out.Size = info.Size
	return nil
}

func verifyFile(ctx context.Context, dir durable.Dir, name string, out *ArchiveReport) error {
	f, err := dir.Open(name)
	if err != nil {
		return fmt.Errorf("open archive: %w", err)
	}
	defer closeRead(f)
	n, err := VerifyExport(ctx, f)
	if err == nil && n != out.Files {
		err = beeyard.Because(beeyard.ErrCorrupt, fmt.Sprintf("the archive has %d files and not %d", n, out.Files))
	}
	if err != nil {
		return fmt.Errorf("verify archive: %w", err)
	}
	return nil
}

// unattended refuses a run that anybody but this process is attached to.
func (r *Run) unattended(ctx context.Context) error {
	return r.eachClaimDir(ctx, func(name string, dir durable.Dir) (bool, error) {
		l, err := r.liveness(ctx, name, dir)
		if err != nil {
			return false, fmt.Errorf("look at claimer: %w", err)
		}
		ours := l.Beat.Boot == r.host.Boot && l.Beat.PID == r.host.PID && l.Beat.Start == r.host.Start
		if l.State != lifeAlive && l.State != lifeStopped || ours {
			return true, nil
		}
		return false, &beeyard.Error{Op: "archive run", ID: r.id,
			Err:  beeyard.Because(beeyard.ErrConflict, "worker "+beeyard.Quote(workerOf(name))+" is attached to it"),
			Hint: "stop the workers first, or archive without removing"}
	})
}

// wholeSignature is signature that sees outputs and logs as well.
func (r *Run) wholeSignature() ([2]signature, error) {
	var s [2]signature
	var err error
	if s[0], err = r.signature(); err != nil {
		return s, err
	}
	for i, d := range []durable.Dir{r.root, r.artifacts, r.quarantine, r.meta} {
		info, err := d.Info()
		if ignoreMissing(err) != nil {
			return s, fmt.Errorf("look at %s: %w", d.Path(), err)
		}
		s[1].dirs[i] = info.ChangeTime
	}
	return s, nil
}

// remove takes the run away: first out of sight by one rename, so that what a
// crash leaves is no run that anybody could open.
func (r *Run) remove(ctx context.Context, before [2]signature, out *ArchiveReport) error {
	refuse := func(why string) error {
		return &beeyard.Error{Op: "remove archived run", ID: r.id, Err: beeyard.Because(beeyard.ErrConflict, why),
			Hint: "the archive " + out.File + " is whole; the run was left as it is"}
	}
	if len(out.Skipped) > 0 {
		return refuse("the archive does not hold " + some(out.Skipped))
	}
	unlock, err := r.lockQueue(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.unattended(ctx); err != nil {
		return err
	}
	after, err := r.wholeSignature()
	if err != nil {
		return err
	}
	if out.Changed || after != before {
		return refuse("the run changed while it was archived")
	}
	parent, err := durable.OpenRoot(filepath.Dir(r.path))
	if err != nil {
		return fmt.Errorf("open the run's parent folder: %w", err)
	}
	defer closeRead(parent)
	gone := "." + filepath.Base(r.path) + ".archived-" + nonce(recordNonce)
	if err := parent.Rename(filepath.Base(r.path), parent, gone); err != nil {
		return fmt.Errorf("take run away: %w", err)
	}
	if err := parent.Sync(); err != nil {
		return fmt.Errorf("sync parent folder: %w", err)
	}
	if _, err := durable.RemoveTree(ctx, parent, gone); err != nil {
		return fmt.Errorf("remove what is left in %s: %w", gone, err)
	}
	return nil
}
