package ledger

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doc builds a document of items from JSON.
func doc(t *testing.T, items string) *Document {
	t.Helper()
	v, err := ParseJSON([]byte(items))
	if err != nil {
		t.Fatal(err)
	}
	d := NewDocument()
	d.root.Set(keyItems, v)
	return d
}

const proofA = `"fix_ref":"#9","verified_merge_sha":"` + sha + `","verified_at":"2026-07-01T00:00:00Z"`
const proofB = `"fix_ref":"#8","verified_merge_sha":"f` + "123456789abcdef0123456789abcdef01234567" + `","verified_at":"2026-07-01T10:00:00Z"`

func TestMergeItems(t *testing.T) {
	reopenedA := `{"status":"fix_pending","history":[{"at":"2026-07-02T00:00:00Z","change":"reopened","status":"closed",` + proofA + `}]}`
	for _, c := range []struct {
		name, base, ours, theirs string
		want                     string // the item without history
		history                  string // what its history must hold
		conflicts                int
	}{
		{"one side", `{"a":1,"b":1}`, `{"a":2,"b":1}`, `{"a":1,"b":3}`, `{"a":2,"b":3}`, "", 0},
		{"added on both sides", `null`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`, "", 0},
		{"foreign fields", `{"status":"ingested"}`, `{"status":"ingested","x_a":{"k":1}}`, `{"status":"ingested","x_b":[1]}`, `{"status":"ingested","x_a":{"k":1},"x_b":[1]}`, "", 0},
		{"labels", `{"labels":["old","gone"]}`, `{"labels":["old","ours"]}`, `{"labels":["old","gone","theirs"]}`, `{"labels":["old","ours","theirs"]}`, "", 0},
		{"labels of equal maps", `{}`, `{"l":[{"b":1,"a":2}]}`, `{"l":[{"a":2,"b":1}]}`, `{"l":[{"a":2,"b":1}]}`, "", 0},
		{"inner maps", `{"m":{"a":1,"b":1}}`, `{"m":{"a":2,"b":1}}`, `{"m":{"a":1,"b":3,"c":4}}`, `{"m":{"a":2,"b":3,"c":4}}`, "", 0},
		{"removed field", `{"a":1,"b":1}`, `{"b":1}`, `{"a":1,"b":1}`, `{"b":1}`, "", 0},
		{"removed against changed", `{"a":1}`, `{}`, `{"a":2}`, `{"a":2}`, "", 0},
		{"conflict", `{"title":"x"}`, `{"title":"ours"}`, `{"title":"theirs"}`, `{"title":"ours"}`, `"field": "title", "lost": "theirs"`, 1},
		{"conflict, later wins", `{"title":"x","updated_at":"2026-07-01T00:00:00Z"}`, `{"title":"ours","updated_at":"2026-07-01T01:00:00Z"}`, `{"title":"theirs","updated_at":"2026-07-01T04:00:00+02:00"}`,
			`{"title":"theirs","updated_at":"2026-07-01T04:00:00+02:00"}`, `"lost": "ours"`, 1},
		{"conflict of kinds", `{"x":1}`, `{"x":[1]}`, `{"x":{"a":1}}`, `{"x":[1]}`, `"lost": {"a": 1}`, 1},
		{"sensitive wins", `{"sensitive":false}`, `{"sensitive":false,"body":"b"}`, `{"sensitive":true}`, `{"sensitive":true}`, "", 0},
		{"close beats the older open copy", `{"status":"analyzed"}`, `{"status":"closed",` + proofA + `}`, `{"status":"analyzed","title":"new"}`, `{"status":"closed","title":"new",` + proofA + `}`, "", 0},
		{"the same, theirs", `{"status":"analyzed"}`, `{"status":"analyzed","title":"new"}`, `{"status":"closed",` + proofA + `}`, `{"status":"closed","title":"new",` + proofA + `}`, "", 0},
		{"close beats another status", `{"status":"analyzed"}`, `{"status":"in_plan"}`, `{"status":"closed",` + proofA + `}`, `{"status":"closed",` + proofA + `}`, `"status": "in_plan"`, 1},
		{"close stays against a snapshot", `{"status":"closed",` + proofA + `}`, `{"status":"closed",` + proofA + `}`, `{"status":"ingested",` + proofA + `}`, `{"status":"closed",` + proofA + `}`, `"status": "ingested"`, 1},
		{"newer reopening opens", `{"status":"closed",` + proofA + `}`, `{"status":"closed",` + proofA + `}`, reopenedA, `{"status":"fix_pending"}`, sha, 0},
		{"newer reopening opens, ours", `{"status":"analyzed"}`, reopenedA, `{"status":"closed",` + proofA + `}`, `{"status":"fix_pending"}`, sha, 0},
		{"reopened by the older engine", `{"status":"closed",` + proofA + `}`, `{"status":"fix_pending",` + proofA + `}`, `{"status":"closed",` + proofA + `,"x":1}`, `{"status":"fix_pending","x":1,` + proofA + `}`, "", 0},
		{"closed anew after a reopening", `{"status":"closed",` + proofA + `}`, reopenedA, `{"status":"closed",` + proofB + `}`, `{"status":"closed",` + proofB + `}`, `"status": "fix_pending"`, 1},
		{"closed twice", `{"status":"analyzed"}`, `{"status":"closed",` + proofA + `}`, `{"status":"closed",` + proofB + `}`, `{"status":"closed",` + proofB + `}`, `"fix_ref": "#9"`, 1},
		{"unproven close", `{"status":"analyzed"}`, `{"status":"analyzed"}`, `{"status":"closed","fix_ref":"#1"}`, `{"status":"fix_pending","fix_ref":"#1"}`, "", 0},
		{"open against open", `{"status":"ingested"}`, `{"status":"analyzed"}`, `{"status":"in_plan"}`, `{"status":"analyzed"}`, `"status": "in_plan"`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			item := func(s string) *Document {
				if s == "null" {
					return NewDocument()
				}
				return doc(t, `{"k":`+s+`}`)
			}
			got, conflicts := Merge(item(c.base), item(c.ours), item(c.theirs), at(noon))
			merged := got.Item("k")
			history := string(appendJSON(nil, merged.get(fieldHistory)))
			merged.Delete(fieldHistory)
			want, err := ParseJSON([]byte(c.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(appendJSON(nil, want)), string(appendJSON(nil, MapValue(merged)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !strings.Contains(history, c.history) || c.history == "" && history != "null" {
				t.Errorf("history %s", history)
			}
			if len(conflicts) != c.conflicts {
				t.Errorf("conflicts %+v", conflicts)
			}
		})
	}
}

func TestMergeKeepsEveryItem(t *testing.T) {
	base := doc(t, `{"both":{"a":1},"gone":{"a":1},"gone but changed":{"a":1}}`)
	ours := doc(t, `{"both":{"a":1},"mine":{"a":1},"odd":5}`)
	theirs := doc(t, `{"both":{"a":1},"yours":{"a":1},"gone":{"a":1},"gone but changed":{"a":2}}`)
	got, _ := Merge(base, ours, theirs, at(noon))
	if s := string(appendJSON(nil, MapValue(got.Items()))); s != `{"both": {"a": 1}, "gone but changed": {"a": 2}, "mine": {"a": 1}, "odd": 5, "yours": {"a": 1}}` {
		t.Error(s)
	}
}

func TestMergeSections(t *testing.T) {
	base, ours, theirs := NewDocument(), NewDocument(), NewDocument()
	base.setCursor("s", StringValue("5"))
	ours.setCursor("s", StringValue("9"))
	theirs.setCursor("s", StringValue("10"))
	ours.Sources().get("s").m.Set("sensitive", BoolValue(true))
	theirs.Sources().get("s").m.Set("extra", IntValue(1))
	theirs.Items().Set("s:1", MapValue(fields("body", canary)))
	Acquire(ours, "w1", 60, at("2026-07-02T12:00:00Z"))
	Acquire(theirs, "w2", 60, at("2026-07-02T12:30:00Z"))
	Record(ours, Run{Writer: "w1", Outcome: "partial", Timestamp: "2026-07-02T13:00:00Z"})
	Record(theirs, Run{Writer: "w2", Outcome: "failed", Timestamp: "2026-07-02T12:00:00Z"})
	base.root.Set("x_top", IntValue(1))
	ours.root.Set("x_top", IntValue(2))
	theirs.root.Set("x_top", IntValue(3))
	got, conflicts := Merge(base, ours, theirs, at(noon))
	source := got.Sources().get("s").m
	l, _ := got.Lease()
	if source.str("cursor") != "10" || !source.get("sensitive").True() || source.get("extra").kind != Int || l.Writer != "w2" || got.LastRun().str("writer") != "w1" {
		t.Errorf("%s", got.Bytes(Native))
	}
	if bytes.Contains(got.Bytes(Native), []byte(canary)) {
		t.Error("a sensitive body came in with the merge")
	}
	if len(conflicts) != 1 || !strings.Contains(string(appendJSON(nil, got.root.get(keyConflicts))), `"lost": 3`) {
		t.Errorf("%+v %s", conflicts, got.Bytes(Native))
	}
	if again, err := Read(got.Bytes(Native)); err != nil || !MapValue(again.root).Equal(MapValue(got.root)) {
		t.Errorf("the result does not read back: %v", err)
	}
}

// mergeRepo is a clone in which the merge driver is installed. The driver is
// this test binary.
func mergeRepo(t *testing.T) (r *remote, clone string) {
	t.Helper()
	r = newRemote(t)
	clone = r.clone("one")
	g, err := NewGit(gitEnv(r.home))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "it's a driver.sh")
	script := "#!/bin/sh\n" + childVar + "=\"merge $3 $4 $5\" exec '" + childBinary(t) + "'\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		in, err := InstallMergeDriver(t.Context(), g, filepath.Join(clone, ledgerPath), program)
		if err != nil {
			t.Fatal(err)
		}
		if in.Line != "/"+ledgerPath+" merge=beeyard-ledger" {
			t.Errorf("%+v", in)
		}
	}
	if data, err := os.ReadFile(filepath.Join(clone, ".gitattributes")); err != nil || strings.Count(string(data), "\n") != 1 {
		t.Errorf("attributes %q %v", data, err)
	}
	r.git(clone, "config", "user.name", "Tester")
	r.git(clone, "config", "user.email", "t@localhost")
	r.save(clone, `{"gh:1":{"status":"analyzed","labels":["a"]}}`, t)
	r.git(clone, "add", ".gitattributes")
	r.git(clone, "commit", "--quiet", "-m", "base")
	return r, clone
}

func (r *remote) save(clone, items string, t *testing.T) {
	t.Helper()
	r.write(filepath.Join(clone, ledgerPath), string(doc(t, items).Bytes(Native)))
	r.git(clone, "add", ledgerPath)
}

// diverge commits two versions: theirs on a branch, ours on main.
func (r *remote) diverge(clone string, t *testing.T) {
	t.Helper()
	r.git(clone, "checkout", "--quiet", "-b", "theirs")
	r.save(clone, `{"gh:1":{"status":"closed","labels":["a","theirs"],`+proofA+`},"gh:2":{"status":"ingested"}}`, t)
	r.git(clone, "commit", "--quiet", "-m", "theirs")
	r.git(clone, "checkout", "--quiet", "main")
	r.save(clone, `{"gh:1":{"status":"analyzed","labels":["a","ours"],"x_custom":[1]},"gh:3":{"status":"ingested"}}`, t)
	r.git(clone, "commit", "--quiet", "-m", "ours")
}

func TestGitMergeAndRebase(t *testing.T) {
	for _, how := range []string{"merge", "rebase"} {
		t.Run(how, func(t *testing.T) {
			r, clone := mergeRepo(t)
			r.diverge(clone, t)
			if how == "merge" {
				r.git(clone, "merge", "--quiet", "--no-edit", "theirs")
			} else {
				r.git(clone, "rebase", "--quiet", "theirs")
			}
			data, err := os.ReadFile(filepath.Join(clone, ledgerPath))
			if err != nil {
				t.Fatal(err)
			}
			d, err := Read(data)
			if err != nil {
				t.Fatal(err)
			}
			item := d.Item("gh:1")
			labels := string(appendJSON(nil, item.get("labels")))
			if item.str("status") != StatusClosed || !strings.Contains(labels, "ours") || !strings.Contains(labels, "theirs") || item.get("x_custom").kind != List || d.Items().Len() != 3 {
				t.Errorf("%s", data)
			}
			if s := r.git(clone, "status", "--porcelain"); s != "" {
				t.Errorf("status %s", s)
			}
		})
	}
}

// TestGitMergeOfACorruptLedger: git keeps the path in conflict, our file stays.
func TestGitMergeOfACorruptLedger(t *testing.T) {
	r, clone := mergeRepo(t)
	r.diverge(clone, t)
	r.git(clone, "checkout", "--quiet", "theirs")
	r.write(filepath.Join(clone, ledgerPath), "schema_version: 1\nitems:\n  a: 1\n  a: 2\n")
	r.git(clone, "commit", "--quiet", "-a", "-m", "bad")
	r.git(clone, "checkout", "--quiet", "main")
	before, err := os.ReadFile(filepath.Join(clone, ledgerPath))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "merge", "--no-edit", "theirs")
	cmd.Dir, cmd.Env = clone, gitEnv(r.home)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "line 4") {
		t.Fatalf("%v\n%s", err, out)
	}
	after, err := os.ReadFile(filepath.Join(clone, ledgerPath))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("our file changed: %v\n%s", err, after)
	}
	if s := r.git(clone, "status", "--porcelain", ledgerPath); !strings.HasPrefix(s, "UU") && !strings.HasPrefix(s, "AA") {
		t.Errorf("status %q", s)
	}
}
