package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"beeyard"
	"beeyard/internal/durable"
)

// drained reports whether nothing is left that f could ever claim without
// somebody else's doing: no ready task, none that only time keeps, and no
// claimed one, whatever its type, since its end may bring any.
//
// The last look is under .queue.lock and in the order pending, held, claimed:
// nothing of ours comes into the first two meanwhile, so what moves is seen
// where it went.
func (p *picker) drained(ctx context.Context, f beeyard.Filter) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, errPickerClosed
	}
	p.polled = true
	if err := p.catchUp(ctx, true); err != nil {
		return false, err
	}
	if open, err := p.open(ctx, &f); err != nil || open || p.sick != nil {
		return false, errors.Join(err, p.sick)
	}
	unlock, err := p.r.lockQueue(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	for _, s := range []*shelf{p.pending, p.held} {
		if news, err := p.news(s); err != nil || news {
			return false, err
		}
	}
	claimed, err := p.r.anyClaim(ctx)
	if err != nil || claimed {
		return false, err
	}
	// A dependency may have ended between the first look and the lock.
	p.doneAt.valid, p.polled = false, true
	err = p.askDone(ctx, true, true)
	p.polled = false
	if err != nil {
		return false, err
	}
	open, err := p.open(ctx, &f)
	return !open && err == nil, err
}

// open reports whether f has a task that is ready or will come due.
func (p *picker) open(ctx context.Context, f *beeyard.Filter) (bool, error) {
	deps := p.r.newDeps(ctx)
	for _, s := range []*shelf{p.pending, p.held} {
		for _, c := range s.known {
			if c.state == pickReady && c.match(f, &p.scratch) {
				return true, nil
			}
			if c.state != pickLater || !c.match(f, &p.scratch) {
				continue
			}
			never, err := deps.anyStuck(c)
			if err != nil || !never {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// news reports whether a folder has a name that is not known. It takes nothing
// in: that may need the lock, which is held.
func (p *picker) news(s *shelf) (bool, error) {
	found := false
	err := durable.EachName(s.dir, func(name []byte, ino uint64, _ fs.FileMode) bool {
		id, ok := idOfName(name)
		if !ok {
			return true
		}
		c := s.known[string(id)]
		_, bad := s.bad[string(name)]
		found = !bad && (c == nil || ino != 0 && c.ino != ino)
		return !found
	})
	if err != nil {
		return false, fmt.Errorf("list %s: %w", s.place, err)
	}
	return found, nil
}

// anyClaim reports whether any claim is current, decided ones not yet
// published among them.
func (r *Run) anyClaim(ctx context.Context) (bool, error) {
	found := false
	err := r.eachClaimDir(ctx, func(_ string, dir durable.Dir) (bool, error) {
		err := dir.Each(func(e durable.Entry) bool {
			id, tag, _ := parseEntry(e.Name)
			found = (tag == tagClaim || tag == tagTaken) && beeyard.CheckStoredID(id) == nil
			return !found
		})
		if err != nil {
			return false, fmt.Errorf("list claim directory: %w", err)
		}
		return !found, nil
	})
	return found, err
}
