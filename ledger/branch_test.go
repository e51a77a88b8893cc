package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"beeyard/internal/clock"
)

func at(text string) Now { return NowText(text) }

const noon = "2026-07-02T12:00:00+00:00"

func must(t *testing.T, want Word) func(Outcome, error) Outcome {
	return func(out Outcome, err error) Outcome {
		t.Helper()
		if err != nil {
			t.Fatalf("%v, want %s", err, want)
		}
		if out.Word != want {
			t.Fatalf("%s %s, want %s", out.Word, out.Reason, want)
		}
		return out
	}
}

func upsertOn(t *testing.T, f *File, writer, id, status string) Outcome {
	t.Helper()
	out, err := f.Update(t.Context(), func(d *Document) Outcome {
		return Put(d, Upsert{Writer: writer, Source: "gh", ID: id, Fields: fields("status", status)}, at(noon))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBranchLeaseGoesRound(t *testing.T) {
	for _, name := range []string{"main", "ledger/shared"} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t)
			one, two := r.branch(r.clone("one"), "origin/"+name), r.branch(r.clone("two"), "origin/"+name)
			ctx := t.Context()
			must(t, OK)(one.Acquire(ctx, "w1", 60, at(noon)))
			if l, held := r.shared(name).Lease(); !held || l.Writer != "w1" {
				t.Fatalf("the remote has lease %+v", l)
			}
			must(t, Locked)(two.Acquire(ctx, "w2", 60, at(noon)))
			if out := upsertOn(t, one.File(), "w1", "1", "ingested"); !out.OK() {
				t.Fatal(out)
			}
			if out := upsertOn(t, two.File(), "w2", "2", "ingested"); out.Word != LeaseLost {
				t.Fatal(out)
			}
			must(t, LeaseLost)(two.Release(ctx, "w2"))
			must(t, OK)(one.Release(ctx, "w1"))
			if d := r.shared(name); d.Item("gh:1") == nil || d.Items().Len() != 1 {
				t.Error("the change was not pushed with the release")
			}
			must(t, OK)(two.Acquire(ctx, "w2", 60, at(noon)))
			if d, err := two.File().Load(); err != nil || d.Item("gh:1") == nil {
				t.Errorf("the other machine does not see the item: %v", err)
			}
			must(t, StaleReclaimed)(one.Acquire(ctx, "w1", 60, at("2026-07-02T14:00:00+02:00").plus(t, 61*time.Minute)))
		})
	}
}

func (n Now) plus(t *testing.T, d time.Duration) Now {
	t.Helper()
	when, ok := n.Time()
	if !ok {
		t.Fatal("no time")
	}
	return At(when.Add(d))
}

func TestBranchBeforeTheFirstLease(t *testing.T) {
	r := newRemote(t)
	b := r.branch(r.clone("one"), "origin/main")
	must(t, LeaseLost)(b.Update(t.Context(), func(d *Document) Outcome {
		return Put(d, Upsert{Writer: "w1", Source: "gh", ID: "1", Fields: &Map{}}, at(noon))
	}))
	must(t, LeaseLost)(b.Update(t.Context(), func(d *Document) Outcome { return Acquire(d, "w1", 60, at(noon)) }))
	must(t, OK)(b.Acquire(t.Context(), "w1", 60, at(noon)))
	must(t, OK)(b.Update(t.Context(), func(d *Document) Outcome {
		return Put(d, Upsert{Writer: "w1", Source: "gh", ID: "1", Fields: &Map{}}, at(noon))
	}))
}

