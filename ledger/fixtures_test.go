package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is testdata/older-engine.json: sequences of commands given to the
// older engine, with its words, payloads and the file after each.
type recorded struct {
	Cases []struct {
		Seed  int
		Steps []step
	}
	Legacy json.RawMessage
}

type step struct {
	Args    []string
	Code    int
	File    *string // nil: there is none
	Payload any
	Word    string
}

func loadRecorded(t testing.TB) recorded {
	t.Helper()
	data, err := os.ReadFile("testdata/older-engine.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// command turns a recorded argument list into a SweepState.
func command(t *testing.T, f *File, args []string, legacy []byte) SweepState {
	t.Helper()
	c := SweepState{Command: args[0], File: f, TTLMinutes: DefaultTTL, Legacy: legacy}
	for i := 1; i+1 < len(args); i += 2 {
		v := args[i+1]
		switch args[i] {
		case "--id":
			c.ID = v
		case "--source":
			c.Source = v
		case "--writer":
			c.Writer = v
		case "--json":
			c.JSON = v
		case "--to":
			c.To = v
		case "--past-item":
			c.PastItem = v
		case "--outcome":
			c.Outcome = v
		case "--counts":
			c.Counts = v
		case "--timestamp":
			c.Timestamp = v
		case "--now":
			c.Now = NowText(v)
		case "--ttl-minutes":
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			c.TTLMinutes = n
		case "--source-map":
			if err := json.Unmarshal([]byte(v), &c.Channels); err != nil {
				t.Fatal(err)
			}
		case "--file":
		default:
			t.Fatalf("unknown flag %s", args[i])
		}
	}
	return c
}

func TestOlderEngine(t *testing.T) {
	r := loadRecorded(t)
	steps := 0
	for _, c := range r.Cases {
		t.Run(fmt.Sprintf("seed=%d", c.Seed), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state.yml")
			f, err := OpenFile(path, Compat)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range c.Steps {
				steps++
				replay(t, f, i, s, r.Legacy)
				if t.Failed() {
					return
				}
			}
		})
	}
	if steps != 360 {
		t.Errorf("%d steps, want 360", steps)
	}
}

func replay(t *testing.T, f *File, i int, s step, legacy []byte) {
	t.Helper()
	if s.Args[0] == "write-file" {
		if err := os.WriteFile(f.Path(), []byte(s.Args[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	out, err := command(t, f, s.Args, legacy).Run(t.Context())
	if err != nil {
		t.Fatalf("step %d %q: %v", i, s.Args, err)
	}
	if string(out.Word) != s.Word {
		t.Fatalf("step %d %q: %s %s, want %s", i, s.Args, out.Word, out.Reason, s.Word)
	}
	if d := cmp.Diff(s.Payload, payload(t, out)); d != "" {
		t.Errorf("step %d %q: payload (-want +got)\n%s", i, s.Args, d)
	}
	var got *string
	data, err := os.ReadFile(f.Path())
	if err == nil {
		got = new(string(data))
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.File, got); d != "" {
		t.Errorf("step %d %q: file (-want +got)\n%s", i, s.Args, d)
	}
}

func payload(t *testing.T, out Outcome) (v any) {
	t.Helper()
	if out.Payload == nil {
		return nil
	}
	data, err := json.Marshal(MapValue(out.Payload))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
