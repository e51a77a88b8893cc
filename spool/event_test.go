package spool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

func chkEvents(t *testing.T, r *Run, since time.Time) []beeyard.Event {
	t.Helper()
	var all []beeyard.Event
	chkMust(t, r.ReadEvents(chkContext(t), since, func(e beeyard.Event) bool {
		all = append(all, e)
		return true
	}))
	return all
}

func chkDetails(events []beeyard.Event) []string {
	var s []string
	for _, e := range events {
		s = append(s, e.Detail)
	}
	return s
}

func chkEventFiles(t *testing.T, r *Run) []string {
	t.Helper()
	files, err := filepath.Glob(r.path + "/events/*.jsonl")
	chkMust(t, err)
	return files
}

func TestEventSaysWhatHappened(t *testing.T) {
	r := chkRun(t, Options{Host: Host{PID: 42}})
	task := &beeyard.Task{ID: "t1", Ext: beeyard.Ext{Token: "3:w1~aaaaaaaaaaaaaaaa", Target: beeyard.PlaceFailed, Outcome: beeyard.OutcomeCanceled}}
	r.event("claimed", task, "2:w1~aaaaaaaaaaaaaaaa", "w1")
	r.event("settled", task, "3:w1~aaaaaaaaaaaaaaaa", "line\nbreak "+strings.Repeat("é", eventDetail))
	r.event("checkpoint_rebuilt", nil, "", "")
	got := chkEvents(t, r, time.Time{})
	if len(got) != 3 {
		t.Fatalf("read %+v", got)
	}
	if e := got[0]; e.Kind != "claimed" || e.TaskID != "t1" || e.Worker != "w1" || e.State != beeyard.StateClaimed || e.Time == "" {
		t.Errorf("claimed: %+v", e)
	}
	if e := got[1]; e.State != beeyard.StateCanceled || !strings.HasPrefix(e.Detail, "line\nbreak é") || len(e.Detail) > eventDetail {
		t.Errorf("settled: %.80v", e)
	}
	if files := chkEventFiles(t, r); len(files) != 1 || !strings.HasPrefix(filepath.Base(files[0]), "42~") {
		t.Errorf("files %q", files)
	}
}