func TestBranchOnlyTheLedgerIsAdded(t *testing.T) {
	r := newRemote(t)
	clone := r.clone("one")
	// A dirty checkout: staged, changed, untracked, on another branch.
	r.git(clone, "checkout", "--quiet", "-b", "mine")
	r.write(filepath.Join(clone, "README"), "changed\n")
	r.write(filepath.Join(clone, "src", "main.c"), "staged\n")
	r.git(clone, "add", "src/main.c")
	r.write(filepath.Join(clone, "untracked"), "x\n")
	r.write(filepath.Join(clone, ledgerPath), "mine: not this one\n")
	before := r.git(clone, "status", "--porcelain=v2", "--branch", "-uall") + r.git(clone, "diff", "HEAD") + r.git(clone, "stash", "list")
	b := r.branch(clone, "origin/main")
	must(t, OK)(b.Acquire(t.Context(), "w1", 60, at(noon)))
	upsertOn(t, b.File(), "w1", "1", "ingested")
	r.write(filepath.Join(b.work, "stray"), "must not be added\n")
	must(t, OK)(b.Release(t.Context(), "w1"))
	if after := r.git(clone, "status", "--porcelain=v2", "--branch", "-uall") + r.git(clone, "diff", "HEAD") + r.git(clone, "stash", "list"); after != before {
		t.Errorf("the checkout changed from\n%s\nto\n%s", before, after)
	}
	if files := r.git(r.bare, "diff", "--name-only", "main~2", "main"); files != ledgerPath {
		t.Errorf("the commits changed %q", files)
	}
	if files := r.git(r.bare, "ls-tree", "-r", "--name-only", "main"); files != "README\n"+ledgerPath+"\nsrc/main.c" {
		t.Errorf("the branch has %q", files)
	}
}

func TestBranchRaceHasOneWinner(t *testing.T) {
	rounds := 3
	if os.Getenv("BEEYARD_NIGHTLY") == "1" {
		rounds = 60
	}
	for _, existing := range []bool{true, false} {
		r := newRemote(t)
		name := "main"
		if !existing {
			name = "sweep"
		}
		const machines = 4
		var branches []*Branch
		for i := range machines {
			branches = append(branches, r.branch(r.clone(fmt.Sprint("m", i)), "origin/"+name))
		}
		for round := range rounds {
			words := make([]Word, machines)
			errs := make([]error, machines)
			start := make(chan struct{})
			var wg sync.WaitGroup
			for i, b := range branches {
				wg.Go(func() {
					<-start
					var out Outcome
					out, errs[i] = b.Acquire(t.Context(), fmt.Sprint("w", i), 60, at(noon))
					words[i] = out.Word
				})
			}
			close(start)
			wg.Wait()
			winner := -1
			for i := range machines {
				switch {
				case errs[i] != nil:
					t.Fatalf("round %d, machine %d: %v", round, i, errs[i])
				case words[i] == OK && winner >= 0:
					t.Fatalf("round %d: machines %d and %d both got OK", round, winner, i)
				case words[i] == OK:
					winner = i
				case words[i] != Locked:
					t.Fatalf("round %d, machine %d: %s", round, i, words[i])
				}
			}
			if winner < 0 {
				t.Fatalf("round %d: nobody won: %v", round, words)
			}
			if l, _ := r.shared(name).Lease(); l.Writer != fmt.Sprint("w", winner) {
				t.Fatalf("round %d: the remote says %s, the winner is %d", round, l.Writer, winner)
			}
			must(t, OK)(branches[winner].Release(t.Context(), fmt.Sprint("w", winner)))
		}
	}
}

// TestBranchForcePush: history is rewritten under the holder's feet.
func TestBranchForcePush(t *testing.T) {
	r := newRemote(t)
	one, two := r.branch(r.clone("one"), "origin/sweep"), r.branch(r.clone("two"), "origin/sweep")
	ctx := t.Context()
	must(t, OK)(one.Acquire(ctx, "w1", 60, at(noon)))
	upsertOn(t, one.File(), "w1", "first", "ingested")
	must(t, OK)(one.Release(ctx, "w1"))
	before := r.git(r.bare, "rev-parse", "sweep")
	must(t, OK)(one.Acquire(ctx, "w1", 60, at(noon)))
	upsertOn(t, one.File(), "w1", "second", "ingested")
	// Back to before the lease, and another machine takes it.
	r.git(r.bare, "update-ref", "refs/heads/sweep", before)
	must(t, OK)(two.Acquire(ctx, "w2", 60, at(noon)))
	out := must(t, LeaseLost)(one.Release(ctx, "w1"))
	if d := r.shared("sweep"); d.Item("gh:second") != nil {
		t.Error("a holder that lost its lease wrote")
	}
	ref := ""
	for word := range strings.FieldsSeq(out.Next) {
		if strings.HasPrefix(word, "refs/beeyard/lost/") {
			ref = strings.TrimSuffix(word, ";")
		}
	}
	if kept := r.git(one.top, "cat-file", "blob", ref); !strings.Contains(kept, "gh:second") {
		t.Errorf("the unpublished change is not in %s", ref)
	}
	if d, err := one.File().Load(); err != nil || d.Item("gh:second") != nil || d.Item("gh:first") == nil {
		t.Errorf("the file is not the remote's: %v", err)
	}
	must(t, OK)(two.Release(ctx, "w2"))
	must(t, OK)(one.Acquire(ctx, "w1", 60, at(noon)))
}

