package spool

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
