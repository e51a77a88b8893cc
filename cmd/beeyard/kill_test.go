package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"beeyard"
)

// TestWorkersAndHandlersKilledAtRandom: nothing is lost, each task ends with
// one record, and nothing runs again more often than something was killed.
func TestWorkersAndHandlersKilledAtRandom(t *testing.T) {
	const workers = 8
	tasks, kills := 2000, 200
	if nightly() {
		tasks, kills = 20000, 2000
	}
	r := makeRun(t, numbered(tasks)...)
	ran := filepath.Join(t.TempDir(), "ran")
	handler := filepath.Join(t.TempDir(), "handler.sh")
	must(t, os.WriteFile(handler, []byte("#!/bin/sh\necho $BEEYARD_TASK_ID >> "+ran+"\necho out of $BEEYARD_TASK_ID > $BEEYARD_ARTIFACT_PATH\nsleep 0.02\n"), 0o700))
	bin := binary(t)
	type proc struct {
		cmd  *exec.Cmd
		end  chan error
		errs *bytes.Buffer
	}
	start := func(n int) *proc {
		p := &proc{end: make(chan error, 1), errs: &bytes.Buffer{}}
		p.cmd = exec.CommandContext(testContext(t), bin, "work", "--run", r.Location(), "--worker-id", fmt.Sprintf("w%d", n),
			"--handler", handler, "--until-empty", "--poll-interval", "200ms", "--backoff", "1ms", "--max-backoff", "1ms",
			"--max-attempts", "100000", "--max-deaths", "100000", "-q")
		p.cmd.Stderr = p.errs
		must(t, p.cmd.Start())
		go func() { p.end <- p.cmd.Wait() }()
		return p
	}
	var procs [workers]*proc
	for n := range workers {
		procs[n] = start(n)
	}
	done := func() int {
		names, err := os.ReadDir(filepath.Join(r.Location(), "done"))
		must(t, err)
		return len(names)
	}
	rnd := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	killed, handlers := 0, 0
	end := time.Now().Add(testBound)
	for killed < kills {
		if time.Now().After(end) {
			t.Fatalf("only %d kills", killed)
		}
		// Spread over the work: the k-th kill comes when its share is done.
		if done() < killed*tasks*9/10/kills {
			time.Sleep(2 * time.Millisecond)
			continue
		}
		n := rnd.IntN(workers)
		p := procs[n]
		if done() == tasks {
			t.Fatalf("all done after only %d kills: the handlers are too fast for this test", killed)
		}
		if pid := childOf(p.cmd.Process.Pid); killed%4 == 3 && pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
			handlers++
			continue
		}
		if p.cmd.Process.Kill() != nil {
			procs[n] = start(n)
			continue
		}
		<-p.end
		killed++
		procs[n] = start(n)
	}
	for n, p := range procs {
		if err := <-p.end; err != nil {
			t.Fatalf("worker %d: %v: %s", n, err, p.errs)
		}
	}
	counts, err := r.Counts(testContext(t))
	must(t, err)
	if counts.ByState[beeyard.StateDone] != tasks || counts.Open() != 0 {
		t.Fatalf("%+v", counts)
	}
	for i := range tasks {
		v, err := r.Get(testContext(t), fmt.Sprintf("t%05d", i))
		must(t, err)
		settled := 0
		for _, a := range v.Task.Ext.Attempts {
			if a.Outcome == beeyard.OutcomeDone {
				settled++
			}
		}
		if settled != 1 {
			t.Fatalf("%s was settled as done %d times", v.Task.ID, settled)
		}
		out, err := os.ReadFile(filepath.Join(r.Location(), "artifacts", v.Task.ID+".md"))
		if err != nil || string(out) != "out of "+v.Task.ID+"\n" {
			t.Fatalf("%s: artifact %q, %v", v.Task.ID, out, err)
		}
	}
	log, err := os.ReadFile(ran)
	must(t, err)
	again := bytes.Count(log, []byte("\n")) - tasks
	if again > killed {
		t.Fatalf("%d re-runs for %d kills", again, killed)
	}
	cp, err := r.Checkpoint(testContext(t))
	must(t, err)
	if len(cp.CompletedTasks) != tasks {
		t.Fatalf("completed_tasks has %d of %d", len(cp.CompletedTasks), tasks)
	}
	t.Logf("MEASURED %d tasks, %d kills (%d of handlers): 0 lost, one record each, %d re-runs", tasks, killed, handlers, again)
}

// childOf is some child of a process, 0 when it has none.
func childOf(pid int) int {
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		return 0
	}
	for _, l := range lists {
		out, err := os.ReadFile(l)
		if err != nil {
			continue // a thread that has ended
		}
		for _, f := range strings.Fields(string(out)) {
			if n, err := strconv.Atoi(f); err == nil {
				return n
			}
		}
	}
	return 0
}