// TestBranchRewrittenWithLease: a rewrite that keeps the lease and an edit by
// somebody else is merged with what the holder has not published.
func TestBranchRewrittenWithLease(t *testing.T) {
	r := newRemote(t)
	clone := r.clone("one")
	one := r.branch(clone, "origin/main")
	ctx := t.Context()
	must(t, OK)(one.Acquire(ctx, "w1", 60, at(noon)))
	upsertOn(t, one.File(), "w1", "1", "ingested")
	other := r.clone("other")
	text := strings.Replace(r.git(other, "show", "main:"+ledgerPath), "items: {}", "items:\n  \"gh:2\":\n    status: \"analyzed\"", 1) + "\n"
	r.write(filepath.Join(other, ledgerPath), text)
	r.git(other, "commit", "--quiet", "-a", "--amend", "-m", "rewritten")
	r.git(other, "push", "--quiet", "--force", "origin", "main")
	must(t, OK)(one.Release(ctx, "w1"))
	d := r.shared("main")
	if d.Item("gh:1") == nil || d.Item("gh:2") == nil {
		t.Errorf("items %v", d.Items())
	}
	if _, held := d.Lease(); held {
		t.Error("still leased")
	}
}

func TestBranchDeletedOnTheRemote(t *testing.T) {
	r := newRemote(t)
	one := r.branch(r.clone("one"), "origin/sweep")
	must(t, OK)(one.Acquire(t.Context(), "w1", 60, at(noon)))
	upsertOn(t, one.File(), "w1", "1", "ingested")
	r.git(r.bare, "update-ref", "-d", "refs/heads/sweep")
	must(t, OK)(one.Release(t.Context(), "w1"))
	if r.shared("sweep").Item("gh:1") == nil {
		t.Error("the item is gone")
	}
}

func TestBranchNoNetwork(t *testing.T) {
	r := newRemote(t)
	one := r.branch(r.clone("one"), "origin/main")
	away := r.bare + ".away"
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(r.bare, away)
	if out, err := one.Acquire(t.Context(), "w1", 60, at(noon)); err == nil {
		t.Fatalf("%s without a remote", out.Word)
	}
	move(away, r.bare)
	must(t, OK)(one.Acquire(t.Context(), "w1", 60, at(noon)))
	upsertOn(t, one.File(), "w1", "1", "ingested")
	held, err := os.ReadFile(one.File().Path())
	if err != nil {
		t.Fatal(err)
	}
	move(r.bare, away)
	if out, err := one.Release(t.Context(), "w1"); err == nil {
		t.Fatalf("%s without a remote", out.Word)
	}
	if now, err := os.ReadFile(one.File().Path()); err != nil || string(now) != string(held) {
		t.Errorf("a release that failed changed the file: %v\n%s", err, now)
	}
	move(away, r.bare)
	must(t, OK)(one.Release(t.Context(), "w1"))
	if r.shared("main").Item("gh:1") == nil {
		t.Error("the item was not pushed")
	}
}