func TestEventsInOrderOfTimeAcrossFiles(t *testing.T) {
	r := chkRun(t, Options{})
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var want []string
	texts := make([]strings.Builder, 3)
	for i := range 300 {
		want = append(want, fmt.Sprint(i))
		fmt.Fprintf(&texts[i*7%3], `{"time":%q,"kind":"k","detail":"%d"}`+"\n", beeyard.FormatTime(at.Add(time.Duration(i)*time.Second)), i)
	}
	for i := range texts {
		chkMust(t, os.WriteFile(fmt.Sprintf("%s/events/p%d~x.jsonl", r.path, i), []byte(texts[i].String()), 0o600))
	}
	if got := chkDetails(chkEvents(t, r, time.Time{})); !slices.Equal(got, want) {
		t.Errorf("order %q", got)
	}
	if got := chkDetails(chkEvents(t, r, at.Add(290*time.Second))); !slices.Equal(got, want[290:]) {
		t.Errorf("since: %q", got)
	}
	n := 0
	chkMust(t, r.ReadEvents(chkContext(t), time.Time{}, func(beeyard.Event) bool { n++; return n < 5 }))
	if n != 5 {
		t.Errorf("went on after no: %d", n)
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(chkContext(t))
	cancel(stop)
	chkIs(t, r.ReadEvents(ctx, time.Time{}, func(beeyard.Event) bool { return true }), stop)
}

// Crashes tear lines and leave NUL; people leave what they like.
func TestEventsPassOverWhatCannotBeRead(t *testing.T) {
	r := chkRun(t, Options{})
	line := func(n int) string {
		return fmt.Sprintf(`{"time":"2026-01-02T03:04:%02dZ","kind":"k","detail":"%d"}`, n, n)
	}
	text := line(1) + "\n" + line(2)[:20] + "\n" + strings.Repeat("\x00", 9000) + line(3) + "\n[]\n{\"time\":\"yesterday\"}\n\xff\xfe\n" +
		`{"detail":"` + strings.Repeat("x", 3*eventLineMost) + "\"}\n" + line(4) + "\r\n" + line(5)[:30]
	chkMust(t, os.WriteFile(r.path+"/events/a~x.jsonl", []byte(text), 0o600))
	chkMust(t, os.WriteFile(r.path+"/events/b~x.jsonl", nil, 0o600))
	chkMust(t, os.WriteFile(r.path+"/events/c~x.jsonl", []byte("\x00\x00\x00"), 0o600))
	chkMust(t, os.Symlink("/etc/passwd", r.path+"/events/d~x.jsonl"))
	chkMust(t, os.Mkdir(r.path+"/events/e~x.jsonl", 0o700))
	chkMust(t, syscall.Mkfifo(r.path+"/events/f~x.jsonl", 0o600))
	if got := chkDetails(chkEvents(t, r, time.Time{})); !slices.Equal(got, []string{"1", "3", "4"}) {
		t.Errorf("read %q", got)
	}
}

// Whatever since asks for, halving finds what reading all of it finds.
func TestEventsSinceInALongFile(t *testing.T) {
	r := chkRun(t, Options{})
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var text strings.Builder
	const n = 20_000
	for i := range n {
		if i%1000 == 500 {
			text.WriteString(strings.Repeat("\x00", 100_000) + "\n")
		}
		fmt.Fprintf(&text, `{"time":%q,"kind":"k","detail":"%d"}`+"\n", beeyard.FormatTime(at.Add(time.Duration(i)*time.Second)), i)
	}
	chkMust(t, os.WriteFile(r.path+"/events/a~x.jsonl", []byte(text.String()), 0o600))
	for _, first := range []int{0, 1, 499, 500, 501, 9_999, n - 1, n} {
		got := chkEvents(t, r, at.Add(time.Duration(first)*time.Second))
		if len(got) != n-first || len(got) > 0 && got[0].Detail != fmt.Sprint(first) {
			t.Errorf("since %d: %d events", first, len(got))
		}
	}
}

// One file a process at a time: the next one goes on in it, a living one's is
// left alone, and what a crash tore stays apart.
func TestEventFilesAreGoneOnWith(t *testing.T) {
	a := chkRun(t, Options{})
	a.event("k", nil, "", "a")
	b := chkOpen(t, a.path, Options{}, clock.Real())
	b.event("k", nil, "", "b")
	if files := chkEventFiles(t, a); len(files) != 2 {
		t.Errorf("two that live have %q", files)
	}
	chkMust(t, b.Close())
	for i := range 20 {
		c, err := Open(a.path, Options{}, clock.Real())
		chkMust(t, err)
		c.event("k", nil, "", fmt.Sprintf("c%d", i))
		chkMust(t, c.Close())
	}
	files := chkEventFiles(t, a)
	if len(files) != 2 {
		t.Errorf("20 commands left %q", files)
	}
	if got := chkEvents(t, a, time.Time{}); len(got) != 22 {
		t.Errorf("%d events", len(got))
	}
	chkMust(t, a.Close())
	for _, f := range files {
		torn, err := os.OpenFile(f, os.O_APPEND|os.O_WRONLY, 0)
		chkMust(t, err)
		_, err = torn.WriteString(`{"time":"2026-01-02T03:04:05Z","ki`)
		chkMust(t, errors.Join(err, torn.Close()))
	}
	d := chkOpen(t, a.path, Options{}, clock.Real())
	d.event("k", nil, "", "d")
	if got := chkEvents(t, d, time.Time{}); len(got) != 23 || got[22].Detail != "d" {
		t.Errorf("after torn lines: %d events", len(got))
	}
}

func TestEventsAreBounded(t *testing.T) {
	r := chkRun(t, Options{})
	chkMust(t, os.WriteFile(r.path+"/events/other~x.jsonl", nil, 0o600))
	for i := range eventFilesMost + 20 {
		name := fmt.Sprintf("%s/events/old%04d~x.jsonl", r.path, i)
		chkMust(t, os.WriteFile(name, []byte(`{"time":"2020-01-01T00:00:00Z"}`+"\n"), 0o600))
		then := time.Now().Add(-time.Hour + time.Duration(i)*time.Second)
		chkMust(t, os.Chtimes(name, then, then))
	}
	live, err := os.Open(r.path + "/events/old0000~x.jsonl")
	chkMust(t, err)
	defer live.Close()
	chkMust(t, syscall.Flock(int(live.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	r.event("k", nil, "", "new")
	files := chkEventFiles(t, r)
	if len(files) != eventFilesMost+1 {
		t.Errorf("%d files are left, want %d and the one that is being written", len(files), eventFilesMost)
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "old0000~x.jsonl") }) {
		t.Error("the file of a process that lives was removed")
	}
	if slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, "old0001~x.jsonl") }) {
		t.Error("the oldest file is still there")
	}
	r.chk.ev.mu.Lock()
	r.chk.ev.size = eventFileMost
	full := r.chk.ev.f.Name()
	r.chk.ev.mu.Unlock()
	r.event("k", nil, "", "next")
	r.chk.ev.mu.Lock()
	defer r.chk.ev.mu.Unlock()
	if r.chk.ev.f.Name() == full && r.chk.ev.size > eventFileMost {
		t.Errorf("a full file is gone on with: %s", full)
	}
}

// An event never fails what it tells of, and never stops it.
func TestEventsThatCannotBeWritten(t *testing.T) {
	var warned chkWarnings
	var hook chkHook
	o := hook.options()
	o.Warn = warned.warn
	r := chkRun(t, o)
	hook.set(func(op durable.Op) error {
		if strings.HasSuffix(op.Dir, "/events") && op.Op == durable.OpWrite {
			return &durable.ShortWrite{N: 10, Err: syscall.ENOSPC}
		}
		return nil
	})
	r.event("k", nil, "", "lost")
	r.event("k", nil, "", "lost")
	hook.set(nil)
	if n := warned.has("events cannot be written"); n != 1 {
		t.Errorf("warned %d times: %q", n, warned.said)
	}
	r.event("k", nil, "", "there")
	if got := chkDetails(chkEvents(t, r, time.Time{})); !slices.Equal(got, []string{"there"}) {
		t.Errorf("after room was made: %q", got)
	}
}
