package ledger

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"beeyard"
)

// hash stores bytes as a git object.
func (b *Branch) hash(ctx context.Context, data []byte) (string, error) {
	out, err := b.git.run(ctx, b.top, data, "hash-object", "-w", "--stdin")
	if err != nil {
		return "", fmt.Errorf("store ledger: %w", err)
	}
	return strings.TrimSpace(out), nil
}

func (b *Branch) setRef(ctx context.Context, ref, object string) error {
	args := []string{"update-ref", ref, object}
	if object == "" {
		args = []string{"update-ref", "-d", ref}
	}
	if _, err := b.git.run(ctx, b.top, nil, args...); err != nil {
		return fmt.Errorf("move %s: %w", ref, err)
	}
	return nil
}

// commit makes a commit on parent that changes the ledger alone, with the user's
// identity, hooks and signature. The index gets the object that was hashed from
// the very bytes, so nothing that lies in the worktree can slip in.
func (b *Branch) commit(ctx context.Context, parent string, data []byte, message string) (string, error) {
	blob, err := b.hash(ctx, data)
	if err != nil {
		return "", err
	}
	if parent == "" {
		return b.commitTree(ctx, &blob, message)
	}
	if err := b.checkout(ctx, parent); err != nil {
		return "", err
	}
	if _, err := b.git.run(ctx, b.work, nil, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+b.rel); err != nil {
		return "", fmt.Errorf("stage ledger: %w", err)
	}
	g, err := b.identified(ctx)
	if err != nil {
		return "", err
	}
	if _, err := g.run(ctx, b.work, []byte(message), "commit", "--quiet", "-F", "-"); err != nil {
		return "", &beeyard.Error{Op: "commit ledger", ID: b.remote + "/" + b.name, Err: err,
			Hint: "nothing was pushed; a hook of this clone may have refused it"}
	}
	return b.head(ctx)
}

func (b *Branch) head(ctx context.Context) (string, error) {
	out, err := b.git.run(ctx, b.work, nil, "rev-parse", "--verify", "HEAD")
	return strings.TrimSpace(out), err
}

// commitTree makes a first commit, of the ledger or of nothing. There is no
// branch yet whose hooks could have a say.
func (b *Branch) commitTree(ctx context.Context, blob *string, message string) (string, error) {
	entry := ""
	if blob != nil {
		entry = "100644 blob " + *blob + "\t" + path.Base(b.rel) + "\x00"
	}
	tree, err := b.git.run(ctx, b.top, []byte(entry), "mktree", "-z")
	for dir := path.Dir(b.rel); err == nil && blob != nil && dir != "."; dir = path.Dir(dir) {
		tree, err = b.git.run(ctx, b.top, []byte("040000 tree "+strings.TrimSpace(tree)+"\t"+path.Base(dir)+"\x00"), "mktree", "-z")
	}
	if err != nil {
		return "", fmt.Errorf("make tree: %w", err)
	}
	g, err := b.identified(ctx)
	if err != nil {
		return "", err
	}
	out, err := g.run(ctx, b.top, []byte(message), "commit-tree", "-F", "-", strings.TrimSpace(tree))
	if err != nil {
		return "", fmt.Errorf("make first commit: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// identified is git with somebody to commit as, where the user has not said who
// they are.
func (b *Branch) identified(ctx context.Context) (*Git, error) {
	_, err := b.git.run(ctx, b.top, nil, "var", "GIT_COMMITTER_IDENT")
	var ge *gitError
	if !errors.As(err, &ge) {
		return b.git, err
	}
	g := *b.git
	g.env = append(g.env[:len(g.env):len(g.env)], "GIT_AUTHOR_NAME=beeyard", "GIT_AUTHOR_EMAIL=beeyard@localhost",
		"GIT_COMMITTER_NAME=beeyard", "GIT_COMMITTER_EMAIL=beeyard@localhost")
	return &g, nil
}

// push sends a commit. again is true when the remote has moved and the work must
// be done anew on what it has now. A push whose answer was lost may have been
// taken: the remote is asked before it counts as failed.
func (b *Branch) push(ctx context.Context, commit string) (again bool, err error) {
	out, err := b.git.run(ctx, b.work, nil, "push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", b.remote,
		commit+":refs/heads/"+b.name)
	if err == nil {
		return false, nil
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "!") && (strings.Contains(line, "[rejected]") || strings.Contains(line, "cannot lock ref") ||
			strings.Contains(line, "failed to update ref") || strings.Contains(line, "incorrect old value")) {
			return true, nil
		}
	}
	if there, ferr := b.fetch(ctx); ferr == nil && there == commit {
		return false, nil
	}
	return false, &beeyard.Error{Op: "push ledger", ID: b.remote + "/" + b.name, Err: err,
		Hint: "nothing was shared; the remote or a hook refused it, or it is out of reach"}
}
