package spool

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
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

// A stream that was changed or cut anywhere is refused, and nothing of a run is
// to be seen.
func TestImportRefusesDamage(t *testing.T) {
	r := exportRun(t)
	viewMust(t, os.Remove(filepath.Join(r.path, dirArtifacts, "d1.md"))) // small enough to try many places
	stream, _ := exportBytes(t, r, ExportOptions{})
	try := func(name string, bad []byte) {
		to := filepath.Join(t.TempDir(), "copy")
		_, err := Import(viewContext(t), bytes.NewReader(bad), to, ImportOptions{})
		if !errors.Is(err, beeyard.ErrCorrupt) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range []string{dirPending, fileStatus, dirDone} {
			if _, err := os.Stat(filepath.Join(to, f)); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s: %s appeared: %v", name, f, err)
			}
		}
	}
	last := bytes.LastIndex(stream, []byte(exportLast))
	for cut := 0; cut < last; cut += 1 + len(stream)/40 {
		try(fmt.Sprintf("cut at %d", cut), stream[:cut])
	}
	for _, word := range []string{`"a":1.10`, "# backlog", `"task_id":"f1"`} {
		bad := bytes.Clone(stream)
		at := bytes.Index(bad, []byte(word))
		bad[at+1] ^= 1
		try("changed at "+word, bad)
	}
	try("no tar", []byte("hello"))
	try("another tar", exportTar(t, "x/y", "z"))
}

// exportRepack writes the stream anew with its entries as change has them.
func exportRepack(t *testing.T, stream []byte, change func(entries []*tar.Header) []*tar.Header) []byte {
	t.Helper()
	var all []*tar.Header
	content := map[*tar.Header][]byte{}
	tr := tar.NewReader(bytes.NewReader(stream))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		viewMust(t, err)
		all = append(all, h)
		content[h], err = io.ReadAll(tr)
		viewMust(t, err)
	}
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, h := range change(all) {
		viewMust(t, tw.WriteHeader(h))
		_, err := tw.Write(content[h])
		viewMust(t, err)
	}
	viewMust(t, tw.Close())
	return b.Bytes()
}

// Entries that are each whole do not make a whole stream.
func TestImportRefusesMissingAndDoubledFiles(t *testing.T) {
	r := exportRun(t)
	stream, rep := exportBytes(t, r, ExportOptions{})
	for name, change := range map[string]func([]*tar.Header) []*tar.Header{
		"one left out":   func(e []*tar.Header) []*tar.Header { return slices.Delete(e, 5, 6) },
		"one twice":      func(e []*tar.Header) []*tar.Header { return slices.Insert(e, 5, e[5]) },
		"two exchanged":  func(e []*tar.Header) []*tar.Header { e[5], e[6] = e[6], e[5]; return e },
		"no first entry": func(e []*tar.Header) []*tar.Header { return e[1:] },
		"no last entry":  func(e []*tar.Header) []*tar.Header { return e[:len(e)-1] },
		"two first":      func(e []*tar.Header) []*tar.Header { return slices.Insert(e, 1, e[0]) },
		"one renamed":    func(e []*tar.Header) []*tar.Header { e[5].Name += "x"; return e },
	} {
		_, err := Import(viewContext(t), bytes.NewReader(exportRepack(t, stream, change)), filepath.Join(t.TempDir(), "copy"), ImportOptions{})
		if !errors.Is(err, beeyard.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	same := exportRepack(t, stream, func(e []*tar.Header) []*tar.Header { return e })
	if im, err := Import(viewContext(t), bytes.NewReader(same), filepath.Join(t.TempDir(), "copy"), ImportOptions{}); err != nil || im.Files != rep.Files {
		t.Errorf("unchanged: %+v, %v", im, err)
	}
}

// exportTar makes an archive of one file in the format, or whatever name says.
func exportTar(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	viewMust(t, tw.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600}))
	_, err := tw.Write([]byte(content))
	viewMust(t, err)
	viewMust(t, tw.Close())
	return b.Bytes()
}

func TestImportStaysInside(t *testing.T) {
	for _, name := range []string{"../evil", "..", "pending/../../evil", "/etc/passwd", "pending/a/b.json", "claimed/w/x.json", "claimed/x", ".beeyard/import/id",
		".beeyard/index", ".beeyard/import", ".beeyard/a/b/c", "elsewhere/x", "pending/x.txt", "done/..json/x", "pending", ".queue.lock", "artifacts/" + strings.Repeat("n", 256)} {
		var b bytes.Buffer
		w, err := newExportWriter(&b, "run", exportHead{Format: exportFormat, Export: "e1", RunID: "r1"}, nil)
		viewMust(t, err)
		viewMust(t, w.data(name, []byte("evil"), time.Now()))
		viewMust(t, w.close())
		parent := t.TempDir()
		_, err = Import(viewContext(t), &b, filepath.Join(parent, "a", "copy"), ImportOptions{})
		if !errors.Is(err, beeyard.ErrCorrupt) {
			t.Errorf("%q: %v", name, err)
		}
		for f, data := range viewTree(t, parent) {
			if data == "evil" {
				t.Errorf("%q was written to %s", name, f)
			}
		}
	}
}

