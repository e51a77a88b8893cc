package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemoveAllFollowsNothing(t *testing.T) {
	d := testDir(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/f", []byte("x"), 0o600))
	must(t, os.MkdirAll(d.Path()+"/tree/a/b", 0o700))
	must(t, os.WriteFile(d.Path()+"/tree/a/b/f", nil, 0o600))
	must(t, os.WriteFile(d.Path()+"/tree/.hidden", nil, 0o600))
	must(t, os.Symlink(outside, d.Path()+"/tree/a/link"))
	must(t, os.Symlink(outside+"/f", d.Path()+"/tree/flink"))
	must(t, unix.Mkfifo(d.Path()+"/tree/fifo", 0o600))
	must(t, os.Chmod(d.Path()+"/tree/a/b", 0o500))
	must(t, os.Symlink(outside, d.Path()+"/toplink"))
	n, err := RemoveTree(context.Background(), d, "tree")
	if n != 8 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	must(t, RemoveAll(d, "toplink"))
	must(t, RemoveAll(d, "never-there"))
	if len(names(t, d)) != 0 {
		t.Errorf("left: %v", names(t, d))
	}
	if b, err := os.ReadFile(outside + "/f"); err != nil || string(b) != "x" {
		t.Errorf("outside: %q, %v", b, err)
	}
}

func TestRemoveAllOfAVeryDeepTree(t *testing.T) {
	d := testDir(t)
	at := d
	for range 500 {
		must(t, at.Mkdir("d", 0o700))
		next, err := at.OpenDir("d")
		must(t, err)
		put(t, next, "f", "")
		if at != d {
			must(t, at.Close())
		}
		at = next
	}
	must(t, at.Close())
	open, most := 0, 0
	hooked := WithHooks(d, Hooks{After: func(op Op, err error) error {
		switch {
		case op.Op == OpOpenDir && err == nil:
			open++
		case op.Op == OpCloseDir:
			open--
		}
		most = max(most, open)
		return err
	}})
	must(t, RemoveAll(hooked, "d"))
	if len(names(t, d)) != 0 || open != 0 {
		t.Errorf("left: %v, %d open", names(t, d), open)
	}
	if most > maxDepth+1 {
		t.Errorf("%d folders open at once", most)
	}
}

func TestRemoveTreeStops(t *testing.T) {
	d := testDir(t)
	must(t, d.Mkdir("t", 0o700))
	sub, err := d.OpenDir("t")
	must(t, err)
	defer sub.Close()
	for i := range 20 {
		put(t, sub, fmt.Sprint(i), "")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("interrupted")
	removed := 0
	n, err := RemoveTree(ctx, HookedAfter(d, func(op Op, err error) error {
		if op.Op == OpRemove {
			if removed++; removed == 5 {
				cancel(cause)
			}
		}
		return err
	}), "t")
	wantErr(t, "stopped", err, cause)
	if n != 5 || len(names(t, sub)) != 15 {
		t.Errorf("%d removed, %d left", n, len(names(t, sub)))
	}
	// Another remover at the same tree is no error.
	n, err = RemoveTree(context.Background(), Hooked(d, func(op Op) error {
		if op.Op == OpRemove && removed < 10 {
			removed++
			return sub.Remove(op.Name)
		}
		return nil
	}), "t")
	must(t, err)
	if ok, err := d.Exists("t"); ok || err != nil || n == 0 {
		t.Errorf("%v, %v, %d", ok, err, n)
	}
	put(t, d, "f", "")
	wantErr(t, "refused", RemoveAll(Hooked(d, func(op Op) error {
		if op.Op == OpRemove {
			return fs.ErrPermission
		}
		return nil
	}), "f"), fs.ErrPermission)
}
