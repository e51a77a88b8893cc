package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// pushTries bounds how often a push may lose a race before it gives up: each
// loss means that another machine got through.
const pushTries = 20

const verbAcquire = "acquire"

// Acquire takes the lease for all machines. It answers OK (or STALE-RECLAIMED)
// only after it has pushed the lease and found its own writer in what came back.
func (b *Branch) Acquire(ctx context.Context, writer string, ttlMinutes int64, now Now) (Outcome, error) {
	return b.Publish(ctx, verbAcquire, writer, func(d *Document) Outcome { return Acquire(d, writer, ttlMinutes, now) })
}

// Release gives the lease back and pushes all that was changed under it.
func (b *Branch) Release(ctx context.Context, writer string) (Outcome, error) {
	return b.Publish(ctx, "release", writer, func(d *Document) Outcome { return Release(d, writer) })
}

// Refresh brings what the remote has into the worktree's file, merged with
// changes that are not published yet.
func (b *Branch) Refresh(ctx context.Context) (Outcome, error) {
	out := Outcome{Word: OK}
	err := b.locked(ctx, func(dir durable.Dir) (err error) {
		_, out, err = b.sync(ctx, dir)
		return err
	})
	return out, err
}

// Update carries out a change that needs the lease, on the worktree's file alone;
// Publish brings it to the remote. Before the first Acquire of this clone there is
// no worktree and so no lease: nothing is made then, for git makes a worktree only
// where nothing is.
func (b *Branch) Update(ctx context.Context, change func(*Document) Outcome) (Outcome, error) {
	if durable.HasNamed(filepath.Join(b.work, ".git")) {
		return b.file.Update(ctx, change)
	}
	out := change(NewDocument())
	if out.changed {
		out = lost(Lease{}, false)
	}
	return out, nil
}

// Publish carries out a change on what the remote has now, commits and pushes it.
// When it returns an OK outcome and no error, the remote has the change, and so
// has the worktree's file. On an error the file is as it was before.
func (b *Branch) Publish(ctx context.Context, verb, writer string, change func(*Document) Outcome) (Outcome, error) {
	var out Outcome
	err := b.locked(ctx, func(dir durable.Dir) (err error) {
		for try := 1; ; try++ {
			var again bool
			if out, again, err = b.publish(ctx, dir, verb, writer, change); !again {
				return err
			}
			if try == pushTries {
				return &beeyard.Error{Op: "push ledger", ID: b.remote + "/" + b.name, Err: beeyard.Because(beeyard.ErrTimeout, fmt.Sprintf("%d pushes lost a race", try)),
					Hint: "nothing was changed; try again later"}
			}
			if err := clock.Sleep(ctx, b.clock, time.Duration(try)*time.Duration(rand.IntN(20)+1)*time.Millisecond); err != nil {
				return fmt.Errorf("push ledger: %w", err)
			}
		}
	})
	return out, err
}

// locked holds the ledger's own flock: a change of the file by this machine's
// other processes and one by the branch exclude each other. The folder is made
// after the worktree, which git would not make in a folder that is not empty.
func (b *Branch) locked(ctx context.Context, do func(durable.Dir) error) error {
	parent, err := durable.MkdirAll(filepath.Join(b.common, "beeyard"), dirPerm)
	if err != nil {
		return b.file.openError(err)
	}
	defer shut(parent)
	unlock, err := parent.Lock(ctx, b.id+".lock")
	if err != nil {
		return &beeyard.Error{Op: "lock shared ledger", ID: b.remote + "/" + b.name, Err: errors.Join(beeyard.ErrTimeout, err),
			Hint: "another process of this machine is at it; try again"}
	}
	defer unlock()
	if err := b.dropLocks(); err != nil {
		return err
	}
	if !durable.HasNamed(filepath.Join(b.work, ".git")) {
		start, err := b.fetch(ctx)
		if err == nil && start == "" {
			// Any commit will do to make a worktree from; an empty one of our
			// own depends on nothing.
			start, err = b.commitTree(ctx, nil, "ledger: start")
		}
		if err == nil {
			err = b.checkout(ctx, start)
		}
		if err != nil {
			return err
		}
	}
	return b.file.locked(ctx, do)
}

