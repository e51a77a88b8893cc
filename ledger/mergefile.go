package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
)

// MergeFiles is the git merge driver: it merges three files and writes the result
// over ours. When a side is no ledger, nothing is written and the error wraps
// beeyard.ErrCorrupt: git then leaves the path in conflict. A missing or empty base
// is a ledger that both sides added.
func MergeFiles(base, ours, theirs string, now Now) ([]Conflict, error) {
	docs := make([]*Document, 3)
	for i, path := range []string{base, ours, theirs} {
		data, err := durable.ReadNamed(path, MaxBytes)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", [...]string{"base", "ours", "theirs"}[i], err)
		}
		// What the older engine wrote is read as it reads it. A file with merge
		// markers or duplicate keys is not: which of two would win is a guess.
		if docs[i], err = Read(data); err != nil {
			return nil, &beeyard.Error{Op: "merge ledger", ID: [...]string{"base", "ours", "theirs"}[i], Err: err,
				Hint: "nothing was written; put that version right by hand, then merge again"}
		}
		if docs[i] != nil && docs[i].Schema() != schemaVersion {
			return nil, newer(docs[i].Schema()).Err("merge ledger", path)
		}
	}
	for i := 1; i < 3; i++ {
		if docs[i] == nil {
			docs[i] = NewDocument()
		}
	}
	merged, conflicts := Merge(docs[0], docs[1], docs[2], now)
	f, err := OpenFile(ours, Native)
	if err != nil {
		return nil, err
	}
	dir, err := durable.OpenRoot(f.folder)
	if err != nil {
		return nil, f.openError(err)
	}
	defer shut(dir)
	if err := durable.ReplaceFile(dir, f.name, merged.Bytes(Native), filePerm); err != nil {
		return nil, fmt.Errorf("write merged ledger: %w", err)
	}
	return conflicts, nil
}

// driverName is what git attributes call the merge driver.
const driverName = "beeyard-ledger"

// Installed is what InstallMergeDriver did.
type Installed struct {
	Repository string `json:"repository"`
	Attributes string `json:"attributes"` // the file, "" when it named the ledger already
	Line       string `json:"line"`
	Driver     string `json:"driver"`
}

// InstallMergeDriver makes git in this clone merge the ledger with the program:
// it sets merge.beeyard-ledger in the clone's configuration and names the ledger
// in .gitattributes, which is for the user to commit. Every clone needs the first.
func InstallMergeDriver(ctx context.Context, g *Git, ledger, program string) (Installed, error) {
	f, err := OpenFile(ledger, Native)
	if err != nil {
		return Installed{}, err
	}
	top, rel, err := f.inRepository(ctx, g)
	if err != nil {
		return Installed{}, err
	}
	in := Installed{Repository: top, Driver: shellQuote(program) + " ledger merge %O %A %B", Line: attributePattern(rel) + " merge=" + driverName}
	for _, kv := range [][2]string{{"name", "ledgers by id and field"}, {"driver", in.Driver}} {
		if _, err := g.run(ctx, top, nil, "config", "merge."+driverName+"."+kv[0], kv[1]); err != nil {
			return in, fmt.Errorf("configure merge driver: %w", err)
		}
	}
	dir, err := durable.OpenRoot(top)
	if err != nil {
		return in, f.openError(err)
	}
	defer shut(dir)
	const name = ".gitattributes"
	old, _, err := dir.ReadFile(name, 1<<20)
	if err != nil && !notThere(err) {
		return in, fmt.Errorf("read %s: %w", name, err)
	}
	for line := range strings.Lines(string(old)) {
		if strings.TrimSpace(line) == in.Line {
			return in, nil
		}
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	in.Attributes = filepath.Join(top, name)
	if err := durable.ReplaceFile(dir, name, []byte(text+in.Line+"\n"), 0o644); err != nil {
		return in, fmt.Errorf("write %s: %w", name, err)
	}
	return in, nil
}

// inRepository finds the work tree that the ledger is in and its path there.
func (f *File) inRepository(ctx context.Context, g *Git) (top, rel string, err error) {
	// The folder may not be there yet; the nearest one that is will do.
	dir := f.folder
	for !durable.IsFolder(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	out, err := g.run(ctx, dir, nil, "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		var g *gitError
		if errors.As(err, &g) {
			err = &beeyard.Error{Op: "find repository", ID: f.folder, Err: beeyard.Because(beeyard.ErrUsage, "the ledger is in no git work tree"),
				Hint: "name a ledger inside the clone"}
		}
		return "", "", err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) < 2 {
		return "", "", fmt.Errorf("find repository: git said %q", out)
	}
	below, err := filepath.Rel(dir, f.Path())
	if err != nil {
		return "", "", fmt.Errorf("find repository: %w", err)
	}
	return lines[0], filepath.ToSlash(filepath.Join(lines[1], below)), nil
}

// attributePattern spells a path for .gitattributes, anchored at the top.
func attributePattern(rel string) string {
	var b strings.Builder
	b.WriteByte('/')
	for _, r := range rel {
		if strings.ContainsRune(`*?[]\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	if strings.ContainsAny(rel, " \t\"") {
		return string(appendQuoted(nil, b.String()))
	}
	return b.String()
}

// shellQuote is for git, which gives the driver to sh.
func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
