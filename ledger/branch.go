package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// Branch is a ledger shared by many machines over a branch of a git remote. The
// lease is then a mutex across them: who pushes it first has it, because a
// remote takes a push only on top of what it has.
//
// It works in a worktree of its own below the clone's git directory, so the
// user's checkout, index and branches are never touched. Of that worktree git
// writes nothing but the index: the ledger file is written as every other, and
// only that path is ever put into a commit.
//
// Between Acquire and Release the holder's changes stay in the worktree's file.
// Publish, and so Acquire and Release, brings them to the remote in one commit.
type Branch struct {
	git          *Git
	clock        clock.Clock
	remote, name string
	rel          string // the ledger's path in the repository
	top          string // the user's work tree; only a place to run git in
	common       string // the clone's git directory
	work         string // our worktree
	id           string
	file         *File
}

// OpenBranch finds the clone that the ledger is in. spec is REMOTE/BRANCH.
func OpenBranch(ctx context.Context, g *Git, ledger, spec string, c clock.Clock) (*Branch, error) {
	f, err := OpenFile(ledger, Native)
	if err != nil {
		return nil, err
	}
	top, rel, err := f.inRepository(ctx, g)
	if err != nil {
		return nil, err
	}
	b := &Branch{git: g, clock: c, top: top, rel: rel}
	if err := b.split(ctx, top, spec); err != nil {
		return nil, err
	}
	out, err := g.run(ctx, top, nil, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, fmt.Errorf("find git directory: %w", err)
	}
	b.common = strings.TrimSuffix(out, "\n")
	sum := sha256.Sum256([]byte(b.remote + "\x00" + b.name + "\x00" + rel))
	b.id = hex.EncodeToString(sum[:8])
	b.work = filepath.Join(b.common, "beeyard", b.id)
	b.file, err = OpenFile(filepath.Join(b.work, filepath.FromSlash(rel)), Native)
	return b, err
}

// split splits REMOTE/BRANCH at the longest name of a remote: both may have
// slashes.
func (b *Branch) split(ctx context.Context, top, spec string) error {
	out, err := b.git.run(ctx, top, nil, "remote")
	if err != nil {
		return fmt.Errorf("list remotes: %w", err)
	}
	for remote := range strings.FieldsSeq(out) {
		if rest, ok := strings.CutPrefix(spec, remote+"/"); ok && len(remote) > len(b.remote) {
			b.remote, b.name = remote, rest
		}
	}
	_, err = b.git.run(ctx, top, nil, "check-ref-format", "refs/heads/"+b.name)
	if b.remote == "" || b.name == "" || strings.HasPrefix(b.remote, "-") || err != nil {
		return &beeyard.Error{Op: "open branch", ID: spec, Err: beeyard.Because(beeyard.ErrUsage, "it is not a remote of this clone, a slash and a branch"),
			Hint: "'git remote' lists the remotes"}
	}
	return nil
}

// File is the worktree's ledger, for the changes of whoever holds the lease.
func (b *Branch) File() *File { return b.file }

// Refs of one shared ledger. fetched is what the remote had last; base is what
// the worktree's file grew from; lost keeps changes of a holder that lost the
// lease.
func (b *Branch) fetched() string { return "refs/beeyard/ledger/" + b.id }
func (b *Branch) base() string    { return "refs/beeyard/base/" + b.id }
func (b *Branch) lost() string {
	return fmt.Sprintf("refs/beeyard/lost/%s-%d", b.id, b.clock.Now().UnixNano())
}

