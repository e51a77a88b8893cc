package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// record hooks a Dir and keeps the names of what was done.
func record(d Dir) (Dir, func() []string) {
	var mu sync.Mutex
	var ops []string
	return Hooked(d, func(op Op) error {
			mu.Lock()
			defer mu.Unlock()
			ops = append(ops, op.Op)
			return nil
		}), func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(ops)
		}
}

func TestWriteFileStepsInOrder(t *testing.T) {
	for name, write := range map[string]func(Dir) error{
		OpRename:     func(d Dir) error { return WriteFile(d, "f", []byte("x"), 0o600) },
		OpRenameExcl: func(d Dir) error { return WriteExcl(d, "f", []byte("x"), 0o600) },
	} {
		d, ops := record(testDir(t))
		must(t, write(d))
		want := []string{OpCreate, OpWrite, OpSync, OpClose, name, OpSyncDir}
		if got := ops(); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if info, err := d.Stat("f"); err != nil || info.Mode != 0o600 || content(t, d, "f") != "x" {
			t.Errorf("%+v, %v", info, err)
		}
	}
	d := testDir(t)
	put(t, d, "f", "theirs")
	wantErr(t, "WriteExcl over a file", WriteExcl(d, "f", []byte("x"), 0o600), fs.ErrExist)
	if content(t, d, "f") != "theirs" || len(names(t, d)) != 1 {
		t.Errorf("%v", names(t, d))
	}
}

// Each step fails once with each error: the old content stands, no temporary
// file is left, and no flush is repeated.
func TestWriteFileFails(t *testing.T) {
	faults := []error{unix.ENOSPC, unix.EIO, unix.EDQUOT, unix.EACCES, unix.EMFILE, &ShortWrite{N: 3, Err: unix.ENOSPC}}
	steps := []string{OpCreate, OpWrite, OpSync, OpClose, OpRename, OpRenameExcl, OpSyncDir, OpStat, OpFstat, OpChmod}
	writers := map[string]func(Dir) error{
		"WriteFile":       func(d Dir) error { return WriteFile(d, "f", []byte("new content"), 0o600) },
		"WriteExcl":       func(d Dir) error { return WriteExcl(d, "g", []byte("new content"), 0o600) },
		"ReplaceFile":     func(d Dir) error { return ReplaceFile(d, "f", []byte("new content"), 0o600) },
		"ReplaceFile new": func(d Dir) error { return ReplaceFile(d, "g", []byte("new content"), 0o600) },
	}
	n := 0
	for writer, write := range writers {
		for _, step := range steps {
			for _, fault := range faults {
				base := testDir(t)
				put(t, base, "f", "old content")
				hit, syncs := 0, 0
				err := write(Hooked(base, func(op Op) error {
					if op.Op == OpSync {
						syncs++
					}
					if op.Op == step && hit == 0 {
						hit++
						return fault
					}
					return nil
				}))
				if hit == 0 {
					continue // this writer has no such step
				}
				n++
				what := fmt.Sprintf("%s with %v at %s", writer, fault, step)
				wantErr(t, what, err, errnoOf(fault))
				want := "old content"
				if step == OpSyncDir && !strings.HasSuffix(writer, "new") && writer != "WriteExcl" {
					want = "new content"
				}
				if got := content(t, base, "f"); got != want {
					t.Errorf("%s: content %q", what, got)
				}
				all := names(t, base)
				delete(all, "f")
				if g, ok := all["g"]; ok && step == OpSyncDir && content(t, base, g.Name) == "new content" {
					delete(all, "g")
				}
				if len(all) != 0 {
					t.Errorf("%s: left %v", what, all)
				}
				if syncs > 1 {
					t.Errorf("%s: flushed %d times", what, syncs)
				}
			}
		}
	}
	t.Logf("%d faults", n)
	if n < 100 {
		t.Error("too few faults were hit")
	}
}

func errnoOf(err error) error {
	var short *ShortWrite
	if errors.As(err, &short) {
		return short.Err
	}
	return err
}

