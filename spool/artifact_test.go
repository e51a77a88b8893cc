package spool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"beeyard"
	"beeyard/internal/durable"
)

func chkNames(list []beeyard.ArtifactInfo) []string {
	var names []string
	for _, a := range list {
		names = append(names, a.Name)
	}
	return names
}

func TestArtifactsOfATask(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	for _, name := range []string{"a.md", "a.log", "a~1.log", "a~1.2.log", "a.late-abcdefgh.md", "a.b.md", "a.b.log", "ab.md", "b.json", ".hidden.md",
		durable.TempName("a.md")} {
		chkMust(t, os.WriteFile(r.path+"/artifacts/"+name, []byte("12345"), 0o600))
	}
	chkMust(t, os.Symlink("a.md", r.path+"/artifacts/a.link"))
	chkMust(t, os.Mkdir(r.path+"/artifacts/a.folder", 0o700))
	chkPut(t, r.done, "quiet")
	for task, want := range map[string][]string{
		"a":       {"a.late-abcdefgh.md", "a.log", "a.md", "a~1.2.log", "a~1.log"},
		"a.b":     {"a.b.log", "a.b.md"},
		"b":       {"b.json"},
		".hidden": {".hidden.md"},
		"quiet":   nil,
		"":        {".hidden.md", "a.b.log", "a.b.md", "a.late-abcdefgh.md", "a.log", "a.md", "ab.md", "a~1.2.log", "a~1.log", "b.json"},
	} {
		got, err := r.ListArtifacts(ctx, task)
		chkMust(t, err)
		if !slices.Equal(chkNames(got), want) {
			t.Errorf("of %q: %q, want %q", task, chkNames(got), want)
		}
		for _, a := range got {
			if a.Size != 5 || a.Modified.IsZero() {
				t.Errorf("%+v", a)
			}
		}
	}
	_, err := r.ListArtifacts(ctx, "nobody")
	chkIs(t, err, beeyard.ErrNotFound)
	_, err = r.ListArtifacts(ctx, "../x")
	chkIs(t, err, beeyard.ErrUsage)
}

