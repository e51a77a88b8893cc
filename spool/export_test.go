package spool

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

// exportRun has something in every place, with bytes that no re-encoding keeps.
func exportRun(t *testing.T) *Run {
	r := viewRun(t, Options{})
	odd := func(id, payload string) []byte {
		return []byte("{ \"created_at\" : \"2026-01-01T00:00:00Z\",\n\t\"task_id\":\"" + id + "\", \"task_type\":\"x\", \"payload\": " + payload + ", \"x_own\": [1.0, \"\\u00e9\"]}\n\n")
	}
	viewPutRaw(t, r, dirPending, "p1.json", odd("p1", `{"a":1.10}`))
	viewPutRaw(t, r, dirPending, ".hidden.json", odd(".hidden", "null"))
	viewPutRaw(t, r, dirPending, "broken.json", []byte("{"))
	viewPutRaw(t, r, dirHeld, "h1.json", odd("h1", `"h"`))
	viewPutRaw(t, r, dirDone, "d1.json", odd("d1", "{}"))
	viewPutRaw(t, r, dirDone, "caf\u00e9 x.json", odd("caf\u00e9 x", "{}"))
	viewPutRaw(t, r, dirDone, strings.Repeat("n", 240)+".json", odd(strings.Repeat("n", 240), "{}"))
	viewPutRaw(t, r, dirFailed, "f1.json", odd("f1", "{}"))
	viewPutRaw(t, r, dirArtifacts, "d1.md", bytes.Repeat([]byte("output\n"), 50_000))
	viewPutRaw(t, r, dirArtifacts, "d1~1.log", nil)
	viewPutRaw(t, r, dirArtifacts, ".hidden.md", []byte("output of .hidden"))
	viewPutRaw(t, r, ".", ".envrc", []byte("export A=1\n"))
	viewPutRaw(t, r, ".beeyard/priority", "p1", nil)
	viewPutRaw(t, r, dirQuarantine, "odd.json", []byte("["))
	viewPutRaw(t, r, dirEvents, "w1~abc.jsonl", []byte("{}\n"))
	viewPutRaw(t, r, ".", "BACKLOG.md", []byte("# backlog\n"))
	viewPutRaw(t, r, ".beeyard/archive", "old.json", odd("old", "{}"))
	viewPutRaw(t, r, dirMeta, filePruned, []byte(`{"id":"gone","outcome":"done"}`+"\n"))
	viewPutRaw(t, r, ".beeyard/folded", "p1", []byte("P1"))
	viewMust(t, r.completedNow(viewContext(t), "d1"))
	viewAge(t, r, dirDone, "d1.json", 50*time.Hour)
	return r
}

func exportBytes(t *testing.T, r *Run, o ExportOptions) ([]byte, ExportReport) {
	t.Helper()
	var b bytes.Buffer
	rep, err := r.Export(viewContext(t), &b, o)
	viewMust(t, err)
	return b.Bytes(), rep
}

// exportLasting is what an export must bring over: all but one host's scratch.
func exportLasting(t *testing.T, path string) map[string]string {
	tree := viewTree(t, path)
	for name := range tree {
		base := filepath.Base(name)
		if strings.HasPrefix(name, dirMeta+"/") && scratchMeta[base] || base == fileQueueLock || base == fileStatusLock {
			delete(tree, name)
		}
	}
	return tree
}

func exportSame(t *testing.T, want, got map[string]string) {
	t.Helper()
	for name, data := range want {
		if have, ok := got[name]; !ok || have != data {
			t.Errorf("%s: %d bytes became %d (there: %v)", name, len(data), len(have), ok)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s came out of nothing", name)
		}
	}
}

