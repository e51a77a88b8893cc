package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"beeyard"
	"beeyard/internal/durable"
)

// ListArtifacts lists the files that a task left, or all for "", by name:
// <task>.<extension>, the logs of earlier attempts <task>~<n>.log, and what
// was kept aside of late claims. ErrNotFound when there is neither a file nor
// such a task.
func (r *Run) ListArtifacts(ctx context.Context, task string) ([]beeyard.ArtifactInfo, error) {
	if task != "" {
		if err := beeyard.CheckStoredID(task); err != nil {
			return nil, err
		}
	}
	var names []string
	err := r.artifacts.Each(func(e durable.Entry) bool {
		if !durable.IsTemp(e.Name) && !isTempArtifact(e.Name) && (task == "" || artifactOf(e.Name, task)) {
			names = append(names, e.Name)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list artifacts: %w", err)
	}
	list := make([]beeyard.ArtifactInfo, 0, len(names))
	for _, n := range names {
		info, err := r.artifacts.Stat(n)
		switch {
		case missing(err):
		case err != nil:
			return nil, fmt.Errorf("look at artifact: %w", err)
		case info.Mode.IsRegular():
			list = append(list, artifactInfo(n, info))
		}
	}
	if len(list) == 0 && task != "" {
		if err := r.known(ctx, task); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b beeyard.ArtifactInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func artifactInfo(name string, i durable.Info) beeyard.ArtifactInfo {
	return beeyard.ArtifactInfo{Name: name, Size: i.Size, Modified: i.ModTime.UTC()}
}

// artifactOf: ids may hold dots, so a name is a task's only where nothing but
// one extension, or one of our own endings, follows the id: a.b.md is of a.b.
func artifactOf(name, task string) bool {
	rest, ok := strings.CutPrefix(name, task)
	if !ok || rest == "" {
		return false
	}
	if ext, ok := strings.CutPrefix(rest, ".late-"); ok {
		return strings.Contains(ext, ".")
	}
	return rest[0] == '~' || rest[0] == '.' && len(rest) > 1 && !strings.Contains(rest[1:], ".")
}

// isTempArtifact: a name that is being written. Tasks of older programs may
// have ids with a leading dot, so not every hidden name is one.
func isTempArtifact(name string) bool {
	return isTemp(name) && !strings.Contains(name[1:], ".")
}

// known is ErrNotFound for an id that was never used in the run.
func (r *Run) known(ctx context.Context, task string) error {
	bodies, err := r.lookup(ctx, task, false, true)
	if err != nil || len(bodies) > 0 {
		return err
	}
	pruned, err := r.pruned()
	if err != nil {
		return err
	}
	done, err := r.completedSet()
	if err != nil {
		return err
	}
	if _, ok := pruned[task]; ok || done[task] {
		return nil
	}
	return &beeyard.Error{Op: "list artifacts", ID: task, Err: beeyard.Because(beeyard.ErrNotFound, "there is no such task"),
		Hint: "beeyard ls lists the tasks"}
}

// OpenArtifact opens a file of artifacts/ by its name there. A link, or
// anything else that is not a regular file, is ErrNotAllowed.
func (r *Run) OpenArtifact(_ context.Context, name string) (beeyard.ArtifactReader, error) {
	fail := func(err error, hint string) error {
		return &beeyard.Error{Op: "open artifact", ID: name, Err: err, Hint: hint}
	}
	if !artifactName(name) {
		return nil, fail(beeyard.Because(beeyard.ErrUsage, "it cannot be the name of an artifact"), "name one as the list of artifacts shows it")
	}
	f, err := r.artifacts.Open(name)
	switch {
	case missing(err):
		return nil, fail(beeyard.Because(beeyard.ErrNotFound, "there is no such artifact"), "the list of artifacts shows those there are")
	case errors.Is(err, durable.ErrNotRegular):
		return nil, fail(beeyard.Because(beeyard.ErrNotAllowed, "it is not a regular file"), "links are not followed")
	case err != nil:
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look at artifact: %w", err), f.Close())
	}
	return &artifactReader{File: f, info: artifactInfo(name, info)}, nil
}

// artifactName: one component of a path, as long as file systems allow.
func artifactName(name string) bool {
	bad := name == "" || name == "." || name == ".." || len(name) > 255 || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(c rune) bool { return c == '/' || c < 0x20 || c >= 0x7f && c <= 0x9f })
	return !bad
}

// artifactReader is a file that was opened for reading, with what it is.
type artifactReader struct {
	durable.File
	info beeyard.ArtifactInfo
}

func (a *artifactReader) Info() beeyard.ArtifactInfo { return a.info }
