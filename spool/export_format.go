package spool

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"beeyard"
)

// The stream of an exported run is a tar, so that any system can unpack it, and
// what unpacks is a run. Its first entry names the export, its last one counts
// and digests all before it, since a tar that was cut off between two entries
// looks whole. Each entry carries the SHA-256 of its content as a PAX record.
const (
	exportFormat = "beeyard-run/1"
	exportFirst  = "beeyard-export.json"
	exportLast   = "beeyard-export-end.json"
	exportSum    = "BEEYARD.sha256"

	exportHeadMost = 1 << 20
)

type exportHead struct {
	Format string `json:"format"`
	Export string `json:"export"` // random: tells an import begun anew from another one
	RunID  string `json:"run_id"`
	At     string `json:"at"`
}

type exportEnd struct {
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of the lines "<name>\0<size>\0<sha256>\n"
}

// tally sums up what a stream holds, the same way for writer and reader.
type tally struct {
	end exportEnd
	sum hash.Hash
}

func newTally() *tally { return &tally{sum: sha256.New()} }

func (t *tally) add(name string, size int64, sum string) {
	t.end.Files++
	t.end.Bytes += size
	fmt.Fprintf(t.sum, "%s\x00%d\x00%s\n", name, size, sum) // a hash takes everything
}

func (t *tally) total() exportEnd {
	e := t.end
	e.SHA256 = hex.EncodeToString(t.sum.Sum(nil))
	return e
}

// exportWriter writes the stream.
type exportWriter struct {
	tw    *tar.Writer
	base  string
	tally *tally
	tell  func(files int, bytes int64)
}

func newExportWriter(w io.Writer, base string, head exportHead, tell func(int, int64)) (*exportWriter, error) {
	e := &exportWriter{tw: tar.NewWriter(w), base: base, tally: newTally(), tell: tell}
	return e, e.meta(exportFirst, head)
}

func (e *exportWriter) meta(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	data = append(data, '\n')
	sum := sha256.Sum256(data)
	return e.write(name, int64(len(data)), time.Time{}, hex.EncodeToString(sum[:]), strings.NewReader(string(data)))
}

// data adds one file whose content is known.
func (e *exportWriter) data(name string, data []byte, mod time.Time) error {
	sum := sha256.Sum256(data)
	return e.file(name, int64(len(data)), mod, hex.EncodeToString(sum[:]), strings.NewReader(string(data)))
}

// file adds one file that the digest was taken of before.
func (e *exportWriter) file(name string, size int64, mod time.Time, sum string, r io.Reader) error {
	h := sha256.New()
	if err := e.write(name, size, mod, sum, io.TeeReader(r, h)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return beeyard.Because(beeyard.ErrConflict, name+" changed while it was exported")
	}
	e.tally.add(name, size, sum)
	if e.tell != nil {
		e.tell(e.tally.end.Files, e.tally.end.Bytes)
	}
	return nil
}

func (e *exportWriter) write(name string, size int64, mod time.Time, sum string, r io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.base + "/" + name, Size: size, Mode: 0o600, ModTime: mod,
		Format: tar.FormatPAX, PAXRecords: map[string]string{exportSum: sum}}
	if err := e.tw.WriteHeader(h); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := io.Copy(e.tw, io.LimitReader(r, size)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (e *exportWriter) close() error {
	if err := e.meta(exportLast, e.tally.total()); err != nil {
		return err
	}
	if err := e.tw.Close(); err != nil {
		return fmt.Errorf("end stream: %w", err)
	}
	return nil
}

// exportEntry is one file of a stream. Body must be read to its end.
type exportEntry struct {
	Name string // below the run's folder, with slashes
	Size int64
	Mod  time.Time
	Sum  string
	Body io.Reader
}

// readExport goes through a stream, plain or gzipped, and checks every digest.
// head is called first, each for every file; both see nothing of an entry that
// is not as the format says. What each read is only proven when it returns: a
// digest that does not match is an error right after. The error is ErrCorrupt
// for a stream that is damaged or cut short.
func readExport(ctx context.Context, r io.Reader, head func(exportHead) error, each func(*exportEntry) error) (exportEnd, error) {
	bad := func(format string, args ...any) error {
		return beeyard.Because(beeyard.ErrCorrupt, "the stream is no whole export: "+fmt.Sprintf(format, args...))
	}
	src := &errReader{r: r}
	// fail tells a source that cannot be read from a stream that is no export.
	fail := func(err error) error {
		if src.err != nil {
			return fmt.Errorf("read the stream: %w", src.err)
		}
		return bad("%v", err)
	}
	br := bufio.NewReaderSize(src, 1<<20)
	r = br
	if magic, err := br.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(br)
		if err != nil {
			return exportEnd{}, fail(err)
		}
		r = z
	}
	tr := tar.NewReader(r)
	t := newTally()
	first := true
	for {
		if ctx.Err() != nil {
			return exportEnd{}, context.Cause(ctx)
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			err = errors.New("it ends before its last entry")
		}
		if err != nil {
			return exportEnd{}, fail(err)
		}
		_, name, ok := strings.Cut(h.Name, "/")
		if !ok || h.Typeflag != tar.TypeReg {
			return exportEnd{}, bad("%s is not a file in a folder", beeyard.Quote(h.Name))
		}
		if first != (name == exportFirst) {
			return exportEnd{}, bad("it does not begin with %s, once", exportFirst)
		}
		sum := sha256.New()
		body := &errReader{r: tr}
		e := &exportEntry{Name: name, Size: h.Size, Mod: h.ModTime, Sum: h.PAXRecords[exportSum], Body: io.TeeReader(body, sum)}
		var end *exportEnd
		switch name {
		case exportFirst:
			var v exportHead
			if err = decodeMeta(e, &v); body.err == nil && (err != nil || v.Format != exportFormat || v.Export == "") {
				return exportEnd{}, bad("its first entry is not of format %s", exportFormat)
			}
			first = false
			if err == nil {
				err = head(v)
			}
		case exportLast:
			end = &exportEnd{}
			if err = decodeMeta(e, end); err != nil && body.err == nil {
				return exportEnd{}, bad("its last entry cannot be read")
			}
		default:
			err = each(e)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, e.Body)
		}
		if body.err != nil {
			return exportEnd{}, fail(body.err)
		}
		if err != nil {
			return exportEnd{}, err
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != e.Sum {
			return exportEnd{}, bad("the content of %s does not have its digest", beeyard.Quote(name))
		}
		switch {
		case end == nil && name != exportFirst:
			t.add(name, h.Size, e.Sum)
		case end != nil && *end != t.total():
			return exportEnd{}, bad("it has %d files and should have %d, or others", t.end.Files, end.Files)
		case end != nil:
			return *end, nil
		}
	}
}

// errReader remembers what ended reading, unless it was the end.
type errReader struct {
	r   io.Reader
	err error
}

func (e *errReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}

func decodeMeta(e *exportEntry, v any) error {
	data, err := io.ReadAll(io.LimitReader(e.Body, exportHeadMost))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// VerifyExport reads a stream to its end and proves every digest. ErrCorrupt.
func VerifyExport(ctx context.Context, r io.Reader) (files int, err error) {
	end, err := readExport(ctx, r, func(exportHead) error { return nil }, func(*exportEntry) error { return nil })
	return end.Files, err
}
