package spool

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"beeyard"
)

func TestArchiveVerifiesAndRemoves(t *testing.T) {
	r := exportRun(t)
	want := exportLasting(t, r.path)
	file := filepath.Join(t.TempDir(), "run.tar.gz")
	rep, err := r.Archive(viewContext(t), file, ArchiveOptions{})
	viewMust(t, err)
	info, err := os.Stat(file)
	viewMust(t, err)
	if rep.Removed || rep.Size != info.Size() || rep.Files != len(want) || info.Mode().Perm() != 0o600 {
		t.Errorf("report %+v", rep)
	}
	exportSame(t, want, exportLasting(t, r.path)) // it stays unless it is said otherwise
	f, err := os.Open(file)
	viewMust(t, err)
	defer f.Close()
	if _, err := gzip.NewReader(f); err != nil {
		t.Errorf("no gzip: %v", err)
	}
	_, err = f.Seek(0, io.SeekStart)
	viewMust(t, err)
	to := filepath.Join(t.TempDir(), "copy")
	_, err = Import(viewContext(t), f, to, ImportOptions{})
	viewMust(t, err)
	exportSame(t, want, exportLasting(t, to))
	if _, err := r.Archive(viewContext(t), file, ArchiveOptions{}); !errors.Is(err, beeyard.ErrExists) {
		t.Errorf("over another file: %v", err)
	}

	second := filepath.Join(t.TempDir(), "again.tar.gz")
	if rep, err = r.Archive(viewContext(t), second, ArchiveOptions{Remove: true}); err != nil || !rep.Removed {
		t.Fatalf("remove: %+v, %v", rep, err)
	}
	if names, err := os.ReadDir(filepath.Dir(r.path)); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
	g, err := os.Open(second)
	viewMust(t, err)
	defer g.Close()
	if n, err := VerifyExport(viewContext(t), g); err != nil || n != len(want) {
		t.Errorf("%d files, %v", n, err)
	}
}

func TestArchiveRefusesToRemove(t *testing.T) {
	refuse := func(name string, r *Run, words string) {
		t.Helper()
		before := len(viewTree(t, r.path))
		file := filepath.Join(t.TempDir(), "run.tar.gz")
		_, err := r.Archive(viewContext(t), file, ArchiveOptions{Remove: true})
		if !errors.Is(err, beeyard.ErrConflict) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", name, err)
		}
		if after := len(viewTree(t, r.path)); after < before {
			t.Errorf("%s: %d files of %d are left", name, after, before)
		}
	}
	r := exportRun(t)
	viewMust(t, os.MkdirAll(filepath.Join(r.path, "mine"), 0o700))
	viewPutRaw(t, r, "mine", "x", []byte("x"))
	refuse("a folder that is not packed", r, "mine")

	r = exportRun(t)
	r.host.PID++ // the worker is another process
	viewClaim(t, r, "w1", true)
	r.host.PID--
	refuse("an attached worker", r, "attached")

	r = exportRun(t)
	n := 0
	_, err := r.Archive(viewContext(t), filepath.Join(t.TempDir(), "x"), ArchiveOptions{Remove: true, Progress: func(files int, _ int64) {
		if n++; n == 3 {
			viewPut(t, r, dirPending, viewTask("new"))
		}
	}})
	if !errors.Is(err, beeyard.ErrConflict) || !strings.Contains(err.Error(), "changed") {
		t.Errorf("a task came meanwhile: %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.path, dirPending, "new.json")); err != nil {
		t.Error(err)
	}
}
