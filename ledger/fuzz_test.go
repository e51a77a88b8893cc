package ledger

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"regexp"
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
// re-types, floats without a dot, integers of more than 64 bits.
var older = regexp.MustCompile(`(?i)[\x7f-\x{9f}\x{2028}\x{2029}\x{feff}\x{fffe}\x{ffff}]|(^|\n) *(y|n|yes|no|on|off|true|false|null):|\d[eE]|\d{19}`)

// fuzzMost keeps one try short; what large input costs is TestHostileInputIsCheap's.
const fuzzMost = 64 << 10

func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzMost {
			return
		}
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
		if len(data) > fuzzMost {
			return
		}
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