func TestExportImportKeepsEveryByte(t *testing.T) {
	r := exportRun(t)
	stream, rep := exportBytes(t, r, ExportOptions{})
	want := exportLasting(t, r.path)
	if rep.Files != len(want) || rep.Changed || len(rep.Claims)+len(rep.Skipped) > 0 {
		t.Errorf("report %+v of %d files", rep, len(want))
	}
	if n, err := VerifyExport(viewContext(t), bytes.NewReader(stream)); err != nil || n != rep.Files {
		t.Errorf("verify: %d, %v", n, err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	calls := 0
	im, err := Import(viewContext(t), bytes.NewReader(stream), to, ImportOptions{Progress: func(int, int64) { calls++ }})
	viewMust(t, err)
	if im.Files != rep.Files || im.RunID != r.ID() || im.Path != to || im.Already || calls != im.Files {
		t.Errorf("import %+v, %d calls", im, calls)
	}
	exportSame(t, want, exportLasting(t, to))
	info, err := os.Stat(filepath.Join(to, dirDone, "d1.json"))
	viewMust(t, err)
	if age := time.Since(info.ModTime()); age < 49*time.Hour {
		t.Errorf("the time a task ended became %v ago", age)
	}
	// It is a run like the other: same id, same states, same tasks.
	c, err := Open(to, Options{Host: viewHost()}, clock.Real())
	viewMust(t, err)
	defer c.Close()
	a, err := r.Counts(viewContext(t))
	viewMust(t, err)
	b, err := c.Counts(viewContext(t))
	viewMust(t, err)
	if c.ID() != r.ID() || fmt.Sprint(a.ByState) != fmt.Sprint(b.ByState) {
		t.Errorf("%s %v became %s %v", r.ID(), a.ByState, c.ID(), b.ByState)
	}
	if _, err := c.Enqueue(viewContext(t), []*beeyard.Task{{ID: "gone", Type: "x"}}, beeyard.EnqueueOptions{}); !errors.Is(err, beeyard.ErrExists) {
		t.Errorf("a pruned id is free again: %v", err)
	}
	// What any tar program unpacks is the run as well.
	plain := t.TempDir()
	exportUntar(t, stream, plain)
	if _, err := os.Stat(filepath.Join(plain, filepath.Base(r.path), dirPending, "p1.json")); err != nil {
		t.Error(err)
	}
}

func exportUntar(t *testing.T, stream []byte, to string) {
	t.Helper()
	tr := tar.NewReader(bytes.NewReader(stream))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		viewMust(t, err)
		p := filepath.Join(to, h.Name)
		viewMust(t, os.MkdirAll(filepath.Dir(p), 0o700))
		data, err := io.ReadAll(tr)
		viewMust(t, err)
		viewMust(t, os.WriteFile(p, data, 0o600))
	}
}

func TestExportOfClaims(t *testing.T) {
	r := viewRun(t, Options{})
	body := viewTask("dead")
	viewClaim(t, r, "w1", false, body)
	stream, rep := exportBytes(t, r, ExportOptions{})
	if !slices.Equal(rep.Claims, []string{"dead"}) {
		t.Errorf("report %+v", rep)
	}
	to := filepath.Join(t.TempDir(), "copy")
	_, err := Import(viewContext(t), bytes.NewReader(stream), to, ImportOptions{})
	viewMust(t, err)
	want, err := body.Encode()
	viewMust(t, err)
	if got, err := os.ReadFile(filepath.Join(to, dirPending, "dead.json")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the claim became %s, %v", got, err)
	}
	if names, err := os.ReadDir(filepath.Join(to, dirClaimed)); err != nil || len(names) != 0 {
		t.Errorf("claimed/ holds %v, %v", names, err)
	}

	viewClaim(t, r, "w2", true, viewTask("running"))
	var none bytes.Buffer
	if _, err := r.Export(viewContext(t), &none, ExportOptions{}); !errors.Is(err, beeyard.ErrConflict) || !strings.Contains(err.Error(), "running") {
		t.Errorf("a run that is worked on: %v", err)
	}
	if none.Len() > 0 {
		t.Errorf("%d bytes were written all the same", none.Len())
	}
	if _, rep := exportBytes(t, r, ExportOptions{Live: true}); !slices.Equal(rep.Claims, []string{"dead", "running"}) {
		t.Errorf("live: %+v", rep)
	}
}

// A task that moves while it is exported is in the export once.
func TestExportOfAMovingTask(t *testing.T) {
	for step := 0; step < 20; step += 2 {
		r := exportRun(t)
		n := 0
		stream, rep := exportBytes(t, r, ExportOptions{Progress: func(int, int64) {
			if n++; n == step {
				viewMust(t, os.Rename(filepath.Join(r.path, dirPending, "p1.json"), filepath.Join(r.path, dirDone, "p1.json")))
			}
		}})
		count := 0
		_, err := readExport(context.Background(), bytes.NewReader(stream), func(exportHead) error { return nil }, func(e *exportEntry) error {
			if strings.HasSuffix(e.Name, "/p1.json") {
				count++
			}
			return nil
		})
		viewMust(t, err)
		if count != 1 || rep.Changed != (n >= step && step > 0) {
			t.Errorf("moved at file %d: %d times in the export, changed %v", step, count, rep.Changed)
		}
	}
}