// NFS: the server did it and the answer is an error.
func TestRenameDoneButDenied(t *testing.T) {
	for _, lie := range []error{unix.EIO, unix.ENOENT, unix.EEXIST} {
		d := testDir(t)
		liar := HookedAfter(d, func(op Op, err error) error {
			if (op.Op == OpRename || op.Op == OpRenameExcl) && err == nil {
				return lie
			}
			return err
		})
		c, counts := Counting(liar)
		must(t, WriteFile(c, "f", []byte("x"), 0o600))
		must(t, WriteExcl(c, "g", []byte("y"), 0o600))
		if counts.Of(OpSyncDir) != 2 {
			t.Error("what was done was not flushed")
		}
		if content(t, d, "f") != "x" || content(t, d, "g") != "y" || len(names(t, d)) != 2 {
			t.Errorf("%v", names(t, d))
		}
	}
	// Linked, and the answer lost: both names are there.
	d := testDir(t)
	half := Hooked(d, func(op Op) error {
		if op.Op == OpRenameExcl {
			must(t, d.Link(op.Name, d, op.NewName))
			return unix.EEXIST
		}
		return nil
	})
	must(t, WriteExcl(half, "f", []byte("x"), 0o600))
	if content(t, d, "f") != "x" || len(names(t, d)) != 1 {
		t.Errorf("%v", names(t, d))
	}
	// Another's file of another content is not taken for one's own.
	other := Hooked(d, func(op Op) error {
		if op.Op == OpRename {
			must(t, d.Remove(op.Name))
			return unix.ENOENT
		}
		return nil
	})
	wantErr(t, "temporary file gone", WriteFile(other, "f", []byte("z"), 0o600), fs.ErrNotExist)
}

func TestReplaceFileKeeps(t *testing.T) {
	d := testDir(t)
	must(t, ReplaceFile(d, "f", []byte("1"), 0o600))
	must(t, d.Chmod("f", 0o664))
	group := os.Getgid()
	if os.Geteuid() == 0 {
		group = nobody
		must(t, os.Chown(d.Path()+"/f", -1, group))
	}
	old := umask(0o077)
	err := ReplaceFile(d, "f", []byte("2"), 0o600)
	umask(old)
	must(t, err)
	info, err := d.Stat("f")
	if err != nil || info.Mode != 0o664 || info.GID != uint32(group) || content(t, d, "f") != "2" {
		t.Errorf("%+v, %v", info, err)
	}
	defer func(f func() int) { geteuid = f }(geteuid)
	geteuid = func() int { return os.Geteuid() + 1 }
	err = ReplaceFile(d, "f", []byte("3"), 0o600)
	wantErr(t, "another's file", err, ErrUnsafe)
	if content(t, d, "f") != "2" || len(names(t, d)) != 1 {
		t.Error("it was written")
	}
}