func TestBranchHooksThatFail(t *testing.T) {
	for _, hook := range []string{"pre-commit", "commit-msg", "pre-push", "remote pre-receive", "remote update"} {
		t.Run(hook, func(t *testing.T) {
			r := newRemote(t)
			clone := r.clone("one")
			one := r.branch(clone, "origin/main")
			dir, name := filepath.Join(clone, ".git", "hooks"), hook
			if rest, ok := strings.CutPrefix(hook, "remote "); ok {
				dir, name = filepath.Join(r.bare, "hooks"), rest
			}
			path := filepath.Join(dir, name)
			r.write(path, "#!/bin/sh\necho refused by policy >&2\nexit 1\n")
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
			was := r.git(r.bare, "rev-parse", "main")
			out, err := one.Acquire(t.Context(), "w1", 60, at(noon))
			if err == nil || !strings.Contains(err.Error(), "refused by policy") {
				t.Fatalf("%s %v", out.Word, err)
			}
			if r.git(r.bare, "rev-parse", "main") != was {
				t.Error("the remote moved")
			}
			if d, err := one.File().Load(); err != nil || d != nil {
				t.Errorf("the file was written: %v %v", d, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			must(t, OK)(one.Acquire(t.Context(), "w1", 60, at(noon)))
		})
	}
}

// TestBranchTwoProcessesOfOneClone: the remote takes both pushes, so only our
// own lock keeps them apart.
func TestBranchTwoProcessesOfOneClone(t *testing.T) {
	r := newRemote(t)
	clone := r.clone("one")
	words := make([]Word, 3)
	errs := make([]error, len(words))
	var wg sync.WaitGroup
	for i := range words {
		b := r.branch(clone, "origin/sweep")
		wg.Go(func() {
			var out Outcome
			out, errs[i] = b.Acquire(t.Context(), fmt.Sprint("w", i), 60, at(noon))
			words[i] = out.Word
		})
	}
	wg.Wait()
	won := 0
	for i, w := range words {
		if errs[i] != nil || w != OK && w != Locked {
			t.Errorf("%s %v", w, errs[i])
		}
		if w == OK {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%v", words)
	}
}

// TestBranchAfterAKilledGit: lock files that a killed git left do not stop the
// sweep for good, and those of a git that may still run are left alone.
func TestBranchAfterAKilledGit(t *testing.T) {
	r := newRemote(t)
	b := r.branch(r.clone("one"), "origin/main")
	must(t, OK)(b.Acquire(t.Context(), "w1", 60, at(noon)))
	for _, lock := range []string{"worktrees/" + b.id + "/index.lock", "worktrees/" + b.id + "/HEAD.lock", "refs/beeyard/base/" + b.id + ".lock", "refs/beeyard/ledger/" + b.id + ".lock"} {
		path := filepath.Join(b.common, lock)
		r.write(path, "")
		if out, err := b.Acquire(t.Context(), "w1", 30, at(noon)); err == nil && out.changed {
			t.Errorf("%s: a young lock was ignored: %s", lock, out.Word)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		must(t, OK)(b.Acquire(t.Context(), "w1", 60, at(noon)))
		must(t, OK)(b.Release(t.Context(), "w1"))
	}
}

func TestBranchThousandsOfItems(t *testing.T) {
	r := newRemote(t)
	one, two := r.branch(r.clone("one"), "origin/main"), r.branch(r.clone("two"), "origin/main")
	ctx := t.Context()
	must(t, OK)(one.Acquire(ctx, "w1", 60, at(noon)))
	var lines strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, `{"op":"upsert","source":"gh","id":"%d","item":{"status":"ingested","title":"Ünïcode %d"}}`+"\n", i, i)
	}
	ops, err := ReadOperations(strings.NewReader(lines.String()), "w1")
	if err != nil {
		t.Fatal(err)
	}
	if _, out, err := one.File().Apply(ctx, ops, true, at(noon)); err != nil || !out.OK() {
		t.Fatal(out, err)
	}
	must(t, OK)(one.Release(ctx, "w1"))
	must(t, OK)(two.Acquire(ctx, "w2", 60, at(noon)))
	if d, err := two.File().Load(); err != nil || d.Items().Len() != 5000 {
		t.Fatalf("%v", err)
	}
}

// TestBranchCancelled: a context that ends leaves no lease behind that nobody
// knows of.
func TestBranchCancelled(t *testing.T) {
	r := newRemote(t)
	one := r.branch(r.clone("one"), "origin/main")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if out, err := one.Acquire(ctx, "w1", 60, at(noon)); err == nil {
		t.Fatalf("%s", out.Word)
	}
	must(t, OK)(one.Acquire(t.Context(), "w2", 60, at(noon)))
}

func TestBranchNames(t *testing.T) {
	r := newRemote(t)
	clone := r.clone("one")
	r.git(clone, "remote", "add", "team/fork", r.bare)
	r.git(clone, "remote", "add", "team", r.bare)
	if b := r.branch(clone, "team/fork/a/b"); b.remote != "team/fork" || b.name != "a/b" {
		t.Errorf("%s %s", b.remote, b.name)
	}
	g, err := NewGit(gitEnv(r.home))
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"", "main", "origin", "origin/", "nobody/main", "origin/a..b", "origin/-x/../y", "--upload-pack=x/main"} {
		if _, err := OpenBranch(t.Context(), g, filepath.Join(clone, ledgerPath), spec, clock.Real()); err == nil {
			t.Errorf("%q was taken", spec)
		}
	}
}
