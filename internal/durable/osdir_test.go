package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// testDir is an open folder made for one test.
func testDir(t testing.TB) Dir {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func put(t testing.TB, d Dir, name, data string) {
	t.Helper()
	f, err := d.Create(name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.Write([]byte(data)); err != nil || n != len(data) {
		t.Fatalf("write: %d, %v", n, err)
	}
}

func content(t testing.TB, d Dir, name string) string {
	t.Helper()
	b, _, err := d.ReadFile(name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t testing.TB, d Dir) map[string]Entry {
	t.Helper()
	all := map[string]Entry{}
	if err := d.Each(func(e Entry) bool { all[e.Name] = e; return true }); err != nil {
		t.Fatal(err)
	}
	return all
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestMoves(t *testing.T) {
	d := testDir(t)
	if err := d.Mkdir("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	sub, err := d.OpenDir("sub")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()

	put(t, d, "a", "1")
	put(t, sub, "b", "2")
	wantErr(t, "RenameExcl onto a name", d.RenameExcl("a", sub, "b"), fs.ErrExist)
	wantErr(t, "Link onto a name", d.Link("a", sub, "b"), fs.ErrExist)
	if content(t, d, "a") != "1" || content(t, sub, "b") != "2" {
		t.Error("a refused move changed something")
	}
	if err := d.Rename("a", sub, "b"); err != nil || content(t, sub, "b") != "1" {
		t.Errorf("rename over: %v", err)
	}
	wantErr(t, "Rename of nothing", d.Rename("a", sub, "b"), fs.ErrNotExist)
	if err := sub.Link("b", d, "c"); err != nil {
		t.Fatal(err)
	}
	// POSIX: both names stay.
	if err := sub.Rename("b", d, "c"); err != nil || content(t, sub, "b") != "1" || content(t, d, "c") != "1" {
		t.Errorf("rename between two names of one file: %v", err)
	}
	if err := d.RenameExcl("c", d, "e"); err != nil {
		t.Error(err)
	}
	info, err := d.Stat("e")
	if err != nil || info.Nlink != 2 || info.Size != 1 || info.Mode != 0o600 || info.Name != "e" {
		t.Errorf("stat: %+v, %v", info, err)
	}
}
