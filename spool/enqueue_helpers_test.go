package spool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// enqWait bounds every wait of these tests; none depends on its length.
const enqWait = 30 * time.Second

func enqContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*enqWait)
	t.Cleanup(cancel)
	return ctx
}

func enqMust(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// enqRun makes a run in a new folder and opens it with the options.
func enqRun(t testing.TB, o Options) *Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	first, err := Create(dir, beeyard.Checkpoint{RunID: "run"}, Options{}, clock.Real())
	enqMust(t, err)
	enqMust(t, first.Close())
	return enqOpen(t, dir, o)
}

func enqOpen(t testing.TB, dir string, o Options) *Run {
	t.Helper()
	r, err := Open(dir, o, clock.Real())
	enqMust(t, err)
	t.Cleanup(func() { enqMust(t, r.Close()) })
	return r
}

func enqTask(id string, deps ...string) *beeyard.Task {
	return &beeyard.Task{ID: id, Type: "test", DependsOn: deps}
}

func enqTasks(prefix string, n int) []*beeyard.Task {
	tasks := make([]*beeyard.Task, n)
	for i := range tasks {
		tasks[i] = enqTask(fmt.Sprintf("%s%05d", prefix, i))
	}
	return tasks
}

func enqueueOne(t testing.TB, r *Run, task *beeyard.Task) {
	t.Helper()
	got, err := r.Enqueue(enqContext(t), []*beeyard.Task{task}, beeyard.EnqueueOptions{})
	enqMust(t, err)
	if len(got) != 1 || got[0].Status != statusEnqueued || got[0].TaskID != task.ID {
		t.Fatalf("enqueue of %s answered %+v", task.ID, got)
	}
}

// enqNames lists a folder of the run, and fails on a temporary name.
func enqNames(t testing.TB, r *Run, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.path, folder))
	enqMust(t, err)
	var names []string
	for _, e := range entries {
		if durable.IsTemp(e.Name()) {
			t.Errorf("%s/ has a temporary file %s", folder, e.Name())
		}
		names = append(names, e.Name())
	}
	return names
}

// enqFinish moves a pending task to done/ or failed/ as a settle would.
func enqFinish(t testing.TB, r *Run, id string, to beeyard.Place, out beeyard.Outcome) {
	t.Helper()
	task, _, err := readTask(r.pending, bodyName(id), id)
	enqMust(t, err)
	task.Ext.Rev, task.Ext.Outcome, task.Ext.Target = task.Ext.Rev+1, out, to
	body, err := task.Encode()
	enqMust(t, err)
	enqMust(t, durable.WriteExcl(r.place(to), bodyName(id), body, fileMode))
	enqMust(t, r.pending.Remove(bodyName(id)))
}

// enqClaim claims a pending task and gives its reference.
func enqClaim(t testing.TB, r *Run, id string) (beeyard.Ref, durable.Dir) {
	t.Helper()
	d, err := r.newClaimDir(enqContext(t), "w1", beeyard.KindProcess)
	enqMust(t, err)
	t.Cleanup(func() { enqMust(t, d.close()) })
	task, _, err := r.take(enqContext(t), d, id)
	enqMust(t, err)
	return beeyard.Ref{TaskID: id, Token: d.token(task.Ext.Rev)}, d.dir
}

func enqIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// enqLog records the operations on a run's folders.
type enqLog struct {
	mu  sync.Mutex
	ops []durable.Op
	// fail, when set, decides about each operation.
	fail func(durable.Op) error
}

func (l *enqLog) wrap(d durable.Dir) durable.Dir {
	return durable.Hooked(d, func(op durable.Op) error {
		l.mu.Lock()
		l.ops = append(l.ops, op)
		fail := l.fail
		l.mu.Unlock()
		if fail != nil {
			return fail(op)
		}
		return nil
	})
}

func (l *enqLog) failWith(f func(durable.Op) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail, l.ops = f, nil
}

// index is where the first operation lies that is, or -1.
func (l *enqLog) index(is func(durable.Op) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, op := range l.ops {
		if is(op) {
			return i
		}
	}
	return -1
}

// enqGate stops the first operation that it is for until it is opened.
type enqGate struct {
	is      func(durable.Op) bool
	once    sync.Once
	reached chan struct{}
	open    chan struct{}
}

func newEnqGate(is func(durable.Op) bool) *enqGate {
	return &enqGate{is: is, reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *enqGate) wrap(d durable.Dir) durable.Dir {
	return durable.Hooked(d, func(op durable.Op) error {
		if g.is(op) {
			g.once.Do(func() {
				close(g.reached)
				<-g.open
			})
		}
		return nil
	})
}

func enqHear(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(enqWait):
		t.Fatalf("%s did not happen within %v", what, enqWait)
	}
}

func init() {
	testChildren["enqueue"] = enqChildEnqueue
}

// enqChildEnqueue is another process that enqueues one task once its standard
// input ends: run folder, id, created by, dependencies.
func enqChildEnqueue(args []string) error {
	r, err := Open(args[0], Options{}, clock.Real())
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	task := enqTask(args[1], args[3:]...)
	task.CreatedBy = args[2]
	_, err = r.Enqueue(context.Background(), []*beeyard.Task{task}, beeyard.EnqueueOptions{})
	switch {
	case err == nil:
		fmt.Println("enqueued")
	case errors.Is(err, beeyard.ErrExists):
		fmt.Println("exists")
	case errors.Is(err, beeyard.ErrCycle):
		fmt.Println("cycle", err)
	default:
		return errors.Join(err, r.Close())
	}
	return r.Close()
}

// enqRace starts one process a line of arguments, lets all go at once, and
// gives what each answered.
func enqRace(t *testing.T, calls [][]string) []string {
	t.Helper()
	type child struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []child
	for _, args := range calls {
		cmd := exec.CommandContext(enqContext(t), os.Args[0], args...)
		cmd.Env = append(os.Environ(), childEnv+"=enqueue")
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
		cmd.WaitDelay = enqWait
		in, err := cmd.StdinPipe()
		enqMust(t, err)
		out, err := cmd.StdoutPipe()
		enqMust(t, err)
		enqMust(t, cmd.Start())
		all = append(all, child{cmd, in, bufio.NewReader(out)})
	}
	for _, c := range all {
		line, err := c.out.ReadString('\n')
		if err != nil || line != "ready\n" {
			t.Fatalf("child did not get ready: %q, %v", line, err)
		}
	}
	for _, c := range all {
		enqMust(t, c.in.Close())
	}
	answers := make([]string, len(all))
	for i, c := range all {
		text, err := io.ReadAll(c.out)
		enqMust(t, err)
		enqMust(t, c.cmd.Wait())
		answers[i] = strings.TrimSpace(string(text))
	}
	return answers
}
