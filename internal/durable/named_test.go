package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadNamed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/f", []byte("12345"), 0o600))
	must(t, os.Symlink("f", dir+"/link"))
	for _, path := range []string{dir + "/f", dir + "/link"} {
		if b, err := ReadNamed(path, 5); string(b) != "12345" || err != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		_, err := ReadNamed(path, 4)
		wantErr(t, "too large", err, ErrTooLarge)
	}
	_, err := ReadNamed("/dev/zero", 1000)
	wantErr(t, "endless", err, ErrTooLarge)
	must(t, unix.Mkfifo(dir+"/fifo", 0o600))
	go func() { // ends with the read of its reader
		_ = os.WriteFile(dir+"/fifo", []byte("piped"), 0)
	}()
	if b, err := ReadNamed(dir+"/fifo", 5); string(b) != "piped" || err != nil {
		t.Errorf("pipe: %q, %v", b, err)
	}
	f, err := OpenNamed(dir + "/link")
	must(t, err)
	must(t, f.Close())
	if !HasNamed(dir+"/link") || HasNamed(dir+"/none") || !IsFolder(dir) || IsFolder(dir+"/f") {
		t.Error("HasNamed or IsFolder")
	}
}

func TestWriteNamed(t *testing.T) {
	dir := t.TempDir()
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	read := func(name string) string {
		b, err := os.ReadFile(dir + "/" + name)
		must(t, err)
		return string(b)
	}
	must(t, WriteNamed(dir+"/f", 0o600, false, text("1")))
	wantErr(t, "taken", WriteNamed(dir+"/f", 0o600, false, text("2")), fs.ErrExist)
	must(t, os.Symlink("f", dir+"/link"))
	long := strings.Repeat("x", 200<<10)
	must(t, WriteNamed(dir+"/link", 0o600, true, text(long)))
	if info, err := os.Lstat(dir + "/link"); err != nil || info.Mode().Type() != fs.ModeSymlink || read("f") != long {
		t.Errorf("a link was replaced: %v, %v", info, err)
	}
	broken := errors.New("source failed")
	for _, replace := range []bool{false, true} {
		name := map[bool]string{false: "g", true: "f"}[replace]
		err := WriteNamed(dir+"/"+name, 0o600, replace, func(w io.Writer) error {
			if _, err := io.WriteString(w, "half"); err != nil {
				return err
			}
			return broken
		})
		wantErr(t, name, err, broken)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 || read("f") != long {
		t.Errorf("left: %v, %v", list, err)
	}
	wantErr(t, "no such folder", WriteNamed(dir+"/no/f", 0o600, true, text("1")), fs.ErrNotExist)
	if err := WriteNamed(dir, 0o600, true, text("1")); err == nil {
		t.Error("a folder was replaced")
	}
	must(t, WriteNamed("/dev/null", 0o600, true, text("1")))
	must(t, WriteNamed("/dev/null", 0o600, false, text("1")))
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Errorf("/dev/null became %v, %v", info, err)
	}
	// Taken between the look and the move.
	err := WriteNamed(dir+"/h", 0o600, false, func(w io.Writer) error { return os.WriteFile(dir+"/h", []byte("theirs"), 0o600) })
	wantErr(t, "taken meanwhile", err, fs.ErrExist)
	if read("h") != "theirs" {
		t.Error("replaced")
	}
}