// sync brings the file up to what the remote has. The outcome is LEASE-LOST when
// changes made under a lease had to give way to another writer's.
func (b *Branch) sync(ctx context.Context, dir durable.Dir) (commit string, out Outcome, err error) {
	out = Outcome{Word: OK}
	if commit, err = b.fetch(ctx); err != nil {
		return "", out, err
	}
	baseCommit, err := b.rev(ctx, b.base())
	if err != nil {
		return "", out, err
	}
	base, err := b.blob(ctx, baseCommit)
	if err != nil {
		return "", out, err
	}
	remote, err := b.blob(ctx, commit)
	if err != nil {
		return "", out, err
	}
	local, _, err := dir.ReadFile(b.file.name, MaxBytes)
	if err != nil && !notThere(err) {
		return "", out, b.file.openError(err)
	}
	next := remote
	switch {
	case remote == nil: // the branch is new, or was deleted: what is here is all there is
		next = local
	case !bytes.Equal(local, base) && !bytes.Equal(local, remote):
		if next, out, err = b.join(ctx, base, local, remote); err != nil {
			return "", out, err
		}
	}
	if !bytes.Equal(next, local) {
		if err := b.file.store(dir, next); err != nil {
			return "", out, err
		}
	}
	return commit, out, b.setRef(ctx, b.base(), commit)
}

// join merges changes that are not published with what the remote has, unless
// they were made under a lease that the remote has given to another. Only what
// needs the lease is ever left unpublished, so the lease in the file is that of
// whoever made them.
func (b *Branch) join(ctx context.Context, base, local, remote []byte) (next []byte, out Outcome, err error) {
	docs := make([]*Document, 3)
	for i, data := range [][]byte{base, local, remote} {
		if docs[i], err = Read(data); err != nil {
			return nil, out, b.file.corrupt(err)
		}
		if docs[i] == nil && i > 0 {
			docs[i] = NewDocument()
		}
	}
	mine, held := docs[1].Lease()
	theirs, _ := docs[2].Lease()
	if held && mine.Writer != theirs.Writer {
		blob, err := b.hash(ctx, local)
		if err != nil {
			return nil, out, err
		}
		ref := b.lost()
		if err := b.setRef(ctx, ref, blob); err != nil {
			return nil, out, err
		}
		out = lost(docs[2].Lease())
		out.Payload = fields("unpublished", ref)
		out.Next = "changes that were not published are kept in this clone as " + ref + "; acquire the lease, then apply what still holds"
		return remote, out, nil
	}
	merged, _ := Merge(docs[0], docs[1], docs[2], At(b.clock.Now()))
	return merged.Bytes(Native), Outcome{Word: OK}, nil
}

// publish is one try. again asks for another: the remote moved in between.
func (b *Branch) publish(ctx context.Context, dir durable.Dir, verb, writer string, change func(*Document) Outcome) (out Outcome, again bool, err error) {
	parent, synced, err := b.sync(ctx, dir)
	if err != nil || !synced.OK() && verb != verbAcquire {
		return synced, false, err
	}
	d, err := b.file.load(dir)
	if err != nil {
		return out, false, err
	}
	if d == nil {
		d = NewDocument()
	}
	if out = change(d); !out.OK() {
		return out, false, nil
	}
	if ref, ok := synced.Payload.Get("unpublished"); ok {
		if out.Payload == nil {
			out.Payload = &Map{}
		}
		out.Payload.Set("unpublished", ref) // of an earlier lease that was lost
	}
	if d.Schema() != schemaVersion {
		return newer(d.Schema()), false, nil
	}
	data := d.Bytes(Native)
	if old, err := b.blob(ctx, parent); err != nil || bytes.Equal(old, data) {
		return out, false, err // the remote has it already
	}
	commit, err := b.commit(ctx, parent, data, fmt.Sprintf("ledger: %s by %s", verb, clip(writer)))
	if err != nil {
		return Outcome{}, false, err
	}
	if again, err := b.push(ctx, commit); again || err != nil {
		return Outcome{}, again, err
	}
	return b.confirm(ctx, dir, writer, verb, out)
}

// confirm looks at what the remote has after a push that it took.
func (b *Branch) confirm(ctx context.Context, dir durable.Dir, writer, verb string, out Outcome) (Outcome, bool, error) {
	commit, err := b.fetch(ctx)
	var back []byte
	if err == nil {
		back, err = b.blob(ctx, commit)
	}
	if err != nil {
		return Outcome{}, false, &beeyard.Error{Op: "confirm push", ID: b.remote + "/" + b.name, Err: err,
			Hint: "the remote took the push, and could not be asked what it has; give the same command again"}
	}
	d, err := Read(back)
	if err != nil {
		return Outcome{}, false, b.file.corrupt(err)
	}
	if d == nil {
		d = NewDocument()
	}
	if l, held := d.Lease(); verb == verbAcquire && (!held || l.Writer != writer) {
		if held {
			return locked(l), false, nil
		}
		return Outcome{}, true, nil
	}
	if err := b.file.store(dir, back); err != nil {
		return Outcome{}, false, err
	}
	return out, false, b.setRef(ctx, b.base(), commit)
}
