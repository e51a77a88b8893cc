package ledger

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"beeyard"

	"github.com/google/go-cmp/cmp"
)

func seeds(f *testing.F) {
	for _, c := range loadRecorded(f).Cases {
		for _, s := range c.Steps {
			if s.File != nil {
				f.Add([]byte(*s.File))
				break
			}
		}
	}
	for seed := range 20 {
		d := generator{rand.New(rand.NewPCG(uint64(seed), 2))}.document()
		f.Add(d.Bytes(Native))
		f.Add(d.Bytes(Compat))
	}
	for _, s := range corruptLedgers {
		f.Add([]byte(s.in))
	}
}

// older marks what only the older engine's spelling has and YAML reads
// otherwise: characters that YAML does not let stand, words as keys that YAML
// re-types, floats without a dot.
var older = regexp.MustCompile(`(?i)[\x7f-\x{9f}\x{2028}\x{2029}\x{feff}\x{fffe}\x{ffff}]|(^|\n) *(y|n|yes|no|on|off|true|false|null):|\d[eE]`)

func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		d, err := Read(data)
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("%v for %d bytes", took, len(data))
		}
		if err != nil {
			var c *CorruptError
			if !errors.As(err, &c) || !errors.Is(err, beeyard.ErrCorrupt) || c.Line < 0 {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if d == nil || older.Match(data) {
			return
		}
		w := want(t, d).(map[string]any)
		for name, parse := range map[string]func([]byte) (any, error){"yaml/v3": withV3, "goccy": withGoccy} {
			got, err := parse(data)
			if err != nil {
				t.Fatalf("%s refuses what is accepted: %v\n%q", name, err, data)
			}
			other := got.(map[string]any)
			for _, key := range []string{keySources, keyItems} { // null or absent is an empty section
				if other[key] == nil {
					other[key] = map[string]any{}
				}
			}
			if diff := cmp.Diff(w, any(other)); diff != "" {
				t.Fatalf("%s reads %q differently (-here +there)\n%s", name, data, diff)
			}
		}
	})
}

func FuzzReadWriteRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte) (*Document, error){Read, ReadCompat} {
			d, err := read(data)
			if err != nil || d == nil {
				continue
			}
			for _, s := range []Spelling{Native, Compat} {
				if d.Schema() < 1 || s == Compat && d.Schema() > 1 {
					continue // Compat writes 1, as the older engine does
				}
				out := d.Bytes(s)
				for name, again := range map[string]func([]byte) (*Document, error){"native": Read, "compat": ReadCompat} {
					e, err := again(out)
					if err != nil {
						t.Fatalf("%s refuses what was written: %v\n%q\nfrom %q", name, err, out, data)
					}
					if !MapValue(d.root).Equal(MapValue(e.root)) {
						t.Fatalf("%s reads other values from\n%q\nthan from\n%q", name, out, data)
					}
					if !bytes.Equal(e.Bytes(s), out) {
						t.Fatalf("the second write differs: %q", out)
					}
				}
			}
		}
	})
}

// TestHostileInputIsCheap holds both readings to 100 ms and 64 MiB for 1 MiB.
// The time is the least of a few tries, for the machine may be busy.
func TestHostileInputIsCheap(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIP: time bounds do not hold under the race detector")
	}
	const mib = 1 << 20
	var keys, nested, wide strings.Builder
	for i := 0; keys.Len() < mib; i++ {
		keys.WriteString(strings.Repeat("k", 1+i%3) + string(rune('a'+i%26)) + string(rune(0x4e00+i%20000)) + ": 1\n")
		wide.WriteString("k" + string(rune('a'+(mib-i)%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26)) + ":\n")
	}
	for i := 0; nested.Len() < mib; i++ {
		nested.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	head := "schema_version: 1\n"
	for name, in := range map[string]string{
		"keys": keys.String()[:mib], "nested": nested.String()[:mib], "wide": wide.String()[:min(mib, wide.Len())],
		"same key": strings.Repeat("a: 1\n", mib/5), "brackets": "a: " + strings.Repeat("[", mib), "list": "a: [" + strings.Repeat("1,", mib/2) + "1]",
		"escapes": `a: "` + strings.Repeat(`\u0041`, mib/6) + `"`, "lines": strings.Repeat("\n", mib), "comments": strings.Repeat("#\n", mib/2),
		"quotes": strings.Repeat("\"", mib), "string keys": strings.Repeat(`"a\n`, mib/4), "spaces": strings.Repeat(" ", mib), "word": "a: " + strings.Repeat("w ", mib/2),
		"objects": "a: " + strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500) + strings.Repeat(" ", mib/2), "list of maps": "a: [" + strings.Repeat(`{"b":1,"a":2},`, mib/14) + "1]",
	} {
		for reading, read := range map[string]func([]byte) (*Document, error){"strict": Read, "lenient": ReadCompat} {
			least, most := time.Hour, uint64(0)
			for range 5 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				_, _ = read([]byte(head + in))
				least = min(least, time.Since(start))
				runtime.ReadMemStats(&after)
				most = after.TotalAlloc - before.TotalAlloc
			}
			if least > 100*time.Millisecond || most > 64<<20 {
				t.Errorf("%s, %s: %v and %d MiB", name, reading, least, most>>20)
			}
		}
	}
}
