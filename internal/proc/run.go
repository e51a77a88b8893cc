package proc

import (
	"bytes"
	"context"
	"errors"
)

// ErrTooMuchOutput is Run's when a program printed more than allowed.
var ErrTooMuchOutput = errors.New("too much output")

// Run starts s, waits, and returns its output: at most limit bytes of each
// stream. A program that prints more is not stopped; the rest is dropped, and
// the error matches ErrTooMuchOutput. An exit code is no error: see the Result.
func Run(ctx context.Context, s Spec, limit int) (stdout, stderr []byte, r Result, err error) {
	var out, errOut bounded
	out.max, errOut.max = limit, limit
	c, err := NewCapture(&out, &errOut)
	if err != nil {
		return nil, nil, Result{}, err
	}
	defer c.Close()
	s.Stdout, s.Stderr = c.Stdout(), c.Stderr()
	p, err := Start(ctx, s)
	if err != nil {
		return nil, nil, Result{}, err
	}
	r = p.Wait()
	err = c.Close()
	return out.Bytes(), errOut.Bytes(), r, err
}

type bounded struct {
	bytes.Buffer
	max int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.Len(); len(p) > room {
		b.Buffer.Write(p[:room])
		return room, ErrTooMuchOutput
	}
	return b.Buffer.Write(p)
}
