package worker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/worker"
)

// lineHandler is a handler that stays, in the one language that is everywhere.
func lineHandler(t *testing.T, body string) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("SKIPPED: no python3 for a handler that stays")
	}
	path := filepath.Join(t.TempDir(), "handler.py")
	text := "#!/usr/bin/env python3\nimport json, os, sys, time\nfor line in iter(sys.stdin.readline, ''):\n    t = json.loads(line)\n    b = t['beeyard']\n    id = t['task_id']\n" +
		body + "\n    print(json.dumps(a), flush=True)\n"
	must(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func linesConfig(path string, h *heard) worker.Config {
	cfg := config(path, h)
	cfg.Handler = &worker.Lines{Path: path, Env: worker.Environment(os.LookupEnv, nil), Grace: 500 * time.Millisecond, Clock: clock.Real()}
	return cfg
}

func TestLinesHandlerStays(t *testing.T) {
	var tasks []*beeyard.Task
	for i := range 20 {
		tasks = append(tasks, task(fmt.Sprintf("t%02d", i)))
	}
	r := newRun(t, tasks...)
	path := lineHandler(t, `    print("working on", id, file=sys.stderr, flush=True)
    a = {"task_id": id, "exit": 0, "artifact": "pid %d of %s" % (os.getpid(), id)}`)
	sum := work(t, r, linesConfig(path, &heard{}))
	if sum.By[beeyard.OutcomeDone] != 20 {
		t.Fatalf("%+v", sum)
	}
	first, last := strings.Fields(read(t, r, "artifacts/t00.md")), strings.Fields(read(t, r, "artifacts/t19.md"))
	if first[1] != last[1] || last[3] != "t19" {
		t.Fatalf("not one process: %v, %v", first, last)
	}
	if log := read(t, r, "artifacts/t07.log"); log != "working on t07\n" {
		t.Fatalf("log %q", log)
	}
}

func TestLinesHandlerThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		body, reason string
	}{
		"says so":             {`    a = {"task_id": id, "exit": 3, "error": "no luck"}`, "no luck"},
		"dies":                {`    os._exit(4)`, "gone"},
		"answers for another": {`    a = {"task_id": "zzz", "exit": 0}`, "answered for"},
		"answers no JSON":     {"    print('hello', flush=True)\n    a = {}", "not the JSON"},
		"takes too long":      {"    time.sleep(600)", "timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			tk := task("a")
			tk.Ext.Timeout = beeyard.Duration(bound)
			if name == "takes too long" {
				tk.Ext.Timeout = beeyard.Duration(500 * time.Millisecond)
			}
			r := newRun(t, tk, task("b"))
			body := "    if id == 'b':\n        print(json.dumps({'task_id': id, 'exit': 0}), flush=True)\n        continue\n" + c.body
			if !strings.Contains(c.body, "a = ") {
				body += "\n    a = {}"
			}
			work(t, r, linesConfig(lineHandler(t, body), &heard{}))
			if v := view(t, r, "a"); v.State != beeyard.StateFailed {
				t.Fatalf("a is %s", v.State)
			}
			if a := last(t, r, "a"); name != "dies" && !strings.Contains(a.Reason, c.reason) {
				t.Fatalf("reason %q", a.Reason)
			}
			if v := view(t, r, "b"); v.State != beeyard.StateDone {
				t.Fatalf("b is %s: the process must be started again", v.State)
			}
		})
	}
}
