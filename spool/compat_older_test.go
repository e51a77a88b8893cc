package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"beeyard"
)

// olderProgram is a program of the original format, written here from the
// description in ADR 0002: it only renames, looks for *.json directly inside
// pending/ and claimed/<id>/ (hidden names too), takes a directory without a
// fresh .heartbeat for stale at once, and takes no lock but .status.lock.
type olderProgram struct {
	dir string
	// enqueues keeps the reaper's look and its rename together: the window
	// between them, in which an enqueue is overwritten, is the older reaper's own
	// and no matter of ours.
	enqueues *sync.Mutex
}

func (o *olderProgram) path(parts ...string) string {
	return filepath.Join(append([]string{o.dir}, parts...)...)
}

func (o *olderProgram) beat(worker string) error {
	if err := os.MkdirAll(o.path("claimed", worker), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.path("claimed", worker, ".heartbeat"), nil, 0o644)
}

type olderBody struct {
	TaskID    string   `json:"task_id"`
	CreatedAt string   `json:"created_at"`
	DependsOn []string `json:"depends_on"`
}

type olderStatusFile struct {
	SchemaVersion string         `json:"schema_version"`
	RunID         string         `json:"run_id"`
	Checkpoint    map[string]any `json:"checkpoint"`
	Metadata      map[string]any `json:"metadata"`
}

func (o *olderProgram) status() (s olderStatusFile, completed []string, err error) {
	data, err := os.ReadFile(o.path("status.json"))
	if err != nil {
		return s, nil, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, nil, err
	}
	list, _ := s.Checkpoint["completed_tasks"].([]any)
	for _, v := range list {
		id, _ := v.(string)
		completed = append(completed, id)
	}
	return s, completed, nil
}

// claim takes the first task, by name, whose dependencies status.json lists. It
// runs the body that it read before the rename.
func (o *olderProgram) claim(worker string) (*olderBody, error) {
	_, completed, err := o.status()
	if err != nil {
		return nil, err
	}
	names, err := o.json("pending")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := os.ReadFile(o.path("pending", name))
		var b olderBody
		if err != nil || json.Unmarshal(data, &b) != nil ||
			slices.ContainsFunc(b.DependsOn, func(d string) bool { return !slices.Contains(completed, d) }) {
			continue
		}
		if err := os.Rename(o.path("pending", name), o.path("claimed", worker, name)); err == nil {
			return &b, nil
		}
	}
	return nil, nil
}

func (o *olderProgram) json(folder string) (names []string, err error) {
	entries, err := os.ReadDir(o.path(folder))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (o *olderProgram) complete(worker, id string) error {
	if err := os.Rename(o.path("claimed", worker, id+".json"), o.path("done", id+".json")); err != nil {
		return err
	}
	lock, err := os.OpenFile(o.path(".status.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	s, completed, err := o.status()
	if err != nil || slices.Contains(completed, id) {
		return err
	}
	s.Checkpoint["completed_tasks"] = append(completed, id)
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(o.path("status.json.tmp-"+worker), data, 0o644)
	}
	if err == nil {
		err = os.Rename(o.path("status.json.tmp-"+worker), o.path("status.json"))
	}
	return err
}

// reap ends with an error if a directory vanishes while it lists, as the older does.
func (o *olderProgram) reap(limit time.Duration) (taken []string, err error) {
	workers, err := os.ReadDir(o.path("claimed"))
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		folder := filepath.Join("claimed", w.Name())
		info, err := os.Stat(o.path(folder, ".heartbeat"))
		if err == nil && time.Since(info.ModTime()) <= limit {
			continue
		}
		names, err := o.json(folder)
		if err != nil {
			return taken, err
		}
		for _, name := range names {
			ok, err := o.putBack(folder, name)
			if err != nil {
				return taken, err
			}
			if ok {
				taken = append(taken, w.Name()+"/"+name)
			}
		}
	}
	return taken, nil
}

func (o *olderProgram) putBack(folder, name string) (bool, error) {
	o.enqueues.Lock()
	defer o.enqueues.Unlock()
	if _, err := os.Lstat(o.path("pending", name)); err == nil {
		return false, nil
	}
	err := os.Rename(o.path(folder, name), o.path("pending", name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// enqueue replaces pending/x.json, and gives the new life's created_at.
func (o *olderProgram) enqueue(id string, deps ...string) (created string, err error) {
	created = beeyard.FormatTime(time.Now())
	data, err := json.Marshal(map[string]any{"task_id": id, "task_type": "t", "run_id": "run", "created_at": created,
		"created_by": "older", "depends_on": append([]string{}, deps...), "payload": nil, "tier_hint": nil, "deadline": nil})
	if err != nil {
		return "", err
	}
	temp := o.path("pending", fmt.Sprintf(".%s.tmp", id))
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return "", err
	}
	o.enqueues.Lock()
	defer o.enqueues.Unlock()
	return created, os.Rename(temp, o.path("pending", id+".json"))
}

// olderPython is an older worker in Python. It writes "id created_at" of what it
// ran to a file, and ends when there is a file named stop beside that.
const olderPython = `
import fcntl, json, os, sys, time
run, worker, log = sys.argv[1:4]
mine = os.path.join(run, "claimed", worker)
os.makedirs(mine, exist_ok=True)
def beat():
    open(os.path.join(mine, ".heartbeat"), "w").close()
def status():
    with open(os.path.join(run, "status.json")) as f:
        return json.load(f)
def claim():
    done = set(status()["checkpoint"]["completed_tasks"])
    for name in sorted(os.listdir(os.path.join(run, "pending"))):
        if not name.endswith(".json"):
            continue
        path = os.path.join(run, "pending", name)
        try:
            with open(path) as f:
                task = json.load(f)
            if any(d not in done for d in task.get("depends_on") or []):
                continue
            os.rename(path, os.path.join(mine, name))
        except (OSError, ValueError):
            continue
        return task
def complete(task):
    name = task["task_id"] + ".json"
    os.rename(os.path.join(mine, name), os.path.join(run, "done", name))
    with open(os.path.join(run, ".status.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        s = status()
        if task["task_id"] not in s["checkpoint"]["completed_tasks"]:
            s["checkpoint"]["completed_tasks"].append(task["task_id"])
            temp = os.path.join(run, "status.json.tmp-" + worker)
            with open(temp, "w") as f:
                json.dump({k: s[k] for k in ("schema_version", "run_id", "checkpoint", "metadata")}, f, indent=2)
            os.replace(temp, os.path.join(run, "status.json"))
out = open(log, "a")
while not os.path.exists(os.path.join(os.path.dirname(log), "stop")):
    beat()
    task = claim()
    if task is None:
        time.sleep(0.01)
        continue
    out.write(task["task_id"] + " " + task["created_at"] + "\n")
    out.flush()
    time.sleep(0.002)
    complete(task)
`
