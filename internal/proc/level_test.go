package proc

import (
	"strings"
	"testing"
)

func TestLevel(t *testing.T) {
	level, reason := Level()
	switch level {
	case LevelCgroup, LevelSubreaper, LevelGroup:
	default:
		t.Errorf("level %q", level)
	}
	if reason == "" {
		t.Error("no reason")
	}
	t.Logf("%s: %s", level, reason)
	if c := newController("group"); c.level != LevelSubreaper || !strings.Contains(c.reason, LevelVar) {
		t.Errorf("forced: %q, %q", c.level, c.reason)
	}
	c := newController("best")
	if _, err := c.start(t.Context(), sh("exit 0")); err == nil || !strings.Contains(err.Error(), "want cgroup, group or auto") {
		t.Errorf("unknown level: %v", err)
	}
}

func TestFindCgroup(t *testing.T) {
	mountinfo := `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw
42 31 0:38 /a\040b /mnt/c\134d rw - cgroup2 none rw,nsdelegate
broken line - cgroup2
`
	got := cgroup2Mounts(mountinfo)
	want := []mount{{"/", "/sys/fs/cgroup/unified"}, {"/a b", `/mnt/c\d`}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("mounts %v, want %v", got, want)
	}
	if got, ok := unifiedPath("9:name=systemd:/x\n4:memory:/y\n0::/user.slice/a:b\n"); !ok || got != "/user.slice/a:b" {
		t.Errorf("path %q, %v", got, ok)
	}
	if _, ok := unifiedPath("4:memory:/y\n"); ok {
		t.Error("found a path where there is none")
	}
}

func TestOwnerNames(t *testing.T) {
	id := Identity{Namespace: 4026531836, PID: 17, Start: 1234567}
	if got, ok := parseOwner(ownerPrefix(id) + "9"); !ok || got != id {
		t.Errorf("got %+v, %v; want %+v", got, ok, id)
	}
	for _, name := range []string{"", "beeyard", "beeyard.1.2.3", "beeyard.slice", "system.slice", "xbeeyard.1.2.3.4", "beeyard.1.-2.3.4"} {
		if got, ok := parseOwner(name); ok {
			t.Errorf("%q is taken for the cgroup of %+v", name, got)
		}
	}
}

// Cgroups are used again, but not one that was killed, and none is left.
func TestCgroupsAreReused(t *testing.T) {
	c := newController("cgroup")
	if c.forced != nil {
		t.Skipf("NOT TESTED HERE: %v", c.forced)
	}
	for range 5 {
		c.mustRun(t, sh("exit 0"))
	}
	if c.cg.made != 1 {
		t.Errorf("%d cgroups made for processes one after another, want 1", c.cg.made)
	}
	p := c.mustStart(t, sh("sleep "+mark()))
	p.Kill()
	waitFor(t, p)
	c.mustRun(t, sh("exit 0"))
	if c.cg.made != 2 {
		t.Errorf("%d cgroups made, want 2: the killed one is spent", c.cg.made)
	}
	before := len(ownCgroups(t, c))
	c.close()
	if left := ownCgroups(t, c); len(left) != before-1 {
		t.Errorf("left behind: %v", left)
	}
}
