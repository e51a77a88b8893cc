package durable

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// memFile hides that a File is the operating system's.
type memFile struct{ File }

func TestMmap(t *testing.T) {
	d := testDir(t)
	want := strings.Repeat("0123456789", 5000)
	put(t, d, "index", want)
	put(t, d, "empty", "")
	for name, wrap := range map[string]func(File) File{
		"mapped": func(f File) File { return f },
		"hooked": func(f File) File { return f },
		"read":   func(f File) File { return memFile{f} },
	} {
		from := d
		if name == "hooked" {
			from = Hooked(d, nil)
		}
		f, err := from.Open("index")
		must(t, err)
		b, unmap, err := Mmap(wrap(f))
		must(t, err)
		must(t, f.Close())
		must(t, WriteFile(d, "index", []byte("replaced"), 0o600)) // does not touch the mapped one
		if string(b) != want {
			t.Errorf("%s: %d bytes", name, len(b))
		}
		unmap()
		unmap()
		must(t, WriteFile(d, "index", []byte(want), 0o600))
	}
	f, err := d.Open("empty")
	must(t, err)
	b, unmap, err := Mmap(f)
	if len(b) != 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	unmap()
	must(t, f.Close())
	if _, _, err := Mmap(f); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	must(t, os.Truncate(d.Path()+"/empty", 1<<32)) // sparse
	f, err = d.Open("empty")
	must(t, err)
	defer f.Close()
	_, _, err = Mmap(f)
	wantErr(t, "4 GiB", err, ErrTooLarge)
}
