package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// sightedBody is what reading a sighting's file gave.
type sightedBody struct {
	task *beeyard.Task // nil when it is no task
	cand *candidate    // where it comes from the index; the task then has no created_at
	info durable.Info
	gone bool // it has moved on
	skip bool // another user's file: passed over with a warning
	why  error
}

// dirOf opens the folder of a sighting. release is always to be called.
func (r *Run) dirOf(s *sighting) (dir durable.Dir, release func(), err error) {
	if s.place != beeyard.PlaceClaimed {
		return r.place(s.place), func() {}, nil
	}
	d, err := r.claimed.OpenDir(s.claim)
	if err != nil {
		return nil, func() {}, err
	}
	return d, func() { closeRead(d) }, nil
}

// closeRead closes what was only read through: nothing is lost if that fails.
func closeRead(c io.Closer) { _ = c.Close() }

// created is when the task was made; false when that cannot be read.
func (b *sightedBody) created() (time.Time, bool) {
	if b.cand != nil {
		return time.Unix(b.cand.sec, int64(b.cand.nsec)), b.cand.timed
	}
	return b.task.Created()
}

// parser makes a task of a body: parseTask, or peekTask where that will do.
type parser func(data []byte, id string) (*beeyard.Task, error)

func (r *Run) readSighted(s *sighting, parse parser) (b sightedBody, err error) {
	dir, release, err := r.dirOf(s)
	defer release()
	var data []byte
	if err == nil {
		data, b.info, err = readBody(dir, s.name())
	}
	if err == nil {
		b.task, err = parse(data, s.id)
	}
	switch {
	case err == nil:
	case missing(err):
		b.gone = true
	case errors.Is(err, beeyard.ErrNotTask):
		b.why = err
	case errors.Is(err, fs.ErrPermission):
		b.skip = true
		r.note("%s/%s cannot be read by this user and is passed over", s.place, s.name())
	default:
		return b, err
	}
	return b, nil
}

// bodyChunk bounds how many bodies a look holds at once.
const bodyChunk = 2048

// eachBody reads bodies side by side and hands them over one after another.
// What has moved on is looked up and handed over as what it is now.
func (r *Run) eachBody(ctx context.Context, seen []sighting, parse parser, f func(s *sighting, b *sightedBody) error) error {
	bodies := make([]sightedBody, min(len(seen), bodyChunk))
	for len(seen) > 0 {
		n := min(len(seen), bodyChunk)
		err := parallel(ctx, n, func(i int) (err error) {
			bodies[i], err = r.readSighted(&seen[i], parse)
			return err
		})
		if err != nil {
			return fmt.Errorf("read tasks: %w", err)
		}
		for i := range n {
			switch {
			case bodies[i].skip:
				continue
			case bodies[i].gone:
				err = r.eachMoved(ctx, seen[i].id, f)
			default:
				err = f(&seen[i], &bodies[i])
			}
			if err != nil {
				return err
			}
		}
		seen = seen[n:]
	}
	return nil
}

// eachMoved hands over the bodies of an id that was not where it had been seen.
func (r *Run) eachMoved(ctx context.Context, id string, f func(s *sighting, b *sightedBody) error) error {
	lives, err := r.livesOf(ctx, id)
	if errors.Is(err, fs.ErrPermission) {
		r.note("%s cannot be read by this user and is passed over", beeyard.Quote(id))
		return nil
	}
	if err != nil {
		return err
	}
	for i := range lives {
		b, err := r.readSighted(&lives[i], parseTask)
		if err != nil {
			return err
		}
		if b.gone || b.skip {
			continue // gone twice within microseconds: the next look shows it
		}
		if err := f(&lives[i], &b); err != nil {
			return err
		}
	}
	return nil
}
