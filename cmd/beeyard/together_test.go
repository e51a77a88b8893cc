package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"beeyard"
)

// together starts one process for each command line, lets all go at the same
// moment, and returns how each ended.
func together(t *testing.T, env map[string]string, lines [][]string) []answer {
	t.Helper()
	bin := binary(t)
	type racer struct {
		cmd       *exec.Cmd
		gate      io.WriteCloser
		out, errs bytes.Buffer
	}
	racers := make([]*racer, len(lines))
	for i, args := range lines {
		// A shell that waits at the gate and then becomes the program.
		r := &racer{cmd: exec.CommandContext(testContext(t), "/bin/sh", append([]string{"-c", `read _; exec "$0" "$@"`, bin}, args...)...)}
		for k, v := range env {
			r.cmd.Env = append(r.cmd.Env, k+"="+v)
		}
		r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errs
		var err error
		r.gate, err = r.cmd.StdinPipe()
		must(t, err)
		must(t, r.cmd.Start())
		racers[i] = r
	}
	for _, r := range racers {
		must(t, r.gate.Close())
	}
	answers := make([]answer, len(racers))
	for i, r := range racers {
		_ = r.cmd.Wait() // the exit code tells
		answers[i] = answer{r.cmd.ProcessState.ExitCode(), r.out.String(), r.errs.String()}
	}
	return answers
}

// TestSameIDFromTwentyProcesses: one enqueues it, nineteen are refused.
func TestSameIDFromTwentyProcesses(t *testing.T) {
	y := newYard(t)
	var lines [][]string
	for i := range 20 {
		lines = append(lines, []string{"enqueue", "--id", "same", "--type", "x", "--payload", fmt.Sprint(i)})
	}
	won := -1
	for i, a := range together(t, y.env(), lines) {
		switch {
		case a.code == exitConflict:
		case a.code == exitOK && won < 0:
			won = i
		default:
			t.Errorf("process %d: exit %d: %s%s", i, a.code, a.stdout, a.stderr)
		}
	}
	a := call{env: y.env()}.run(t, "show", "same", "--json")
	v, err := oneJSON([]byte(a.stdout))
	must(t, err)
	if p, _ := at(v, "payload"); p != fmt.Sprint(won) {
		t.Errorf("payload is %s, process %d was told that it enqueued", p, won)
	}
}

// TestCycleFromThreeProcesses: a → b → c → a, each from its own process at the
// same moment: at least one is refused with the path, and no cycle is left.
func TestCycleFromThreeProcesses(t *testing.T) {
	first := newYard(t)
	for round := range 8 {
		y := first.copy(t)
		answers := together(t, y.env(), [][]string{
			{"enqueue", "--id", "a", "--type", "x", "--depends-on", "b"},
			{"enqueue", "--id", "b", "--type", "x", "--depends-on", "c"},
			{"enqueue", "--id", "c", "--type", "x", "--depends-on", "a"},
		})
		refused := 0
		for _, a := range answers {
			switch {
			case a.code == exitConflict && strings.Contains(a.stderr, "→"):
				refused++
			case a.code != exitOK:
				t.Errorf("exit %d: %s", a.code, a.stderr)
			}
		}
		if refused != 1 {
			t.Errorf("round %d: %d of three were refused", round, refused)
		}
		if a := (call{env: y.env()}).run(t, "doctor", "--json"); strings.Contains(a.stdout, "dependency-cycle") {
			t.Errorf("round %d: a cycle is left: %s", round, a.stdout)
		}
	}
}

