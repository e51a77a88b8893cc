package ledger

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"beeyard/internal/durable"
)

// Remains says where copies of what was redacted may still be: the history of
// the repository, and files beside the ledger that look like copies of it. It
// looks, and removes nothing. Without git, or outside of a work tree, the first
// is left out.
func Remains(ctx context.Context, g *Git, ledger string) ([]string, error) {
	f, err := OpenFile(ledger, Native)
	if err != nil {
		return nil, err
	}
	remain := []string{}
	if g != nil {
		if top, rel, err := f.inRepository(ctx, g); err == nil {
			out, err := g.run(ctx, top, nil, "rev-list", "--all", "--reflog", "--count", "--", rel)
			if err != nil {
				return nil, fmt.Errorf("look into git history: %w", err)
			}
			if n := strings.TrimSpace(out); n != "0" {
				remain = append(remain, fmt.Sprintf("git history of %s: %s commits hold versions of %s, and so may every clone and remote", top, n, rel))
			}
		}
	}
	dir, err := durable.OpenRoot(f.folder, durable.ReadOnly())
	if notThere(err) {
		return remain, nil
	}
	if err != nil {
		return nil, f.openError(err)
	}
	defer shut(dir)
	err = dir.Each(func(e durable.Entry) bool {
		if strings.Contains(e.Name, f.name) && e.Name != f.name && e.Name != f.LockName() {
			remain = append(remain, "file "+filepath.Join(f.folder, e.Name))
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("look for copies: %w", err)
	}
	return remain, nil
}
