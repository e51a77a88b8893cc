package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"beeyard"
	"beeyard/internal/durable"
)

const (
	dirImport      = "import"      // .beeyard/import: what is being imported
	fileImported   = "imported"    // .beeyard/imported: the export that this run was made from
	fileImportLock = "import-lock" // .beeyard/import-lock
	fileImportID   = "id"          // in .beeyard/import
)

// ImportOptions say how a run is imported.
type ImportOptions struct {
	// Progress, when set, hears of each file.
	Progress func(files int, bytes int64)
}

// ImportReport tells what an import did.
type ImportReport struct {
	RunID string `json:"run_id"`
	Path  string `json:"path"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	// Kept files had been written by an earlier attempt and were found whole.
	Kept int `json:"kept,omitempty"`
	// Already: an earlier import of this very export is complete.
	Already bool `json:"already,omitempty"`
}

// Import makes a run at path from a stream that Export wrote, plain or gzipped.
// Nothing is to be seen of the run before every digest has been proven and all
// is on the disk; then it appears. When it returns nil the run is durable.
//
// It can be killed at any moment: the same import begun again completes it, and
// does nothing once it is complete. ErrExists when there is a run, or anything
// else, at path; ErrCorrupt when the stream is damaged or cut short.
func Import(ctx context.Context, rd io.Reader, path string, o ImportOptions) (ImportReport, error) {
	return importRun(ctx, rd, path, o, nil)
}

func importRun(ctx context.Context, rd io.Reader, path string, o ImportOptions, wrap func(durable.Dir) durable.Dir) (ImportReport, error) {
	im := &importer{o: o, seen: map[string]bool{}, dirs: map[string]durable.Dir{}}
	err := im.run(ctx, rd, path, wrap)
	if cerr := im.close(); err == nil {
		err = cerr
	}
	return im.report, err
}

type importer struct {
	o      ImportOptions
	report ImportReport
	root   durable.Dir // the run to be
	meta   durable.Dir // its .beeyard
	stage  durable.Dir // .beeyard/import
	dirs   map[string]durable.Dir
	seen   map[string]bool
	id     string
}

var errAlready = errors.New("imported already")

// wrap, when set, is put around the folder: tests fail and stop there.
func (im *importer) run(ctx context.Context, rd io.Reader, path string, wrap func(durable.Dir) durable.Dir) error {
	var err error
	if im.root, err = durable.MkdirAll(path, folderMode); err != nil {
		return fmt.Errorf("make run folder: %w", err)
	}
	if wrap != nil {
		im.root = wrap(im.root)
	}
	im.report.Path = im.root.Path()
	if err := im.free(); err != nil {
		return err
	}
	if im.meta, err = durable.EnsureDir(im.root, dirMeta, folderMode); err != nil {
		return fmt.Errorf("make %s: %w", dirMeta, err)
	}
	lockCtx, cancel := context.WithTimeoutCause(ctx, lockWait, errors.New("another import works here"))
	unlock, err := im.meta.Lock(lockCtx, fileImportLock)
	cancel()
	if errors.Is(err, durable.ErrLocked) {
		return fmt.Errorf("import run: %w: %w", beeyard.ErrLocked, err)
	}
	if err != nil {
		return fmt.Errorf("lock import: %w", err)
	}
	defer unlock()
	_, err = readExport(ctx, rd, im.begin, im.entry)
	if errors.Is(err, errAlready) {
		im.report.Already = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("import run: %w", err)
	}
	return im.publish()
}

// free refuses a folder in which there is anything but an import.
func (im *importer) free() error {
	other := ""
	err := im.root.Each(func(e durable.Entry) bool {
		if e.Name != dirMeta {
			other = e.Name
		}
		return other == ""
	})
	if err != nil {
		return fmt.Errorf("look into the folder: %w", err)
	}
	if other == "" {
		return nil
	}
	// Of an import that was publishing, or complete, the id is there; begin compares it.
	ours, err := im.begun()
	if err != nil || ours {
		return err
	}
	return im.taken("there is something in the folder already: " + beeyard.Quote(other))
}

func (im *importer) begun() (bool, error) {
	meta, err := im.root.OpenDir(dirMeta)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open %s: %w", dirMeta, err)
	}
	there, err := meta.Exists(fileImported)
	return there, errors.Join(err, meta.Close())
}

func (im *importer) taken(why string) error {
	return &beeyard.Error{Op: "import run", ID: im.report.Path, Err: beeyard.Because(beeyard.ErrExists, why),
		Hint: "import into a new folder"}
}

// begin compares with an import that was begun here before.
func (im *importer) begin(h exportHead) error {
	im.id, im.report.RunID = h.Export, h.RunID
	done, _, err := im.meta.ReadFile(fileImported, exportHeadMost)
	switch {
	case err == nil && string(done) != im.id:
		return im.taken("the run there was made from another export")
	case err == nil:
		// Publishing began: all was proven then, and the stream is not needed any more.
		if im.stage, err = im.meta.OpenDir(dirImport); missing(err) {
			return errAlready
		}
		if err != nil {
			return fmt.Errorf("open what was imported: %w", err)
		}
		if err := im.publish(); err != nil {
			return err
		}
		return errAlready
	case !missing(err):
		return fmt.Errorf("look for an earlier import: %w", err)
	}
	if im.stage, err = durable.EnsureDir(im.meta, dirImport, folderMode); err != nil {
		return fmt.Errorf("make import folder: %w", err)
	}
	was, _, err := im.stage.ReadFile(fileImportID, exportHeadMost)
	switch {
	case missing(err):
		if err := durable.WriteFile(im.stage, fileImportID, []byte(im.id), fileMode); err != nil {
			return fmt.Errorf("mark import: %w", err)
		}
	case err != nil:
		return fmt.Errorf("look for an earlier import: %w", err)
	case string(was) != im.id:
		return im.taken("the import of another export was begun there and not completed")
	}
	return im.folders()
}

// stageRun is where the run's folders are laid out, away from the id.
const stageRun = "run"

// folders makes all that a run has, in any case: one that lacks a folder is
// changed by the first who opens it.
func (im *importer) folders() error {
	for _, name := range append([]string{""}, importFolders...) {
		if _, err := im.dir(name); err != nil {
			return err
		}
	}
	return nil
}

// importFolders in the order in which they appear. What makes a folder a run
// comes last.
var importFolders = []string{dirMeta, dirHeld, dirClaimed, dirDone, dirFailed, dirArtifacts, dirQuarantine, dirEvents, dirPending}

// dir opens a folder below the staged run, by its path.
func (im *importer) dir(path string) (durable.Dir, error) {
	if d, ok := im.dirs[path]; ok {
		return d, nil
	}
	parent, name := im.stage, stageRun
	if path != "" {
		var err error
		up, base := filepath.Split(path)
		if parent, err = im.dir(filepath.Clean("/" + up)[1:]); err != nil {
			return nil, err
		}
		name = base
	}
	if err := parent.Mkdir(name, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	d, err := parent.OpenDir(name)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	im.dirs[path] = d
	return d, nil
}

func (im *importer) close() error {
	var errs []error
	for _, d := range im.dirs {
		errs = append(errs, d.Close())
	}
	for _, d := range []durable.Dir{im.stage, im.meta, im.root} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}