// fetch brings the remote branch and returns its commit, "" when the remote has
// no such branch.
func (b *Branch) fetch(ctx context.Context) (commit string, err error) {
	heads := "refs/heads/" + b.name
	for range 3 {
		_, err = b.git.run(ctx, b.top, nil, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
			b.remote, "+"+heads+":"+b.fetched())
		if err == nil {
			return b.rev(ctx, b.fetched())
		}
		// Absent, or out of reach? Only the remote's list of refs tells. When it
		// has the branch, another machine may have made it in between.
		out, lsErr := b.git.run(ctx, b.top, nil, "ls-remote", "--heads", b.remote, heads)
		if lsErr != nil {
			break
		}
		if strings.TrimSpace(out) == "" {
			return "", nil
		}
	}
	return "", &beeyard.Error{Op: "fetch branch", ID: b.remote + "/" + b.name, Err: err,
		Hint: "nothing was changed; the remote must be reachable to share a lease"}
}

// rev resolves a name to an object, "" when there is none.
func (b *Branch) rev(ctx context.Context, name string) (string, error) {
	out, err := b.git.run(ctx, b.top, nil, "rev-parse", "--verify", "--quiet", name)
	var ge *gitError
	if errors.As(err, &ge) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(out), nil
}

// blob returns the ledger's bytes in a commit, nil when it has none.
func (b *Branch) blob(ctx context.Context, commit string) ([]byte, error) {
	if commit == "" {
		return nil, nil
	}
	object, err := b.rev(ctx, commit+":"+b.rel)
	if object == "" || err != nil {
		return nil, err
	}
	out, err := b.git.run(ctx, b.top, nil, "cat-file", "blob", object)
	if err != nil {
		return nil, fmt.Errorf("read shared ledger: %w", err)
	}
	return []byte(out), nil
}

// checkout makes the worktree if it is not there, at a commit. No file of it is
// written.
func (b *Branch) checkout(ctx context.Context, commit string) error {
	if !durable.HasNamed(filepath.Join(b.work, ".git")) {
		if _, err := b.git.run(ctx, b.top, nil, "worktree", "prune"); err != nil {
			return fmt.Errorf("make worktree: %w", err)
		}
		if _, err := b.git.run(ctx, b.top, nil, "worktree", "add", "--quiet", "--force", "--force", "--detach", "--no-checkout", b.work, commit); err != nil {
			return fmt.Errorf("make worktree: %w", err)
		}
	}
	if _, err := b.git.run(ctx, b.work, nil, "update-ref", "--no-deref", "HEAD", commit); err != nil {
		return fmt.Errorf("move worktree: %w", err)
	}
	if _, err := b.git.run(ctx, b.work, nil, "read-tree", commit); err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	// Files that are not checked out must not look deleted to hooks.
	list, err := b.git.run(ctx, b.work, nil, "ls-files", "-z")
	if err == nil {
		_, err = b.git.run(ctx, b.work, []byte(list), "update-index", "-z", "--skip-worktree", "--stdin")
	}
	if err != nil {
		return fmt.Errorf("mark files: %w", err)
	}
	return nil
}

// dropLocks removes lock files of git that a killed process left in our worktree
// and at our refs, where only holders of our own lock ever run git. One that is
// younger than any command of ours may take can belong to a git that outlived
// its parent.
func (b *Branch) dropLocks() error {
	limit := b.clock.Now().Add(-gitTimeout - 2*gitGrace)
	for folder, names := range map[string][]string{
		filepath.Join(b.common, "worktrees", b.id):     {"index.lock", "HEAD.lock"},
		filepath.Join(b.common, "refs/beeyard/base"):   {b.id + ".lock"},
		filepath.Join(b.common, "refs/beeyard/ledger"): {b.id + ".lock"},
	} {
		dir, err := durable.OpenRoot(folder)
		if notThere(err) {
			continue
		}
		if err != nil {
			return b.file.openError(err)
		}
		for _, name := range names {
			info, err := dir.Stat(name)
			if err == nil && info.ModTime.Before(limit) {
				err = dir.Remove(name)
			}
			if err != nil && !notThere(err) {
				shut(dir)
				return fmt.Errorf("remove a killed git's lock: %w", err)
			}
		}
		shut(dir)
	}
	return nil
}
