package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestSymlinks(t *testing.T) {
	path := t.TempDir()
	d, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := Symlink("/some/where", d, "link"); err != nil {
		t.Fatal(err)
	}
	if to, err := ReadLink(d, "link"); err != nil || to != "/some/where" {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	if to, err := os.Readlink(filepath.Join(path, "link")); err != nil || to != "/some/where" {
		t.Errorf("the system says that it leads to %q (%v)", to, err)
	}
	if err := Symlink("other", d, "link"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second link of the name: %v", err)
	}
	if err := Symlink("x", d, "a/b"); !errors.Is(err, ErrName) {
		t.Errorf("a name with a slash: %v", err)
	}
	if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLink(d, "file"); err == nil {
		t.Error("a file was read as a link")
	}
	if _, err := ReadLink(d, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link that is not there: %v", err)
	}
	if err := Symlink("x", Hooked(d, func(Op) error { return nil }), "through"); err != nil {
		t.Errorf("through a layer: %v", err)
	}
}