func TestArtifactIsReadInRanges(t *testing.T) {
	r := chkRun(t, Options{})
	chkMust(t, os.WriteFile(r.path+"/artifacts/a.md", []byte("0123456789"), 0o600))
	a, err := r.OpenArtifact(chkContext(t), "a.md")
	chkMust(t, err)
	defer func() { chkMust(t, a.Close()) }()
	if i := a.Info(); i.Name != "a.md" || i.Size != 10 {
		t.Errorf("info %+v", i)
	}
	chkMust(t, iotest.TestReader(io.NewSectionReader(a, 2, 5), []byte("23456")))
	if _, err := a.Seek(-3, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(a); string(rest) != "789" || err != nil {
		t.Errorf("the end is %q, %v", rest, err)
	}
}

// Fault "Path traversal through ids" and "Symlink escape", for artifacts.
func TestArtifactNamesStayInside(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	chkMust(t, os.Symlink("/etc/hostname", r.path+"/artifacts/link.md"))
	chkMust(t, os.Symlink("gone", r.path+"/artifacts/dangling.md"))
	chkMust(t, os.Mkdir(r.path+"/artifacts/folder.md", 0o700))
	chkMust(t, syscall.Mkfifo(r.path+"/artifacts/fifo.md", 0o600))
	for name, want := range map[string]error{
		"../status.json": beeyard.ErrUsage, "a/b": beeyard.ErrUsage, "..": beeyard.ErrUsage, ".": beeyard.ErrUsage, "": beeyard.ErrUsage,
		"a\x00b": beeyard.ErrUsage, "/etc/hostname": beeyard.ErrUsage, "a\nb": beeyard.ErrUsage, "\xff": beeyard.ErrUsage,
		strings.Repeat("x", 300): beeyard.ErrUsage, "none.md": beeyard.ErrNotFound, `..\x`: beeyard.ErrNotFound, "-rf": beeyard.ErrNotFound,
		"link.md": beeyard.ErrNotAllowed, "dangling.md": beeyard.ErrNotAllowed, "folder.md": beeyard.ErrNotAllowed, "fifo.md": beeyard.ErrNotAllowed,
	} {
		if a, err := r.OpenArtifact(ctx, name); err == nil {
			t.Errorf("%q was opened", name)
			chkMust(t, a.Close())
		} else {
			chkIs(t, err, want)
		}
	}
}

func chkClaim(t *testing.T, r *Run, id string) (beeyard.Ref, durable.Dir) {
	t.Helper()
	chkPut(t, r.pending, id)
	d, err := r.newClaimDir(chkContext(t), "w1", beeyard.KindSingle)
	chkMust(t, err)
	t.Cleanup(func() { chkMust(t, d.close()) })
	task, _, err := r.take(chkContext(t), d, id)
	chkMust(t, err)
	return beeyard.Ref{TaskID: id, Token: d.token(task.Ext.Rev)}, d.dir
}

func TestArtifactIsStagedAndPublished(t *testing.T) {
	r := chkRun(t, Options{})
	ctx := chkContext(t)
	ref, dir := chkClaim(t, r, "a")
	if a, err := r.stagedArtifact(dir, "a"); a != nil || err != nil {
		t.Errorf("nothing was staged: %v, %v", a, err)
	}
	_, err := r.StageArtifact(ctx, ref, strings.NewReader("first"))
	chkMust(t, err)
	text := strings.Repeat("output ", 100_000)
	a, err := r.StageArtifact(ctx, ref, iotest.OneByteReader(strings.NewReader(text)))
	chkMust(t, err)
	sum := sha256.Sum256([]byte(text))
	if a.Size != int64(len(text)) || a.SHA256 != hex.EncodeToString(sum[:]) || a.Name != "a.md" {
		t.Errorf("staged %+v", a)
	}
	measured, err := r.stagedArtifact(dir, "a")
	chkMust(t, err)
	if *measured != *a {
		t.Errorf("measured %+v, staged %+v", measured, a)
	}
	if list, err := r.ListArtifacts(ctx, "a"); len(list) > 0 || err != nil {
		t.Errorf("visible before the settle: %v, %v", list, err)
	}
	_, err = r.Settle(ctx, ref, beeyard.Settlement{Outcome: beeyard.OutcomeDone})
	chkMust(t, err)
	got, err := os.ReadFile(r.path + "/artifacts/a.md")
	chkMust(t, err)
	if string(got) != text {
		t.Errorf("published %d bytes, want %d", len(got), len(text))
	}
	_, err = r.StageArtifact(ctx, ref, strings.NewReader("late"))
	chkIs(t, err, beeyard.ErrClaimLost)
	_, err = r.StageArtifact(ctx, beeyard.Ref{TaskID: "a", Token: beeyard.Token{Worker: "w", Nonce: strings.Repeat("a", beeyard.NonceLen)}}, strings.NewReader("x"))
	chkIs(t, err, beeyard.ErrClaimLost)
}

// What a handler wrote itself is flushed before the record may name it.
func TestArtifactOfAHandlerIsFlushed(t *testing.T) {
	var hook chkHook
	r := chkRun(t, hook.options())
	_, dir := chkClaim(t, r, "a")
	chkMust(t, os.WriteFile(dir.Path()+"/a~artifact", []byte("text"), 0o600))
	hook.set(func(op durable.Op) error {
		if op.Op == durable.OpSync && op.Name == "a~artifact" {
			return syscall.EIO
		}
		return nil
	})
	defer hook.set(nil)
	_, err := r.stagedArtifact(dir, "a")
	chkIs(t, err, syscall.EIO)
}

// However staging fails: what was staged before stands, nothing half is left.
func TestArtifactStagingFails(t *testing.T) {
	var hook chkHook
	r := chkRun(t, hook.options())
	ctx := chkContext(t)
	ref, dir := chkClaim(t, r, "a")
	before, err := r.StageArtifact(ctx, ref, strings.NewReader("before"))
	chkMust(t, err)
	check := func(what string, err, want error) {
		t.Helper()
		chkIs(t, err, want)
		now, err := r.stagedArtifact(dir, "a")
		chkMust(t, err)
		if now == nil || *now != *before {
			t.Errorf("%s: staged is %+v", what, now)
		}
		chkNoTemps(t, dir.Path())
	}
	broken := errors.New("broken pipe")
	_, err = r.StageArtifact(ctx, ref, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	check("reader", err, broken)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.StageArtifact(canceled, ref, strings.NewReader("x"))
	check("canceled", err, context.Canceled)
	for _, op := range []string{durable.OpCreate, durable.OpWrite, durable.OpSync, durable.OpRename} {
		hook.set(func(o durable.Op) error {
			if o.Op == op && strings.Contains(o.Name, "artifact") {
				return syscall.ENOSPC
			}
			return nil
		})
		_, err = r.StageArtifact(ctx, ref, strings.NewReader("new"))
		hook.set(nil)
		check(op, err, syscall.ENOSPC)
	}
	// Reaped while it was being written.
	_, err = r.StageArtifact(ctx, ref, io.MultiReader(strings.NewReader("a"), chkReaderFunc(func() error {
		return os.Remove(dir.Path() + "/a.json")
	})))
	check("reaped", err, beeyard.ErrClaimLost)
}

// chkReaderFunc does something in the middle of a read, then ends.
type chkReaderFunc func() error

func (f chkReaderFunc) Read([]byte) (int, error) {
	if err := f(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// What a handler leaves is data and not followed.
func TestArtifactThatIsNoFile(t *testing.T) {
	r := chkRun(t, Options{})
	for i, leave := range []func(path string) error{
		func(p string) error { return os.Symlink("/etc/hostname", p) },
		func(p string) error { return os.Mkdir(p, 0o700) },
		func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		id := chkIDs("t", 3)[i]
		_, dir := chkClaim(t, r, id)
		chkMust(t, leave(dir.Path()+"/"+id+"~artifact"))
		_, err := r.stagedArtifact(dir, id)
		chkIs(t, err, beeyard.ErrNotAllowed)
		chkMust(t, leave(dir.Path()+"/"+id+"~result"))
		_, err = r.handlerResult(dir, id)
		chkIs(t, err, beeyard.ErrUsage)
	}
}

func TestArtifactResultOfAHandler(t *testing.T) {
	r := chkRun(t, Options{})
	_, dir := chkClaim(t, r, "a")
	if res, err := r.handlerResult(dir, "a"); res != nil || err != nil {
		t.Errorf("absent: %v, %v", res, err)
	}
	for text, ok := range map[string]bool{
		"": true, " \n": true, `{}`: true, `{"verdict":"pass","newer_key":1}`: true,
		`{"verdict":"pass","retry_after":"90s","spend":false,"tokens":{"in":5},"cost":0.25}`: true,
		`{`: false, `[]`: false, `{"verdict":1}`: false, `{"retry_after":90}`: false, `{"retry_after":"-1s"}`: false,
		`{"verdict":"a","verdict":"b"}`: false, `{"Verdict":"a"}`: false, "{\"reason\":\"\xff\"}": false, `{"reason":"\u0000"}`: false,
		`{"reason":"` + strings.Repeat("x", maxResultBytes) + `"}`: false, `{"cost":1e999}`: false, "\x00\x00": false,
	} {
		chkMust(t, os.WriteFile(dir.Path()+"/a~result", []byte(text), 0o600))
		res, err := r.handlerResult(dir, "a")
		if ok != (err == nil) {
			t.Errorf("%.60q: %v", text, err)
		}
		if err != nil {
			chkIs(t, err, beeyard.ErrUsage)
		}
		if strings.Contains(text, "tokens") && (res == nil || *res.Spend || res.Tokens["in"] != 5 || res.RetryAfter == 0 || res.Cost != 0.25) {
			t.Errorf("read %+v", res)
		}
		if strings.TrimSpace(text) == "" && res != nil {
			t.Errorf("%q: %+v, want nothing", text, res)
		}
	}
}
