package spool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"beeyard/internal/durable"
)

// scratchMeta is what .beeyard/ holds that is of one host or one moment.
var scratchMeta = map[string]bool{fileIndex: true, "clock": true, fileSeen: true, dirImport: true, fileImported: true, fileImportLock: true}

// top sends the files beside the folders: the checkpoint, the human's words,
// whatever else a person keeps there.
func (x *exporter) top(ctx context.Context) error {
	return x.filesOf(ctx, x.r.root, "", func(e durable.Entry) bool {
		switch e.Name {
		case fileQueueLock, fileStatusLock, exportFirst, exportLast:
			return false
		}
		return !e.Type.IsDir() || !knownFolder[e.Name]
	})
}

// knownFolder are the folders that an export goes into, or may leave out.
var knownFolder = map[string]bool{dirPending: true, dirHeld: true, dirClaimed: true, dirDone: true, dirFailed: true,
	dirArtifacts: true, dirQuarantine: true, dirEvents: true, dirMeta: true}

func (x *exporter) folder(ctx context.Context, dir durable.Dir, name string) error {
	return x.filesOf(ctx, dir, name+"/", func(durable.Entry) bool { return true })
}

// meta sends what .beeyard/ keeps for good: the archive, the pruned list, marks.
func (x *exporter) meta(ctx context.Context) error {
	var folders []string
	err := x.filesOf(ctx, x.r.meta, dirMeta+"/", func(e durable.Entry) bool {
		if e.Type.IsDir() && !scratchMeta[e.Name] {
			folders = append(folders, e.Name)
		}
		return !e.Type.IsDir() && !scratchMeta[e.Name]
	})
	if err != nil {
		return err
	}
	for _, name := range folders {
		d, err := x.r.meta.OpenDir(name)
		if missing(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		err = x.folder(ctx, d, dirMeta+"/"+name)
		if err = errors.Join(err, d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// filesOf sends the regular files of one folder that want picks; what else it
// picks is reported as skipped.
func (x *exporter) filesOf(ctx context.Context, dir durable.Dir, prefix string, want func(durable.Entry) bool) error {
	var names []durable.Entry
	err := dir.Each(func(e durable.Entry) bool {
		if !durable.IsTemp(e.Name) { // other hidden names are somebody's
			names = append(names, e)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", dir.Path(), err)
	}
	for _, e := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !want(e) {
			continue
		}
		if e.Type != 0 && e.Type != fs.ModeIrregular {
			x.report.Skipped = append(x.report.Skipped, prefix+e.Name)
			continue
		}
		if err := x.stream(dir, e.Name, prefix+e.Name); err != nil {
			return err
		}
	}
	return nil
}

// stream sends a file as long as it is now, in two passes: a log may grow
// meanwhile, and a digest behind the content would be no use to who unpacks.
func (x *exporter) stream(dir durable.Dir, name, as string) error {
	f, err := dir.Open(name)
	switch {
	case missing(err):
		return nil
	case errors.Is(err, durable.ErrNotRegular):
		x.report.Skipped = append(x.report.Skipped, as)
		return nil
	case err != nil:
		return fmt.Errorf("open %s: %w", as, err)
	}
	defer closeRead(f)
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at %s: %w", as, err)
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(f, 0, info.Size)); err != nil || n != info.Size {
		return fmt.Errorf("read %s: %d of %d bytes: %w", as, n, info.Size, errors.Join(err, shortened(n, info.Size)))
	}
	return x.w.file(as, info.Size, info.ModTime, hex.EncodeToString(h.Sum(nil)), io.NewSectionReader(f, 0, info.Size))
}

func shortened(n, size int64) error {
	if n < size {
		return io.ErrUnexpectedEOF
	}
	return nil
}
