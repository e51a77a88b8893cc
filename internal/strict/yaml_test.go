package strict

import (
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestYAMLRefuses(t *testing.T) {
	for _, c := range []struct {
		name, in, reason string
		line             int
		o                Options
	}{
		{"mark", "\xef\xbb\xbfa: 1\n", "byte-order mark", 1, Options{}},
		{"utf8", "a: 1\nb: \xff\n", "invalid UTF-8", 2, Options{}},
		{"anchor", "a: 1\nb: &x 2\n", "an anchor", 2, Options{}},
		{"alias bomb", "a: &a [x, x]\nb: &b [*a, *a]\n", "an anchor", 1, Options{}},
		{"tag", "a: 1\nb: !!str 2\n", "a tag", 2, Options{}},
		{"local tag", "a: !run x\n", "a tag", 1, Options{}},
		{"second document", "a: 1\n---\nb: 2\n", "second document", 2, Options{}},
		{"directive", "%YAML 1.1\n---\na: 1\n", "directive", 1, Options{}},
		{"duplicate", "a: 1\nb: 2\na: 3\n", `duplicate key "a", first on line 1`, 3, Options{}},
		{"duplicate by quotes", "a: 1\n\"a\": 3\n", `duplicate key "a"`, 2, Options{}},
		{"nested duplicate", "a:\n  - b: 1\n    b: 2\n", `duplicate key "b"`, 3, Options{}},
		{"merge key", "a:\n  <<: {b: 1}\n", "merge key", 2, Options{}},
		{"map as key", "? {a: 1}\n: 2\n", "not a plain word", 1, Options{}},
		{"octal", "a: 1\nmode: 0755\n", "not decimal", 2, Options{}},
		{"octal 1.2", "mode: 0o755\n", "not decimal", 1, Options{}},
		{"hex", "a: 0x1F\n", "not decimal", 1, Options{}},
		{"underscore", "a: 1_000\n", "not decimal", 1, Options{}},
		{"nan", "a: .nan\n", "not decimal", 1, Options{}},
		{"infinity", "a: -.inf\n", "not decimal", 1, Options{}},
		{"64 bits", "a: 9223372036854775808\n", "more than 64 bits", 1, Options{}},
		{"tab", "a:\n\tb: 1\n", "not YAML", 2, Options{}},
		{"conflict", "a: 1\n<<<<<<< ours\nb: 2\n", "not YAML", 2, Options{}},
		{"depth", strings.Repeat("[", 66) + strings.Repeat("]", 66), "more than 64 levels", 1, Options{}},
		{"depth in blocks", strings.Repeat("- ", 70) + "x", "more than 64 levels", 1, Options{}},
		{"depth of 100,000", strings.Repeat("[", 100_000), "depth", 1, Options{MaxNodes: 1 << 30}},
		{"nodes", "[" + strings.Repeat("a,", 200_000) + "]", "more than 50000 nodes", 1, Options{}},
		{"size", strings.Repeat("#\n", 1<<20), "the most is", 1, Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := YAML([]byte(c.in), c.o)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, c.reason) {
				t.Fatalf("got %v %v, want %q", n, err, c.reason)
			}
			if e.Line != c.line {
				t.Errorf("line %d, want %d: %v", e.Line, c.line, err)
			}
		})
	}
}

func TestYAMLAccepts(t *testing.T) {
	for _, in := range []string{"", "# only a comment\n", "---\n", "\n\n"} {
		if n, err := YAML([]byte(in), Options{}); n != nil || err != nil {
			t.Errorf("%q: %v %v", in, n, err)
		}
	}
	in := "root: /var/bees # here\nlist: [1, -2.5, 1e3, 'x', \"y\"]\ntext: |\n  &not *an !anchor [[[ {{{\n  --- %\non: yes\nwhen: 2026-07-02\n"
	n, err := YAML([]byte(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := UnknownKey(n, []string{"root", "list", "text", "on", "when"}); err != nil {
		t.Error(err)
	}
	err = UnknownKey(n, []string{"root", "lists", "text", "on", "when"})
	var e *Error
	if !errors.As(err, &e) || e.Line != 2 || !strings.Contains(e.Reason, `did you mean "lists"?`) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownSuggestsOnlyWhatIsNear(t *testing.T) {
	known := []string{"tier", "prompt", "depends_on"}
	for name, want := range map[string]string{"tire": "tier", "TIER": "tier", "depend_on": "depends_on", "xyzzy": "", "id": "", strings.Repeat("a", 100_000): ""} {
		got := Unknown("key", name, known)
		if strings.Contains(got, "did you mean") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: %s", clip(name), got)
		}
	}
}

// cpuTime is what this process has used of the processors.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// costs fails when reading took more than hostile input may take: 100 ms and
// 64 MiB for 1 MiB. The time is the least of a few tries, and of the clock's
// and the processor's, for the machine may be busy.
func costs(t *testing.T, name string, read func()) {
	t.Helper()
	least, bytes := time.Hour, uint64(0)
	const limit = 100 * time.Millisecond
	for try := 0; try < 20 && least > limit; try++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start, cpu := time.Now(), cpuTime(t)
		read()
		least = min(least, time.Since(start), cpuTime(t)-cpu)
		runtime.ReadMemStats(&after)
		bytes = after.TotalAlloc - before.TotalAlloc
	}
	if least > limit || bytes > 64<<20 {
		t.Errorf("%s: %v and %d MiB", name, least, bytes>>20)
	}
}

func TestHostileInputIsCheap(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIP: time bounds do not hold under the race detector")
	}
	const mib = 1 << 20
	for name, in := range map[string]string{
		"brackets": strings.Repeat("[", mib), "dashes": strings.Repeat("- ", mib/2), "list": "[" + strings.Repeat("a,", mib/2-1),
		"list at the cap": "[" + strings.Repeat("a,", 49_990) + "]", "questions": strings.Repeat("? ", mib/2),
		"maps": strings.Repeat("{a: ", mib/4), "newlines": strings.Repeat("\n", mib), "quote": "\"" + strings.Repeat("\n", mib-1),
		"words": strings.Repeat("word ", mib/5), "anchors": strings.Repeat("&a ", mib/3), "spaces": strings.Repeat(" ", mib),
		"map at the cap": strings.Repeat("aaaaaaaaaa: b\n", 24_990), "comment": strings.Repeat("#", mib), "braces": strings.Repeat("{", mib),
	} {
		costs(t, "YAML "+name, func() { _, _ = YAML([]byte(in), Options{}) })
		costs(t, "JSON "+name, func() { _ = Check([]byte(in), Options{FoldKeys: true}) })
	}
	var keys strings.Builder
	for i := range 110_000 {
		keys.WriteString(`"` + string(rune('a'+i%26)) + string(rune(0x100+i/26)) + `":1,`)
	}
	object := "{" + keys.String()[:keys.Len()-1] + "}"
	costs(t, "JSON keys", func() {
		if err := Check([]byte(object), Options{}); err != nil {
			t.Error(err)
		}
	})
	costs(t, "JSON folded keys", func() { _ = Check([]byte(object), Options{FoldKeys: true}) })
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{"a: 1\n", "- [x, {y: z}]\n", "&a *a", "a: |\n  b\n", "? a\n: b\n", "<<: {}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return // what large input costs is TestHostileInputIsCheap's
		}
		n, err := YAML(data, Options{})
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1) {
			t.Fatalf("%q: %v without a line", data, err)
		}
		if err == nil && n != nil && n.Line < 1 {
			t.Fatalf("%q: no line", data)
		}
	})
}
