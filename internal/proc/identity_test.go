package proc

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestIdentity(t *testing.T) {
	me, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if me.PID != os.Getpid() || me.Start == 0 || len(me.Boot) != 36 || me.Host == "" || me.Namespace == 0 {
		t.Errorf("self is %+v", me)
	}
	other := func(f func(*Identity)) Identity { id := me; f(&id); return id }
	for _, tc := range []struct {
		name string
		id   Identity
		want State
	}{
		{"self", me, Running},
		{"no namespace known", other(func(i *Identity) { i.Namespace = 0 }), Running},
		{"pid reused", other(func(i *Identity) { i.Start++ }), Gone},
		{"no such pid", other(func(i *Identity) { i.PID = 1 << 30 }), Gone},
		{"earlier boot", other(func(i *Identity) { i.Boot = strings.Repeat("0", 36) }), Gone},
		{"other host", other(func(i *Identity) { i.Boot, i.Host = strings.Repeat("0", 36), "elsewhere" }), Unknown},
		{"no host", other(func(i *Identity) { i.Boot, i.Host = strings.Repeat("0", 36), "" }), Unknown},
		{"other container", other(func(i *Identity) { i.Namespace++ }), Unknown},
		{"nothing", Identity{}, Unknown},
	} {
		if got := Look(tc.id); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
		if got := Alive(tc.id); got != (tc.want == Running) {
			t.Errorf("%s: alive is %v", tc.name, got)
		}
	}
}

func TestIdentityOfAChild(t *testing.T) {
	c := newController("group")
	t.Cleanup(c.close)
	p := c.mustStart(t, sh("exec sleep "+mark()))
	id, err := IdentityOf(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if !Alive(id) || Stopped(p.PID()) {
		t.Error("a sleeping child is not alive, or stopped")
	}
	if err := unix.Kill(p.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopped", func() bool { return Stopped(p.PID()) })
	if !Alive(id) {
		t.Error("a stopped process is not alive")
	}
	if err := unix.Kill(p.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, p)
	if Alive(id) || Look(id) != Gone {
		t.Error("a dead process is alive")
	}
}

func TestKill(t *testing.T) {
	c := newController("group")
	t.Cleanup(c.close)
	p := c.mustStart(t, sh("exec sleep "+mark()))
	id, err := IdentityOf(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	// Named a little wrong, it is another process, which must not be touched.
	other, elsewhere := id, id
	other.Start++
	elsewhere.Namespace++
	if err := Kill(other); err != nil || !Alive(id) {
		t.Errorf("another start: %v, alive %v", err, Alive(id))
	}
	if err := Kill(elsewhere); err == nil || !Alive(id) {
		t.Errorf("another namespace: %v, alive %v", err, Alive(id))
	}
	// A stopped worker is the one that has to be killed.
	if err := unix.Kill(p.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := Kill(id); err != nil || Look(id) != Gone {
		t.Errorf("got %v, and it is %v", err, Look(id))
	}
	if err := Kill(id); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if r := waitFor(t, p); r.Signal != "SIGKILL" {
		t.Errorf("got %+v", r)
	}
}

// A zombie is gone: it holds no lease and writes no file.
func TestZombieIsGone(t *testing.T) {
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := IdentityOf(p.Pid)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "zombie", func() bool { return Look(id) == Gone })
	p.Wait()
}

func TestParseStat(t *testing.T) {
	for _, name := range []string{"sh", "a b", "a) R 1 (b", ")", "("} {
		got, err := parseStat([]byte("42 (" + name + ") S 1 2 3 4 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0"))
		want := stat{pid: 42, ppid: 1, pgid: 2, sid: 3, tty: 4, state: 'S', start: 777}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh", "42 (sh) S", "42 (sh) S x 2 3 4 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777"} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: %+v, want an error", bad, got)
		}
	}
}
