package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
)

// entry stages one file. Where it may lie is decided here alone: the stream
// came from somewhere else.
func (im *importer) entry(e *exportEntry) error {
	folder, name, err := placeOfEntry(e)
	if err != nil {
		return err
	}
	if im.seen[e.Name] {
		return notWhole("it has %s twice", beeyard.Quote(e.Name))
	}
	im.seen[e.Name] = true
	dir, err := im.dir(folder)
	if err != nil {
		return err
	}
	kept, err := im.whole(dir, name, e)
	if err != nil {
		return err
	}
	if kept {
		im.report.Kept++
	} else if err := im.write(dir, name, e); err != nil {
		return err
	}
	im.report.Files++
	im.report.Bytes += e.Size
	if im.o.Progress != nil {
		im.o.Progress(im.report.Files, im.report.Bytes)
	}
	return nil
}

// placeOfEntry maps a name of the stream to a folder of the run and a name in it.
func placeOfEntry(e *exportEntry) (folder, name string, err error) {
	bad := func(why string) error { return notWhole("%s %s", beeyard.Quote(e.Name), why) }
	parts := strings.Split(e.Name, "/")
	for _, p := range parts {
		if durable.CheckName(p) != nil || len(p) > 255 {
			return "", "", bad("cannot be a name of a run")
		}
	}
	name = parts[len(parts)-1]
	switch len(parts) {
	case 1:
		if knownFolder[name] || name == fileQueueLock || name == fileStatusLock || name == exportFirst {
			return "", "", bad("has a name that a run uses itself")
		}
		return "", name, nil
	case 2:
		folder = parts[0]
		if !knownFolder[folder] || folder == dirClaimed || folder == dirMeta && scratchMeta[name] {
			return "", "", bad("lies in no folder that an export has")
		}
	case 3:
		folder = parts[0] + "/" + parts[1]
		if parts[0] != dirMeta || scratchMeta[parts[1]] {
			return "", "", bad("lies in no folder that an export has")
		}
	default:
		return "", "", bad("lies too deep")
	}
	switch parts[0] {
	case dirPending, dirHeld, dirDone, dirFailed:
		if _, ok := taskIDOf(name); !ok {
			return "", "", bad("is no task's name")
		}
		if e.Size > beeyard.MaxTaskBytes {
			return "", "", bad("is larger than a task may be")
		}
	}
	return folder, name, nil
}

// whole reports whether an earlier attempt staged the file already.
func (im *importer) whole(dir durable.Dir, name string, e *exportEntry) (bool, error) {
	f, err := dir.Open(name)
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open staged file: %w", err)
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("read staged file: %w", err)
	}
	if n == e.Size && hex.EncodeToString(h.Sum(nil)) == e.Sum {
		return true, nil
	}
	if err := dir.Remove(name); err != nil {
		return false, fmt.Errorf("remove half a staged file: %w", err)
	}
	return false, nil
}

// write puts the file under its final name within the stage: what is half there
// after a crash has not its digest, and is written anew. Nothing is flushed by
// itself: one flush comes before all of it is published.
func (im *importer) write(dir durable.Dir, name string, e *exportEntry) error {
	f, err := dir.Create(name, fileMode)
	if err != nil {
		return fmt.Errorf("stage %s: %w", beeyard.Quote(e.Name), err)
	}
	_, err = io.Copy(f, e.Body)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("stage %s: %w", beeyard.Quote(e.Name), err)
	}
	if err := dir.Chtimes(name, e.Mod); err != nil {
		return fmt.Errorf("set times of %s: %w", beeyard.Quote(e.Name), err)
	}
	return nil
}

// publish makes the staged run appear, by renames that can be begun again:
// what is moved already is not there to be moved. pending/ and status.json,
// either of which makes the folder a run, come last.
func (im *importer) publish() error {
	if err := im.stage.SyncFS(); err != nil {
		return fmt.Errorf("flush what was imported: %w", err)
	}
	if err := durable.WriteFile(im.meta, fileImported, []byte(im.id), fileMode); err != nil {
		return fmt.Errorf("mark import: %w", err)
	}
	run, err := im.dir("")
	if err != nil {
		return err
	}
	if err := im.publishMeta(run); err != nil {
		return err
	}
	var names []string
	if err := run.Each(func(e durable.Entry) bool {
		if e.Name != fileStatus && e.Name != dirPending && e.Name != dirMeta {
			names = append(names, e.Name)
		}
		return true
	}); err != nil {
		return fmt.Errorf("list what was imported: %w", err)
	}
	if err := move(run, im.root, names...); err != nil {
		return err
	}
	if err := im.root.Sync(); err != nil {
		return fmt.Errorf("sync run folder: %w", err)
	}
	if err := move(run, im.root, dirPending, fileStatus); err != nil {
		return err
	}
	if err := im.root.Sync(); err != nil {
		return fmt.Errorf("sync run folder: %w", err)
	}
	if err := durable.RemoveAll(im.meta, dirImport); err != nil {
		return fmt.Errorf("remove import folder: %w", err)
	}
	return nil
}

// publishMeta moves what .beeyard/ keeps one by one: that folder is in use.
func (im *importer) publishMeta(run durable.Dir) error {
	meta, err := run.OpenDir(dirMeta)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open staged %s: %w", dirMeta, err)
	}
	var names []string
	err = meta.Each(func(e durable.Entry) bool {
		names = append(names, e.Name)
		return true
	})
	if err == nil {
		err = move(meta, im.meta, names...)
	}
	if err = errors.Join(err, meta.Close()); err != nil {
		return err
	}
	if err := im.meta.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dirMeta, err)
	}
	return nil
}

func move(from, to durable.Dir, names ...string) error {
	for _, name := range names {
		// Plain rename: a folder cannot be moved without replacing on every file
		// system, and it replaces nothing but an empty folder anyway.
		if err := from.Rename(name, to, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("publish %s: %w", name, err)
		}
	}
	return nil
}
