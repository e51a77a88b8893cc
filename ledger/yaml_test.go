package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	goccy "github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"
)

// plain turns what a parser read into one form: numbers by value and kind, so
// that 1 and 1.0 stay apart, all else as it is.
func plain(v any) any {
	switch x := v.(type) {
	case nil, bool, string:
		return v
	case float64:
		return fmt.Sprintf("float %x", math.Float64bits(x))
	case json.Number:
		return number2(string(x))
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = plain(e)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			out[k] = plain(e)
		}
		return out
	case map[any]any:
		out := map[any]any{}
		for k, e := range x {
			out[k] = plain(e)
		}
		return out
	default: // int, int64, uint64
		return fmt.Sprintf("int %v", x)
	}
}

func number2(text string) string {
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return "int " + n.String()
	}
	var f float64
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return "bad " + text
	}
	return fmt.Sprintf("float %x", math.Float64bits(f))
}

// want is the document as this package reads it.
func want(t testing.TB, d *Document) any {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return plain(v)
}

func withV3(data []byte) (any, error) {
	var v any
	err := yaml.Unmarshal(data, &v)
	return plain(v), err
}

func withGoccy(data []byte) (any, error) {
	var v any
	err := goccy.Unmarshal(data, &v)
	return plain(v), err
}

func documents(t testing.TB, n int) map[string]*Document {
	docs := map[string]*Document{}
	for seed := range n {
		docs[fmt.Sprintf("seed=%d", seed)] = generator{rand.New(rand.NewPCG(uint64(seed), 1))}.document()
	}
	all := NewDocument()
	for i, s := range hostile {
		item := &Map{}
		item.Set(s, StringValue(s))
		item.Set("list", listValue([]Value{StringValue(s), MapValue(item.clone())}))
		all.Items().Set(fmt.Sprintf("%s:%d", s, i), MapValue(item))
		all.Items().Set(s, MapValue(item))
	}
	docs["hostile"] = all
	large := NewDocument()
	large.Items().Set("s:1", MapValue(fields("body", strings.Repeat("Ünïcode text: # - \"q\" \\ \n", 4500))))
	large.Items().Set("s:2", deep(60))
	docs["large"] = large
	return docs
}

func TestEveryParserReadsWhatIsWritten(t *testing.T) {
	for name, d := range documents(t, 300) {
		data := d.Bytes(Native)
		again, err := Read(data)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		w := want(t, d)
		if diff := cmp.Diff(w, want(t, again)); diff != "" {
			t.Fatalf("%s: read back (-want +got)\n%s", name, diff)
		}
		if string(again.Bytes(Native)) != string(data) {
			t.Fatalf("%s: a second write differs", name)
		}
		for parser, parse := range map[string]func([]byte) (any, error){"yaml/v3": withV3, "goccy": withGoccy} {
			got, err := parse(data)
			if err != nil {
				t.Errorf("%s: %s: %v", name, parser, err)
				continue
			}
			if diff := cmp.Diff(w, got); diff != "" {
				t.Errorf("%s: %s (-want +got)\n%s", name, parser, diff)
			}
		}
	}
}

const pyRead = `
import json, struct, sys, yaml
def plain(v):
    if v is None or isinstance(v, (bool, str)): return v
    if isinstance(v, int): return "int %d" % v
    if isinstance(v, float): return "float %x" % struct.unpack(">Q", struct.pack(">d", v))
    if isinstance(v, list): return [plain(e) for e in v]
    if isinstance(v, dict):
        assert all(isinstance(k, str) for k in v), [k for k in v if not isinstance(k, str)]
        return {k: plain(e) for k, e in v.items()}
    raise TypeError(type(v))
for path in sys.argv[1:]:
    with open(path, encoding="utf-8", newline="") as f:
        print(json.dumps(plain(yaml.safe_load(f))))
`

func TestPyYAMLReadsWhatIsWritten(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "import yaml").CombinedOutput(); err != nil {
		t.Skipf("SKIP: no PyYAML here: %v %s", err, out)
	}
	docs := documents(t, 60)
	dir := t.TempDir()
	args := []string{"-c", pyRead}
	var names []string
	for name, d := range docs {
		path := filepath.Join(dir, strings.ReplaceAll(name, "=", "-")+".yml")
		if err := os.WriteFile(path, d.Bytes(Native), 0o600); err != nil {
			t.Fatal(err)
		}
		names, args = append(names, name), append(args, path)
	}
	cmd := exec.CommandContext(t.Context(), "python3", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(names) {
		t.Fatalf("%d answers for %d files", len(lines), len(names))
	}
	for i, name := range names {
		var got any
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want(t, docs[name]), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestBareWordsAreStringsEverywhere: what a person may write without quotes, and
// what must not be taken so.
func TestBareWordsAreStringsEverywhere(t *testing.T) {
	taken := 0
	for _, word := range append([]string{"inf", "Inf", "nan", "NaN", "Infinity", "None", "nil", "undefined", "t", "f", "T", "F", "e5", "E5", "_1", "x0", "a b", "a - b", "a.b",
		"b+c", "@x", "a@b", "a/b", "TRUE", "tRUE", "nULL", "oN", "ON", "Off", "yES", "a-", "a.", "_", "__", "e-5", "i", "O7", "b1010", "l e a p"}, hostile...) {
		data := []byte("schema_version: 1\nitems: {}\nsources: {}\nx: " + word + "\n")
		d, err := Read(data)
		if err != nil || word == "1e+16" { // as the older engine writes it
			continue
		}
		w := want(t, d)
		for name, parse := range map[string]func([]byte) (any, error){"yaml/v3": withV3, "goccy": withGoccy} {
			if got, err := parse(data); err != nil || !cmp.Equal(w, got) {
				t.Errorf("%s reads %q differently: %v %v", name, word, got, err)
			}
		}
		taken++
	}
	if taken < 20 {
		t.Errorf("only %d words were taken", taken)
	}
}
