package ledger

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func init() {
	if os.Getenv(childVar) != "" {
		runtime.LockOSThread() // strace counts the calls of one thread
	}
}

// childVar makes this binary another process that works on a ledger.
const childVar = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVar); what != "" {
		os.Exit(runChild(strings.Fields(what)))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if child.path != "" {
			os.RemoveAll(filepath.Dir(child.path))
		}
		os.Exit(code)
	}))
}

var child struct {
	once sync.Once
	path string
	err  error
}

// childBinary is this test binary without the race detector, under which a
// process takes ten times as long to start and makes system calls of its own.
func childBinary(t testing.TB) string {
	t.Helper()
	if !raceEnabled {
		return os.Args[0]
	}
	child.once.Do(func() {
		var dir string
		if dir, child.err = os.MkdirTemp("", "ledger-test-"); child.err != nil {
			return
		}
		child.path = filepath.Join(dir, "child")
		cmd := exec.Command("go", "test", "-c", "-o", child.path, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			child.err = fmt.Errorf("build: %w\n%s", err, out)
		}
	})
	if child.err != nil {
		t.Fatal(child.err)
	}
	return child.path
}

// canary is private text that must be found nowhere.
const canary = "CANARY-5d41402a"

const sha = "0123456789abcdef0123456789abcdef01234567"

// mutations are one of each change, as a child process carries them out on the
// document of crashLedger.
var mutations = map[string]func(*Document) Outcome{
	"acquire": func(d *Document) Outcome { return Acquire(d, "w1", 90, at("2026-07-02T12:30:00Z")) },
	"release": func(d *Document) Outcome { return Release(d, "w1") },
	"upsert": func(d *Document) Outcome {
		m := fields("status", "analyzed", "sensitive", true, "body", canary, "quote", canary)
		return Put(d, Upsert{Writer: "w1", Source: "gh", ID: "1", Fields: m}, at(noon))
	},
	"cursor": func(d *Document) Outcome {
		return Advance(d, CursorMove{Writer: "w1", Source: "gh", To: "11", PastItem: "1"}, at(noon))
	},
	"record": func(d *Document) Outcome {
		return Record(d, Run{Writer: "w1", Outcome: "partial", Timestamp: noon, Counts: MapValue(fields("new", 1))})
	},
	"validate": func(d *Document) Outcome { return Validate(d, at(noon)) },
	"import": func(d *Document) Outcome {
		legacy := fields("channels", MapValue(fields("C7", MapValue(fields("cursor", "55")))))
		return ImportLegacy(d, legacy, nil)
	},
	"close": func(d *Document) Outcome {
		return Close(d, "gh:1", "w1", Evidence{"#1", sha, "2026-07-01T00:00:00Z"}, at(noon))
	},
	"reopen": func(d *Document) Outcome { return Reopen(d, "gh:3", "w1", "it fails again", at(noon)) },
	"redact": func(d *Document) Outcome { return Redact(d, "mail") },
	"apply": func(d *Document) Outcome {
		ops, err := ReadOperations(strings.NewReader(`{"op":"upsert","source":"gh","id":"9","item":{"status":"ingested"}}`+"\n"+
			`{"op":"cursor","source":"gh","to":"12","past_item":"9"}`), "w1")
		if err != nil {
			return refuse(Failed, err.Error(), "")
		}
		_, out := Apply(d, ops, true, at(noon))
		return out
	},
}

// crashLedger is the document that mutations change.
func crashLedger() *Document {
	d := NewDocument()
	Acquire(d, "w1", 60, at(noon))
	d.setCursor("gh", StringValue("10"))
	d.Items().Set("gh:1", MapValue(fields("source", "gh", "id", "1", "status", "ingested")))
	d.Items().Set("gh:2", MapValue(fields("source", "gh", "id", "2", "status", StatusClosed)))
	d.Items().Set("gh:3", MapValue(fields("source", "gh", "id", "3", "status", StatusClosed, "fix_ref", "#3", "verified_merge_sha", sha, "verified_at", "2026-07-01T00:00:00Z")))
	d.Items().Set("mail:1", MapValue(fields("source", "mail", "id", "1", "status", "ingested", "body", "public until now")))
	return d
}

func runChild(args []string) int {
	if args[0] == "merge" {
		if _, err := MergeFiles(args[1], args[2], args[3], at(noon)); err != nil {
			return fail(err)
		}
		return 0
	}
	f, err := OpenFile(args[1], Native)
	if err != nil {
		return fail(err)
	}
	switch args[0] {
	case "barrier":
		return barrierChild(f, args[2])
	case "mutate":
		out, err := f.Update(context.Background(), mutations[args[2]])
		if err != nil {
			return fail(err)
		}
		fmt.Println(out.Word, out.Reason)
		if !out.OK() {
			return 1
		}
		return 0
	}
	return fail(fmt.Errorf("no child %q", args[0]))
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 3
}

// barrierChild tries to get an expired lease, once a line of stdin, at the
// moment that the line names, and what it did not get it tries to release.
func barrierChild(f *File, writer string) int {
	if strings.HasSuffix(writer, "0") || strings.HasSuffix(writer, "5") {
		f.spelling = Compat // the older engine's rules at the same time
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("ready")
	for {
		var start int64
		if _, err := fmt.Scanln(&start); err != nil {
			return 0
		}
		time.Sleep(time.Until(time.Unix(0, start)))
		out, err := f.Update(ctx, func(d *Document) Outcome { return Acquire(d, writer, 60, at(noon)) })
		if err != nil {
			return fail(err)
		}
		words := string(out.Word)
		if !out.OK() {
			out, err = f.Update(ctx, func(d *Document) Outcome { return Release(d, writer) })
			if err != nil {
				return fail(err)
			}
			words += " " + string(out.Word)
		}
		fmt.Println(words)
	}
}
