package spool

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// enqueuePart is what publishing, prune and quarantine keep between calls.
type enqueuePart struct {
	mu sync.Mutex
	// Folders that most runs never need: opened when they are first there.
	folded, archive durable.Dir

	uids   *bufio.Reader // random bytes for uids, read from the system by the page
	uidsMu sync.Mutex

	list prunedList

	skew     time.Duration // the file server's clock less ours
	skewOnce sync.Once
	skewErr  error
}

func (r *Run) initEnqueue() {
	r.enq.uids = bufio.NewReaderSize(rand.Reader, 4096)
	r.onClose(func() error {
		r.enq.mu.Lock()
		defer r.enq.mu.Unlock()
		var errs []error
		for _, d := range []*durable.Dir{&r.enq.folded, &r.enq.archive} {
			if *d != nil {
				errs = append(errs, (*d).Close())
				*d = nil
			}
		}
		return errors.Join(errs...)
	})
}

// Enqueue publishes tasks: see beeyard.Queue. What can be refused is refused
// before the first name is published, so that a refusal (ErrUsage, ErrExists,
// ErrCycle, ErrConflict) leaves the run as it was; only a failing disk leaves a
// part. The results are those of the tasks whose fate is known, in their order;
// on nil that is all of them. The caller's tasks are not changed.
func (r *Run) Enqueue(ctx context.Context, tasks []*beeyard.Task, o beeyard.EnqueueOptions) ([]beeyard.Enqueued, error) {
	if err := r.writable("enqueue"); err != nil {
		return nil, err
	}
	if o.Replace && (o.IfAbsent || o.Under != nil) {
		return nil, &beeyard.Error{Op: "enqueue", Err: beeyard.Because(beeyard.ErrUsage,
			"replace goes neither with if-absent nor with a claim's follow-ups")}
	}
	adds, err := r.additions(tasks, o)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Under != nil:
		err = r.enqueueUnder(ctx, adds, *o.Under, o.IfAbsent)
	case o.Replace:
		err = r.admit(ctx, adds, replacePending, o.OnEach)
		if err == nil {
			err = r.replaceAll(ctx, adds)
		}
	case o.IfAbsent:
		err = r.admit(ctx, adds, skipUsed, o.OnEach)
	default:
		err = r.admit(ctx, adds, refuseUsed, o.OnEach)
	}
	return answers(adds), err
}

// answers are the results of those whose fate is known.
func answers(adds []*addition) []beeyard.Enqueued {
	out := make([]beeyard.Enqueued, 0, len(adds))
	for _, a := range adds {
		if a.status != statusNone && a.status != statusReplace {
			out = append(out, beeyard.Enqueued{TaskID: a.task.ID, Status: a.status, State: a.state})
		}
	}
	return out
}

// replaceAll gives the tasks that were found waiting their new bodies: each a
// claim followed by a settle, so that a body never changes under its claimer.
func (r *Run) replaceAll(ctx context.Context, adds []*addition) error {
	for _, a := range adds {
		if a.status != statusReplace {
			continue
		}
		settled, err := r.operate(ctx, a.task.ID, []beeyard.Place{beeyard.PlacePending, beeyard.PlaceHeld},
			func(*beeyard.Task) (beeyard.Settlement, error) {
				return beeyard.Settlement{Outcome: beeyard.OutcomeReplace, Replace: a.task}, nil
			})
		if err != nil {
			return fmt.Errorf("replace %s: %w", beeyard.Quote(a.task.ID), err)
		}
		a.status, a.state = "replaced", settled.State
		if err := r.replacedIntoCycle(ctx, a.task); err != nil {
			return err
		}
	}
	return nil
}
