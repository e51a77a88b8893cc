package spool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/durable"
)

// These are the rows of ADR 0002's table "What each crash leaves, and who
// mends it", by name. Each makes what is found and runs who mends it.

// deadClaim makes a claim directory whose owner is gone, with the body of a
// task claimed into it. boot "" is this boot.
func deadClaim(t *testing.T, r *Run, boot, id string) (dir string, body *beeyard.Task, tok beeyard.Token) {
	t.Helper()
	d, err := r.newClaimDir(enqContext(t), "dead", beeyard.KindProcess)
	enqMust(t, err)
	body, _, err = r.take(enqContext(t), d, id)
	enqMust(t, err)
	tok = d.token(body.Ext.Rev)
	enqMust(t, d.close())
	dir = filepath.Join(r.path, "claimed", d.name)
	if boot != "" {
		text := `{"boot":"` + boot + `","host":"host","pid":1,"start":1,"kind":"process"}`
		enqMust(t, os.WriteFile(filepath.Join(dir, fileBeat), []byte(text), 0o600))
		coreAge(t, r, d.name, time.Hour)
	}
	return dir, body, tok
}

// recordOf is what the owner would have prepared.
func recordOf(t *testing.T, body *beeyard.Task, tok beeyard.Token, s beeyard.Settlement) []byte {
	t.Helper()
	next, err := body.Settle(s, tok.String(), time.Now(), 0.5)
	enqMust(t, err)
	data, err := next.Encode()
	enqMust(t, err)
	return data
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	enqMust(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}

func recover1(t *testing.T, r *Run) beeyard.ReapReport {
	t.Helper()
	rep, err := r.Reap(enqContext(t), beeyard.ReapOptions{})
	enqMust(t, err)
	return rep
}

func wantBody(t *testing.T, r *Run, id string, place beeyard.Place, attempt int) *beeyard.Task {
	t.Helper()
	f, ok := coreBody(t, r, id)
	if !ok || f.place != place || f.task == nil || f.task.Ext.Attempt != attempt {
		t.Fatalf("%s: there %v, %+v; want %s with attempt %d", id, ok, f, place, attempt)
	}
	return f.task
}

func TestWhatEachCrashLeaves(t *testing.T) {
	t.Run("temp only", func(t *testing.T) {
		r := coreRun(t, Options{})
		temp := filepath.Join(r.path, "pending", tempName("task"))
		enqMust(t, os.WriteFile(temp, []byte(`{"task_id":"a"`), 0o600))
		w := coreAttach(t, r, "w1")
		coreClaim(t, w, "")
		if _, err := os.Stat(temp); err != nil {
			t.Fatal("a temporary file that is being written was removed")
		}
		// Its ctime cannot be set back: the janitor's clock goes ahead.
		g := &reaping{Run: r, now: time.Now().Add(2 * time.Hour)}
		enqMust(t, g.janitor())
		if _, err := os.Stat(temp); !os.IsNotExist(err) {
			t.Fatalf("the janitor left %s: %v", temp, err)
		}
	})
	t.Run("D empty, or .heartbeat only", func(t *testing.T) {
		r := coreRun(t, Options{})
		d, err := r.newClaimDir(enqContext(t), "dead", beeyard.KindProcess)
		enqMust(t, err)
		enqMust(t, d.close())
		recover1(t, r)
		path := filepath.Join(r.path, "claimed", d.name)
		if _, err := os.Stat(path); err != nil {
			t.Fatal("removed before its hour: an older program that lists it would end with an error")
		}
		// The folder's ctime cannot be set back: the reaper's clock goes ahead.
		g := &reaping{Run: r, now: time.Now().Add(2 * time.Hour), o: beeyard.ReapOptions{StaleAfter: defaultStaleAfter}}
		dir, err := r.claimed.OpenDir(d.name)
		enqMust(t, err)
		enqMust(t, g.directory(enqContext(t), d.name, dir))
		enqMust(t, dir.Close())
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Fatalf("an idle directory stays after its hour: %v", err)
		}
	})
	t.Run("D/x.json", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		deadClaim(t, r, "", "a")
		recover1(t, r)
		if b := wantBody(t, r, "a", beeyard.PlacePending, 1); b.Ext.Deaths != 1 {
			t.Fatalf("deaths %d", b.Ext.Deaths)
		}
	})
	t.Run("D/x.json + torn x~out", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, tok := deadClaim(t, r, "", "a")
		rec := recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone})
		put(t, dir, tagged("a", tagRecord, "abcdefgh"), rec[:len(rec)/2])
		recover1(t, r)
		wantBody(t, r, "a", beeyard.PlacePending, 1)
	})
	t.Run("D/x.json + whole x~out", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, tok := deadClaim(t, r, "", "a")
		put(t, dir, tagged("a", tagRecord, "failfail"), recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeRetry}))
		put(t, dir, tagged("a", tagRecord, "donedone"), recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone}))
		rep := recover1(t, r)
		if b := wantBody(t, r, "a", beeyard.PlaceDone, 1); b.Ext.Deaths != 0 {
			t.Fatal("work that was done counted as a death")
		}
		if len(rep.Reaped) != 1 || rep.Reaped[0].Action != "finished" {
			t.Fatalf("%+v", rep)
		}
	})
	t.Run("x~taken + x~out (+ artifact, + some follow-ups published)", func(t *testing.T) {
		for _, published := range []bool{false, true} {
			r := coreRun(t, Options{}, "a")
			dir, body, tok := deadClaim(t, r, "", "a")
			art := &beeyard.Artifact{Size: 3, SHA256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"} // "foo"
			follow := []*beeyard.Task{{ID: "f1", Type: "t", CreatedAt: "2026-01-01T00:00:00Z", Ext: beeyard.Ext{UID: "u1"}},
				{ID: "f2", Type: "t", CreatedAt: "2026-01-01T00:00:00Z", Ext: beeyard.Ext{UID: "u2"}}}
			put(t, dir, tagged("a", tagRecord, "abcdefgh"), recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone, Artifact: art, FollowUps: follow}))
			put(t, dir, tagged("a", tagArtifact, ""), []byte("foo"))
			enqMust(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(dir, tagged("a", tagTaken, "abcdefgh"))))
			if published {
				b, err := follow[0].Encode()
				enqMust(t, err)
				put(t, filepath.Join(r.path, "pending"), "f1.json", b)
			}
			recover1(t, r)
			wantBody(t, r, "a", beeyard.PlaceDone, 1)
			wantBody(t, r, "f1", beeyard.PlacePending, 0)
			wantBody(t, r, "f2", beeyard.PlacePending, 0)
			if got := coreArtifacts(t, r); got != "a.md" {
				t.Fatalf("artifacts %q", got)
			}
			if left := coreLeft(t, r); len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
		}
	})
	t.Run("x~taken", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, tok := deadClaim(t, r, "", "a")
		enqMust(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(dir, tagged("a", tagTaken, "abcdefgh"))))
		put(t, filepath.Join(r.path, "done"), "a.json", recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone}))
		recover1(t, r)
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
		if left := coreLeft(t, r); len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	})
	t.Run("x~taken of another boot, published nowhere", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, _, _ := deadClaim(t, r, "boot-0", "a")
		enqMust(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(dir, tagged("a", tagTaken, "abcdefgh"))))
		recover1(t, r)
		wantBody(t, r, "a", beeyard.PlacePending, 1)
	})
	t.Run("x~out alone", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, tok := deadClaim(t, r, "", "a")
		put(t, dir, tagged("a", tagRecord, "abcdefgh"), recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone}))
		put(t, dir, tagged("a", tagArtifact, ""), []byte("late"))
		enqMust(t, os.Rename(filepath.Join(dir, "a.json"), filepath.Join(r.path, "pending", "a.json"))) // an older reaper
		recoverLater(t, r)
		wantBody(t, r, "a", beeyard.PlacePending, 0)
		if got := coreArtifacts(t, r); !strings.Contains(got, ".json") || !strings.Contains(got, ".output") || strings.HasPrefix(got, "a.md") || strings.Contains(got, " a.md") {
			t.Fatalf("kept aside: %q", got)
		}
	})
	t.Run("x~out alone after a reboot, its life nowhere else", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		dir, body, tok := deadClaim(t, r, "boot-0", "a")
		put(t, dir, tagged("a", tagRecord, "abcdefgh"), recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone}))
		enqMust(t, os.Remove(filepath.Join(dir, "a.json")))
		recoverLater(t, r)
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
	})
	t.Run("one life in two places", func(t *testing.T) {
		r := coreRun(t, Options{}, "a", "b")
		dir, body, tok := deadClaim(t, r, "", "a")
		done := recordOf(t, body, tok, beeyard.Settlement{Outcome: beeyard.OutcomeDone})
		put(t, filepath.Join(r.path, "done"), "a.json", done) // after a power cut: done/ and the claim
		claimed, err := os.ReadFile(filepath.Join(dir, "a.json"))
		enqMust(t, err)
		put(t, filepath.Join(r.path, "pending"), "a.json", claimed) // and pending/ too
		w := coreAttach(t, r, "w1")                                 // at a claim
		coreClaim(t, w, "b")
		recover1(t, r) // at a reap
		wantBody(t, r, "a", beeyard.PlaceDone, 1)
	})
	t.Run("two lives of one id", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		w := coreAttach(t, r, "w1")
		c := coreClaim(t, w, "a")
		again := `{"task_id":"a","task_type":"t","run_id":"run","created_at":"2099-01-01T00:00:00Z","created_by":"older","depends_on":[],"payload":null,"tier_hint":null,"deadline":null}`
		put(t, filepath.Join(r.path, "pending"), "a.json", []byte(again))
		_, err := w.Settle(enqContext(t), c.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
		enqMust(t, err)
		var c2 *beeyard.Claim
		waitFor(t, func() bool {
			c2, err = w.Claim(enqContext(t), beeyard.Filter{})
			enqMust(t, err)
			return c2 != nil
		})
		if c2.Task.CreatedBy != "older" {
			t.Fatalf("the second life did not run: %+v", c2.Task)
		}
		_, err = w.Settle(enqContext(t), c2.Ref(), beeyard.Settlement{Outcome: beeyard.OutcomeDone})
		enqMust(t, err)
		if b := wantBody(t, r, "a", beeyard.PlaceDone, 1); b.CreatedBy != "older" {
			t.Fatal("the later record must stay")
		}
		if q := enqNames(t, r, "quarantine"); len(q) == 0 {
			t.Fatal("the earlier record is nowhere")
		}
	})
	t.Run("in done/, not in completed_tasks", func(t *testing.T) {
		r := coreRun(t, Options{}, "a")
		enqFinish(t, r, "a", beeyard.PlaceDone, beeyard.OutcomeDone)
		w, err := r.Attach(enqContext(t), beeyard.WorkerSpec{ID: "w1"})
		enqMust(t, err)
		defer w.Close(context.Background())
		data, err := os.ReadFile(filepath.Join(r.path, "status.json"))
		if err != nil || !strings.Contains(string(data), `"a"`) {
			t.Fatalf("the fold did not come: %s, %v", data, err)
		}
	})
}

// recoverLater reaps by a clock that is past the ten seconds in which what
// lies alone may yet be somebody's.
func recoverLater(t *testing.T, r *Run) {
	t.Helper()
	g := &reaping{Run: r, now: time.Now().Add(time.Minute), o: beeyard.ReapOptions{StaleAfter: defaultStaleAfter}}
	err := r.eachClaimDir(enqContext(t), func(name string, dir durable.Dir) (bool, error) {
		return true, g.directory(enqContext(t), name, dir)
	})
	enqMust(t, err)
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	ctx := enqContext(t)
	for !ok() {
		if err := clock.Sleep(ctx, clock.Real(), 5*time.Millisecond); err != nil {
			t.Fatal("it never came")
		}
	}
}