// Links in a stream are refused, whatever they are called.
func TestImportRefusesLinks(t *testing.T) {
	var b bytes.Buffer
	w, err := newExportWriter(&b, "run", exportHead{Format: exportFormat, Export: "e1"}, nil)
	viewMust(t, err)
	viewMust(t, w.tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "run/pending/x.json", Linkname: "/etc/passwd"}))
	viewMust(t, w.close())
	if _, err := Import(viewContext(t), &b, filepath.Join(t.TempDir(), "copy"), ImportOptions{}); !errors.Is(err, beeyard.ErrCorrupt) {
		t.Error(err)
	}
}

// exportCutter ends the stream, or the caller, after some bytes.
type exportCutter struct {
	r    io.Reader
	left int
}

var errExportCut = errors.New("cut")

func (c *exportCutter) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errExportCut
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// An import that ended anywhere is completed by running it again, and done
// again it does nothing.
func TestImportCanBeResumed(t *testing.T) {
	r := exportRun(t)
	stream, _ := exportBytes(t, r, ExportOptions{})
	want := exportLasting(t, r.path)
	to := filepath.Join(t.TempDir(), "copy")
	kept := 0
	for cut := len(stream) / 7; cut < len(stream); cut += len(stream) / 7 {
		im, err := Import(viewContext(t), &exportCutter{bytes.NewReader(stream), cut}, to, ImportOptions{})
		if err == nil {
			break // the rest is only padding
		}
		kept = im.Kept
	}
	im, err := Import(viewContext(t), bytes.NewReader(stream), to, ImportOptions{})
	viewMust(t, err)
	if kept == 0 || !im.Already && im.Kept == 0 {
		t.Errorf("nothing was kept of the earlier attempts: %d, %+v", kept, im)
	}
	exportSame(t, want, exportLasting(t, to))
	again, err := Import(viewContext(t), bytes.NewReader(stream), to, ImportOptions{})
	if err != nil || !again.Already {
		t.Errorf("once more: %+v, %v", again, err)
	}
	// Tasks that ran since are left alone by a further attempt.
	viewMust(t, os.Rename(filepath.Join(to, dirPending, "p1.json"), filepath.Join(to, dirDone, "p1.json")))
	if again, err = Import(viewContext(t), bytes.NewReader(stream), to, ImportOptions{}); err != nil || !again.Already {
		t.Errorf("after a task ran: %+v, %v", again, err)
	}
	if _, err := os.Stat(filepath.Join(to, dirPending, "p1.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a task that ran is back: %v", err)
	}
	other, _ := exportBytes(t, r, ExportOptions{})
	if _, err := Import(viewContext(t), bytes.NewReader(other), to, ImportOptions{}); !errors.Is(err, beeyard.ErrExists) {
		t.Errorf("another export over it: %v", err)
	}
	if _, err := Import(viewContext(t), bytes.NewReader(stream), r.path, ImportOptions{}); !errors.Is(err, beeyard.ErrExists) {
		t.Errorf("over a run: %v", err)
	}
}

// Killed between any two of its renames, publishing is completed by the next
// attempt, and no run is to be seen that lacks what was exported.
func TestImportPublishesAllOrNothing(t *testing.T) {
	r := exportRun(t)
	stream, _ := exportBytes(t, r, ExportOptions{})
	want := exportLasting(t, r.path)
	for stop := 0; ; stop++ {
		to := filepath.Join(t.TempDir(), "copy")
		moves := 0
		_, err := importRun(viewContext(t), bytes.NewReader(stream), to, ImportOptions{}, func(d durable.Dir) durable.Dir {
			return durable.Hooked(d, func(op durable.Op) error {
				if op.Op == durable.OpRename {
					if moves++; moves > stop {
						return errExportCut
					}
				}
				return nil
			})
		})
		if err == nil {
			if stop < 8 {
				t.Errorf("only %d steps", stop)
			}
			break
		}
		if !errors.Is(err, errExportCut) {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(to, dirPending)); err == nil {
			for name := range want {
				if _, err := os.Stat(filepath.Join(to, name)); err != nil && name != fileStatus {
					t.Fatalf("stopped after %d: the run is there and %s is not", stop, name)
				}
			}
		}
		_, err = Import(viewContext(t), bytes.NewReader(stream), to, ImportOptions{})
		viewMust(t, err)
		exportSame(t, want, exportLasting(t, to))
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