// TestNoUpdateOfTheCheckpointIsLost: 40 completions and 40 checkpoint writes at
// once: all ids and all keys are there; a write on an old revision is refused.
func TestNoUpdateOfTheCheckpointIsLost(t *testing.T) {
	const n = 40
	r := makeRun(t, numbered(n)...)
	env := map[string]string{"BEEYARD_RUN": r.Location(), "HOME": t.TempDir()}
	c := call{env: env}
	var lines [][]string
	for i := range n {
		a := c.run(t, "claim", "--worker-id", fmt.Sprintf("w%d", i))
		v, err := oneJSON([]byte(a.stdout))
		must(t, err)
		id, err := at(v, "task_id")
		must(t, err)
		token, err := at(v, "token")
		must(t, err)
		lines = append(lines, []string{"complete", "--task", id, "--token", token},
			[]string{"checkpoint", "write", "--metadata", fmt.Sprintf(`{"key%d":%d}`, i, i)})
	}
	before, err := r.Checkpoint(testContext(t))
	must(t, err)
	for i, a := range together(t, env, lines) {
		if a.code != exitOK {
			t.Errorf("%q: exit %d: %s", lines[i], a.code, a.stderr)
		}
	}
	// The file itself, not what a reader joins from done/.
	a := c.run(t, "compat", "swarm-cli", "status-show", "--run-dir", r.Location())
	v, err := oneJSON([]byte(a.stdout))
	must(t, err)
	if got, err := at(v, "checkpoint.completed_tasks.len"); err != nil || got != fmt.Sprint(n) {
		t.Errorf("%s of %d completed tasks are listed (%v)", got, n, err)
	}
	if got, err := at(v, "metadata.len"); err != nil || got != fmt.Sprint(n) {
		t.Errorf("%s of %d keys are there (%v)", got, n, err)
	}
	if a := c.run(t, "checkpoint", "write", "--summary", "late", "--if-revision", before.Revision); a.code != exitConflict {
		t.Errorf("a write on an old revision: exit %d", a.code)
	}
}

// TestReadyViewsAgree: on a random graph, what ls calls ready, what why says and
// what claim takes are the same, and stay so while it is worked on.
func TestReadyViewsAgree(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewSource(seed)) //nolint:gosec // a test's graph
	const n = 200
	var tasks []*beeyard.Task
	for i := range n {
		task := &beeyard.Task{ID: fmt.Sprintf("t%03d", i), Type: "t"}
		for range rnd.Intn(4) {
			if i > 0 {
				task.DependsOn = append(task.DependsOn, fmt.Sprintf("t%03d", rnd.Intn(i)))
			}
		}
		switch rnd.Intn(12) {
		case 0:
			task.Ext.Hold = &beeyard.Hold{By: "test"}
		case 1:
			task.Ext.NotBefore = "2999-01-01T00:00:00Z"
		case 2:
			task.DependsOn = append(task.DependsOn, "ghost")
		case 3:
			task.Ext.Priority = rnd.Intn(5)
		}
		tasks = append(tasks, task)
	}
	r := makeRun(t, tasks...)
	c := call{env: map[string]string{"BEEYARD_RUN": r.Location(), "HOME": t.TempDir()}}
	type listed struct {
		Tasks []struct {
			ID    string `json:"task_id"`
			State string `json:"state"`
		} `json:"tasks"`
	}
	for step := range 60 {
		var ready listed
		must(t, json.Unmarshal([]byte(c.run(t, "ls", "--json", "--limit", "1000", "--state", "ready").stdout), &ready))
		var byList []string
		for _, v := range ready.Tasks {
			byList = append(byList, v.ID)
		}
		if step%20 == 0 {
			var all listed
			must(t, json.Unmarshal([]byte(c.run(t, "ls", "--json", "--limit", "1000").stdout), &all))
			var byState []string
			for _, v := range all.Tasks {
				why, err := oneJSON([]byte(c.run(t, "why", v.ID, "--json").stdout))
				must(t, err)
				if state, _ := at(why, "state"); state != v.State {
					t.Errorf("step %d: %s is %s to ls and %s to why", step, v.ID, v.State, state)
				}
				if v.State == "ready" {
					byState = append(byState, v.ID)
				}
			}
			if !slices.Equal(byList, byState) {
				t.Errorf("step %d: ls --state ready and ls differ:\n%v\n%v", step, byList, byState)
			}
		}
		claim, err := oneJSON([]byte(c.run(t, "claim", "--worker-id", "w", "--json").stdout))
		must(t, err)
		if len(byList) == 0 {
			if claim != nil {
				t.Errorf("step %d: ls says that nothing is ready, claim took %v", step, claim)
			}
			break
		}
		id, err := at(claim, "task_id")
		must(t, err)
		if id != byList[0] {
			t.Errorf("step %d: claim took %s, the first in ls is %s", step, id, byList[0])
		}
		token, err := at(claim, "token")
		must(t, err)
		args := []string{"complete", "--task", id, "--token", token}
		if rnd.Intn(6) == 0 {
			args = append(args, "--failure", "--final")
		}
		if a := c.run(t, args...); a.code != 0 {
			t.Fatalf("%q: %s", args, a.stderr)
		}
	}
}