// Many write one name, many read it: never a part, never nothing.
func TestReadersSeeWholeFiles(t *testing.T) {
	d := testDir(t)
	body := func(i int) []byte { return []byte(strings.Repeat(string(rune('a'+i)), 10_000)) }
	must(t, WriteFile(d, "f", body(0), 0o600))
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 100 {
				if err := WriteFile(d, "f", body(i), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b, _, err := d.ReadFile("f", 1<<20)
				if err != nil || len(b) != 10_000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if len(names(t, d)) != 1 {
		t.Errorf("left: %v", names(t, d))
	}
}

func TestTempNames(t *testing.T) {
	for name, want := range map[string]bool{
		TempName("t1.json"): true, TempName(""): true, TempName(strings.Repeat("é", 300)): true, TempName("a/b\x00c"): true,
		".heartbeat": false, ".queue.lock": false, ".tmp~x": false, ".tmp~x~short": false, ".tmp~x~0123456789ABCDEF": false,
		"tmp~x~0123456789abcdef": false, ".tmp~0123456789abcdefg": false, "x.json": false, "": false,
	} {
		if IsTemp(name) != want {
			t.Errorf("IsTemp(%q) = %v", name, !want)
		}
		if want && (CheckName(name) != nil || len(name) > 255 || !strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".json")) {
			t.Errorf("%q", name)
		}
	}
	seen := map[string]bool{}
	for range 10_000 {
		seen[TempName("x")] = true
	}
	if len(seen) != 10_000 {
		t.Error("names repeat")
	}
	d := testDir(t)
	taken := 0
	f, _, err := CreateTemp(Hooked(d, func(op Op) error {
		if taken++; taken <= 2 {
			return fs.ErrExist
		}
		return nil
	}), "x", 0o600)
	must(t, err)
	must(t, f.Close())
}

func TestCleanTemps(t *testing.T) {
	d := testDir(t)
	now := time.Now()
	oldTemp, newTemp, dirTemp := TempName("old"), TempName("new"), TempName("dir")
	for _, name := range []string{oldTemp, newTemp, "t1.json", ".heartbeat"} {
		put(t, d, name, "")
		if name != newTemp {
			must(t, d.Chtimes(name, now.Add(-2*time.Hour)))
		}
	}
	must(t, d.Mkdir(dirTemp, 0o700))
	// A changed status counts as well: an import may set old times.
	n, err := CleanTemps(d, time.Hour, now)
	if n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	n, err = CleanTemps(d, time.Hour, now.Add(90*time.Minute))
	if n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	left := names(t, d)
	for _, name := range []string{"t1.json", ".heartbeat", dirTemp} {
		if _, ok := left[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
	// Goes on past what it cannot remove; gone already is fine.
	for range 3 {
		put(t, d, TempName("x"), "")
	}
	failed := 0
	n, err = CleanTemps(Hooked(d, func(op Op) error {
		if op.Op == OpRemove {
			if failed++; failed == 1 {
				return unix.EACCES
			} else if failed == 2 {
				must(t, d.Remove(op.Name))
			}
		}
		return nil
	}), time.Hour, now.Add(24*time.Hour))
	wantErr(t, "clean", err, unix.EACCES)
	if n != 1 || failed != 3 {
		t.Errorf("%d removed, %d tried", n, failed)
	}
}

func TestSyncFiles(t *testing.T) {
	for _, n := range []int{0, 1, syncFSFrom - 1, syncFSFrom, 40} {
		d, c := Counting(testDir(t))
		var files []File
		for i := range n {
			f, err := d.Create(fmt.Sprint(i), 0o600)
			must(t, err)
			defer f.Close()
			files = append(files, f)
		}
		must(t, SyncFiles(d, files))
		want := [2]int{n, 0}
		if n >= syncFSFrom {
			want = [2]int{0, 1}
		}
		if got := [2]int{c.Of(OpSync), c.Of(OpSyncFS)}; got != want {
			t.Errorf("%d files: %v", n, got)
		}
		c.Reset()
		must(t, SyncDirs(d, d, d))
		if c.Of(OpSyncDir) != 1 {
			t.Errorf("one folder three times: %d flushes", c.Of(OpSyncDir))
		}
		broken := Hooked(d, func(Op) error { return unix.EIO })
		wantErr(t, "SyncDirs", SyncDirs(d, broken), unix.EIO)
	}
	// A kernel whose syncfs says yes to everything.
	defer func(f func() bool) { syncfsTells = f }(syncfsTells)
	syncfsTells = func() bool { return false }
	d, c := Counting(testDir(t))
	var files []File
	for i := range 20 {
		f, err := d.Create(fmt.Sprint(i), 0o600)
		must(t, err)
		defer f.Close()
		files = append(files, f)
	}
	must(t, SyncFiles(d, files))
	if c.Of(OpSync) != 20 || c.Of(OpSyncFS) != 0 {
		t.Errorf("%v", c.All())
	}
	if !kernelAtLeast(2, 6) || kernelAtLeast(999, 0) {
		t.Error("kernel version")
	}
}

// Stand-in for NFS, which refuses RENAME_NOREPLACE.
func TestRenameExclFallback(t *testing.T) {
	asked := 0
	defer func(f func(int, string, int, string) error) { renameNoReplace = f }(renameNoReplace)
	for _, refusal := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP} {
		asked = 0
		renameNoReplace = func(int, string, int, string) error { asked++; return refusal }
		d := testDir(t)
		put(t, d, "a", "1")
		put(t, d, "b", "2")
		must(t, d.Mkdir("sub", 0o700))
		sub, err := d.OpenDir("sub")
		must(t, err)
		defer sub.Close()
		wantErr(t, "taken", d.RenameExcl("a", d, "b"), fs.ErrExist)
		wantErr(t, "missing", d.RenameExcl("none", d, "c"), fs.ErrNotExist)
		if content(t, d, "a") != "1" || content(t, d, "b") != "2" {
			t.Error("changed")
		}
		must(t, d.RenameExcl("a", sub, "a"))
		if ok, _ := d.Exists("a"); ok || content(t, sub, "a") != "1" {
			t.Error("not moved")
		}
		// It is remembered; but a folder's refusal is not.
		before := asked
		must(t, d.RenameExcl("b", sub, "b"))
		if asked != before {
			t.Error("asked again")
		}
		err = sub.RenameExcl("nothing", d, "x")
		wantErr(t, "missing", err, fs.ErrNotExist)
		must(t, d.Mkdir("dir", 0o700))
		if err := sub.Mkdir("dir", 0o700); err != nil {
			t.Error(err)
		}
		if err := sub.RenameExcl("dir", d, "dir2"); !errors.Is(err, refusal) {
			t.Errorf("a folder: %v", err)
		}
	}
	// Two who race for one name: one wins, whole.
	renameNoReplace = func(int, string, int, string) error { return unix.EINVAL }
	d := testDir(t)
	for round := range 200 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for i := range 4 {
			from, to := fmt.Sprintf("from-%d-%d", round, i), fmt.Sprintf("to-%d", round)
			put(t, d, from, from)
			wg.Go(func() {
				err := d.RenameExcl(from, d, to)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Fatalf("%d won", won)
		}
	}
	kind, err := Probe(d)
	if err != nil || kind.RenameExcl {
		t.Errorf("%+v, %v", kind, err)
	}
}
