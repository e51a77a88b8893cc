package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func ownCgroups(t *testing.T, c *controller) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(c.cg.dir, c.cg.prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func init() {
	// owner starts trees that will not end, says so, and waits to be killed.
	helpers["owner"] = func([]string) int {
		m := os.Getenv("MARK")
		for _, script := range []string{
			"sleep " + m,
			"setsid sh -c 'trap \"\" TERM; sleep " + m + " & wait' & wait",
			"(setsid setsid sleep " + m + " &); sleep " + m,
		} {
			if _, err := Start(context.Background(), sh(script)); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		fmt.Println("ready")
		time.Sleep(time.Hour)
		return 0
	}
}

// What a killed worker leaves is ended by the next; what a live one has is not.
func TestCleanStale(t *testing.T) {
	for _, level := range []string{"cgroup", "group"} {
		t.Run(level, func(t *testing.T) {
			c := newController(level)
			if c.forced != nil {
				t.Skipf("NOT TESTED HERE: %v", c.forced)
			}
			t.Cleanup(c.close)
			start := func() (*exec.Cmd, string) {
				m := mark()
				cmd := exec.Command("/proc/self/exe")
				cmd.Env = asHelper("owner", "MARK="+m, LevelVar+"="+level)
				out := outFile(t)
				cmd.Stdout = out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait(); CleanStale() })
				eventually(t, "owner is ready", func() bool { return content(t, out) == "ready" })
				// The setsid ones fork and exec in their own time.
				eventually(t, "its trees run", func() bool { return len(running(m)) >= 4 })
				return cmd, m
			}
			dead, deadMark := start()
			_, liveMark := start()
			dead.Process.Kill()
			dead.Wait()
			if len(running(deadMark)) == 0 {
				t.Fatal("the trees died with their owner: nothing to test")
			}
			live := len(running(liveMark))
			n, err := CleanStale()
			if err != nil {
				t.Error(err)
			}
			if n < 4 {
				t.Errorf("%d killed, want at least 4", n)
			}
			noneLeft(t, deadMark)
			if got := len(running(liveMark)); got != live {
				t.Errorf("%d of a live owner's %d processes are left", got, live)
			}
			if level == "cgroup" {
				pattern := fmt.Sprintf("%s*.%d.*", stalePrefix, dead.Process.Pid)
				if left, _ := filepath.Glob(filepath.Join(c.cg.dir, pattern)); len(left) > 0 {
					t.Errorf("cgroups left: %v", left)
				}
			}
			if n, err := CleanStale(); n != 0 || err != nil {
				t.Errorf("a second time: %d, %v", n, err)
			}
		})
	}
}

func TestMarksNest(t *testing.T) {
	env := func(v string) [][]byte { return [][]byte{[]byte("A=b"), []byte(MarkVar + "=" + v)} }
	const outer = "beeyard.1.2.3.4"
	for v, want := range map[string]bool{outer: true, outer + "/beeyard.1.5.6.1": true, outer + "0": false, "beeyard.1.5.6.1": false, "": false} {
		if got := hasMark(env(v), outer); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
	me, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	gone := me
	gone.Start++
	mine, dead := ownerPrefix(me)+"1", ownerPrefix(gone)+"1"
	for v, want := range map[string]bool{mine: false, dead: true, dead + "/" + mine: false, mine + "/" + dead: true, "": false, "x/y": false} {
		if got := staleMark(env(v)); got != want {
			t.Errorf("%s: stale %v, want %v", strings.NewReplacer(mine, "mine", dead, "dead").Replace(v), got, want)
		}
	}
}
