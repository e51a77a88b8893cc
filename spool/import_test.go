package spool

import (
	"archive/tar"
	"bytes"
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
	"beeyard/internal/durable"
)

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
