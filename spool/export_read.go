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

// exportEntry is one file of a stream. What of Body is not read is passed over.
type exportEntry struct {
	Name string // below the run's folder, with slashes
	Size int64
	Mod  time.Time
	Sum  string // what its digest must be
	Body io.Reader

	body *errReader
	sum  hash.Hash
}

// exportReader reads a stream entry by entry and proves what it can.
type exportReader struct {
	src   *errReader
	tr    *tar.Reader
	tally *tally
}

func notWhole(format string, args ...any) error {
	return beeyard.Because(beeyard.ErrCorrupt, "the stream is no whole export: "+fmt.Sprintf(format, args...))
}

// fail tells a source that cannot be read from a stream that is no export.
func (x *exportReader) fail(err error) error {
	if x.src.err != nil {
		return fmt.Errorf("read the stream: %w", x.src.err)
	}
	return notWhole("%v", err)
}

func openExport(r io.Reader) (*exportReader, error) {
	x := &exportReader{src: &errReader{r: r}, tally: newTally()}
	br := bufio.NewReaderSize(x.src, 1<<20)
	x.tr = tar.NewReader(br)
	if magic, err := br.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(br)
		if err != nil {
			return nil, x.fail(err)
		}
		x.tr = tar.NewReader(z)
	}
	return x, nil
}

func (x *exportReader) next() (*exportEntry, error) {
	h, err := x.tr.Next()
	if errors.Is(err, io.EOF) {
		err = errors.New("it ends before its last entry")
	}
	if err != nil {
		return nil, x.fail(err)
	}
	_, name, ok := strings.Cut(h.Name, "/")
	if !ok || h.Typeflag != tar.TypeReg {
		return nil, notWhole("%s is not a file in a folder", beeyard.Quote(h.Name))
	}
	e := &exportEntry{Name: name, Size: h.Size, Mod: h.ModTime, Sum: h.PAXRecords[exportSum], body: &errReader{r: x.tr}, sum: sha256.New()}
	e.Body = io.TeeReader(e.body, e.sum)
	return e, nil
}

// prove reads the rest of an entry and compares its digest; err is what its
// reader came back with.
func (x *exportReader) prove(e *exportEntry, err error) error {
	if err == nil {
		_, err = io.Copy(io.Discard, e.Body)
	}
	switch {
	case e.body.err != nil:
		return x.fail(e.body.err)
	case err != nil:
		return err
	case hex.EncodeToString(e.sum.Sum(nil)) != e.Sum:
		return notWhole("the content of %s does not have its digest", beeyard.Quote(e.Name))
	}
	return nil
}

// meta reads an entry of the format's own.
func (x *exportReader) meta(e *exportEntry, v any) error {
	data, err := io.ReadAll(io.LimitReader(e.Body, exportHeadMost))
	if err := x.prove(e, err); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return notWhole("%s cannot be read", e.Name)
	}
	return nil
}

// readExport goes through a stream, plain or gzipped, and proves every digest:
// head is called first, each for every file. A file is proven only after each
// has had it, so nobody may believe in one before readExport returns nil. The
// error is ErrCorrupt for a stream that is damaged or cut short.
func readExport(ctx context.Context, r io.Reader, head func(exportHead) error, each func(*exportEntry) error) (files int, err error) {
	x, err := openExport(r)
	if err != nil {
		return 0, err
	}
	e, err := x.next()
	if err != nil {
		return 0, err
	}
	var h exportHead
	if e.Name != exportFirst {
		return 0, notWhole("it does not begin with %s", exportFirst)
	}
	if err := x.meta(e, &h); err != nil {
		return 0, err
	}
	if h.Format != exportFormat || h.Export == "" {
		return 0, notWhole("its format is %s and not %s", beeyard.Quote(h.Format), exportFormat)
	}
	if err := head(h); err != nil {
		return 0, err
	}
	for {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if e, err = x.next(); err != nil {
			return 0, err
		}
		if e.Name == exportLast {
			break
		}
		if err := x.prove(e, each(e)); err != nil {
			return 0, err
		}
		x.tally.add(e.Name, e.Size, e.Sum)
	}
	var end exportEnd
	if err := x.meta(e, &end); err != nil {
		return 0, err
	}
	if end != x.tally.total() {
		return 0, notWhole("it has %d files and should have %d, or others", x.tally.end.Files, end.Files)
	}
	return end.Files, nil
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

// VerifyExport reads a stream to its end, proves every digest and gives the
// number of files. ErrCorrupt.
func VerifyExport(ctx context.Context, r io.Reader) (files int, err error) {
	return readExport(ctx, r, func(exportHead) error { return nil }, func(*exportEntry) error { return nil })
}
