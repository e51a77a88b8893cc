package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// lineReader reads the answers of a LineProcess, in a goroutine of its own so
// that a death is noticed between requests too.
type lineReader struct {
	f *os.File
	// asked is true while an answer is due.
	asked atomic.Bool
	// lines has room for one, so the goroutine never waits for a reader that
	// gave up.
	lines chan []byte
	done  chan struct{}
	err   error // why it ended; set before done is closed
}

func newLineReader(f *os.File, broken func()) *lineReader {
	r := &lineReader{f: f, lines: make(chan []byte, 1), done: make(chan struct{})}
	go func() {
		r.err = r.run()
		close(r.done)
		// Without its output the process is of no use; if it merely exited,
		// this changes nothing.
		if !errors.Is(r.err, io.EOF) {
			broken()
		}
	}()
	return r
}

func (r *lineReader) run() error {
	b := bufio.NewReaderSize(r.f, 64<<10)
	for {
		line, err := readLine(b)
		if err != nil {
			return err
		}
		if !r.asked.CompareAndSwap(true, false) {
			return errors.New("it wrote a line that no request asked for")
		}
		r.lines <- line
	}
}

func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			if n := len(line) - 1; n <= MaxLine {
				return line[:n], nil
			}
			return nil, fmt.Errorf("its answer is longer than %d bytes", MaxLine)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("its output ended: %w", err)
		case len(line) > MaxLine:
			return nil, fmt.Errorf("its answer is longer than %d bytes", MaxLine)
		}
	}
}

// close ends the goroutine, though a stray process may hold the pipe open.
func (r *lineReader) close() {
	r.f.SetReadDeadline(time.Unix(1, 0))
	<-r.done
	r.f.Close()
}
