package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheckRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return "{" + b.String() + last + "}"
	}
	for _, c := range []struct {
		name, in, reason string
		o                Options
		offset           int64
	}{
		{"empty", "", "ends where a value should be", Options{}, 0},
		{"mark", "\xef\xbb\xbf{}", "byte-order mark", Options{}, 0},
		{"duplicate", `{"a":1,"a":2}`, `duplicate key "a"`, Options{}, 7},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, `duplicate key "a"`, Options{}, 7},
		{"duplicate in many", many(`"k3":1`), `duplicate key "k3"`, Options{}, -1},
		{"duplicate after a nested object", `{"a":{"b":1},"b":1,"a":0}`, `duplicate key "a"`, Options{}, 19},
		{"case", `{"Id":1,"id":2}`, "twice when case is ignored", Options{FoldKeys: true}, 8},
		{"case by Kelvin sign", "{\"k\":1,\"\u212a\":2}", "twice when case is ignored", Options{FoldKeys: true}, 7},
		{"case in many", many(`"K3":1`), "twice when case is ignored", Options{FoldKeys: true}, -1},
		{"utf8", "[\"a\xff\"]", "invalid UTF-8", Options{}, 3},
		{"utf8 overlong", "\"\xc0\x80\"", "invalid UTF-8", Options{}, 1},
		{"utf8 surrogate", "\"\xed\xa0\x80\"", "invalid UTF-8", Options{}, 1},
		{"utf8 in key", "{\"\xff\":1}", "invalid UTF-8", Options{}, 2},
		{"utf8 outside", "\xff", "not a JSON value", Options{}, 0},
		{"nan", `[NaN]`, "NaN", Options{}, 1},
		{"infinity", `Infinity`, "Infinity", Options{}, 0},
		{"minus infinity", `-Infinity`, "-Infinity", Options{}, 0},
		{"too large", `1e999`, "too large", Options{}, 0},
		{"too large in full", strings.Repeat("9", 400), "too large", Options{}, 0},
		{"over 64 bits", `18446744073709551616`, "more than 64 bits", Options{Int64: true}, 0},
		{"under 64 bits", `-9223372036854775809`, "more than 64 bits", Options{Int64: true}, 0},
		{"depth", deep(65), "more than 64 levels", Options{}, 64},
		{"depth of 100,000", deep(100_000), "more than 64 levels", Options{}, 64},
		{"depth given", `[[1]]`, "more than 1 levels", Options{MaxDepth: 1}, 1},
		{"size", `"` + strings.Repeat("x", DefaultMaxBytes) + `"`, "the most is", Options{}, 0},
		{"trailing", `{} {}`, "data after", Options{}, 3},
		{"trailing NUL", "{}\x00", "data after", Options{}, 2},
		{"NUL in string", "\"\x00\"", "control character 0x00", Options{}, 1},
		{"newline in string", "\"\n\"", "control character 0x0a", Options{}, 1},
		{"leading zero", `012`, "leading zero", Options{}, 0},
		{"underscore", `1_000`, "data after", Options{}, 1},
		{"hex", `0x1F`, "data after", Options{}, 1},
		{"plus", `+1`, "not a JSON value", Options{}, 0},
		{"dot", `1.`, "ends in its dot", Options{}, 0},
		{"exponent", `1e`, "without its exponent", Options{}, 0},
		{"minus", `-`, "minus sign", Options{}, 0},
		{"lone surrogate", `"\ud800"`, "half of a surrogate", Options{}, 1},
		{"swapped surrogates", `"\udc00\ud800"`, "half of a surrogate", Options{}, 1},
		{"escape", `"\x41"`, "unknown escape", Options{}, 1},
		{"short escape", `"\u12"`, "four hex digits", Options{}, 1},
		{"open string", `"abc`, "does not end", Options{}, 0},
		{"open escape", `"abc\`, "does not end", Options{}, 4},
		{"open list", `[1`, "ends inside", Options{}, 2},
		{"trailing comma", `[1,]`, "not a JSON value", Options{}, 3},
		{"trailing comma in object", `{"a":1,}`, "want a key", Options{}, 7},
		{"single quotes", `{'a':1}`, "want a key", Options{}, 1},
		{"no colon", `{"a" 1}`, "want a colon", Options{}, 5},
		{"merge marker", "<<<<<<< ours\n{}", "not a JSON value", Options{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check([]byte(c.in), c.o)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, c.reason) {
				t.Fatalf("got %v, want %q", err, c.reason)
			}
			if c.offset >= 0 && e.Offset != c.offset {
				t.Errorf("offset %d, want %d", e.Offset, c.offset)
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, in := range []string{
		`null`, ` true `, `false`, `0`, `-0`, `1.5e-3`, `-12E+4`, `""`, `"\u0000 \ud83d\udc1d é 🐝"`,
		`[]`, `{}`, `[1, [2], {"a": {}}]`, "\t{\"a\"\r\n:\n1 , \"b\" : [ ] }\n",
		`{"a":{"a":1},"b":{"a":1}}`, `{"Id":1,"id":2}`, `18446744073709551616`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
	} {
		if err := Check([]byte(in), Options{}); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{`18446744073709551615`, `-9223372036854775808`} {
		if err := Check([]byte(in), Options{Int64: true}); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	if err := Check([]byte(`{"a":1,"a":2}`), Options{LastWins: true}); err != nil {
		t.Error(err)
	}
	if err := Check([]byte(`"\ud800x"`), Options{LoneSurrogates: true}); err != nil {
		t.Error(err)
	}
	if err := Check([]byte("\"\xff\""), Options{Replace: true}); err != nil {
		t.Error(err)
	}
}

func TestUnmarshalWantsExactKeys(t *testing.T) {
	type inner struct {
		Tier string `json:"tier"`
	}
	type embedded struct {
		Extra int `json:"extra"`
	}
	type doc struct {
		ID    string           `json:"task_id"`
		One   *inner           `json:"one"`
		Many  []inner          `json:"many"`
		Named map[string]inner `json:"named"`
		Raw   json.RawMessage  `json:"raw"`
		Next  *doc             `json:"next"`
		embedded
	}
	var d doc
	good := `{"task_id":"a","one":{"tier":"x"},"many":[{"tier":"y"}],"named":{"Tier":{"tier":"z"}},"raw":{"TASK_ID":1},"next":{"task_id":"b"},"other":1,"extra":3}`
	if err := Unmarshal([]byte(good), &d, Options{}); err != nil {
		t.Fatal(err)
	}
	if d.ID != "a" || d.One.Tier != "x" || d.Named["Tier"].Tier != "z" || d.Next.ID != "b" || d.Extra != 3 {
		t.Errorf("read %+v", d)
	}
	for in, reason := range map[string]string{
		`{"Task_ID":"a"}`:             `must be spelled "task_id"`,
		`{"one":{"TIER":"x"}}`:        `must be spelled "tier"`,
		`{"many":[{"Tier":"x"}]}`:     `must be spelled "tier"`,
		`{"named":{"a":{"Tier":""}}}`: `must be spelled "tier"`,
		`{"next":{"next":{"ONE":1}}}`: `must be spelled "one"`,
		`{"extra":"x"}`:               `extra" is a string, want int`,
	} {
		if err := Unmarshal([]byte(in), &d, Options{}); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v, want %q", in, err, reason)
		}
	}
	err := Unmarshal([]byte(`{"one":{"tire":"x"}}`), &d, Options{KnownKeys: true})
	if err == nil || !strings.Contains(err.Error(), `unknown key "tire", did you mean "tier"?`) {
		t.Errorf("got %v", err)
	}
}

func TestErrorsHoldNoValues(t *testing.T) {
	const canary = "CANARY"
	type doc struct {
		N int `json:"n"`
	}
	for _, in := range []string{
		`{"n":"` + canary + `"}`, `{"n":"` + canary, `{"a":"` + canary + `" "b"}`, `"` + canary + `\q"`, canary,
		`["` + canary + "\xff\"]",
	} {
		if err := Unmarshal([]byte(in), new(doc), Options{}); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", in, err)
		}
	}
	err := Unmarshal([]byte(`{"n":123456789123456789123}`), new(doc), Options{})
	if err == nil || strings.Contains(err.Error(), "123456789123456789123") {
		t.Errorf("%v", err)
	}
}

// FuzzCheck holds Check against encoding/json: what Check takes the decoder
// takes, and what it refuses although the decoder takes it has one of the
// reasons that this package exists for.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"x\u00e9",null,true]}`, `{"a":1,"a":2}`, "\"\xff\"", `1e999`, `[[[]]]`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Check(data, Options{})
		valid := json.Valid(data)
		if err == nil && !valid {
			t.Fatalf("took %q", data)
		}
		if err == nil || !valid {
			return
		}
		for _, reason := range []string{"duplicate key", "invalid UTF-8", "too large", "levels deep", "surrogate", "the most is"} {
			if strings.Contains(err.Error(), reason) {
				return
			}
		}
		t.Fatalf("refused %q: %v", data, err)
	})
}

func taskBody(size int) []byte {
	body, err := json.Marshal(map[string]any{
		"task_id": "audit-repo-0042", "tier": "sonnet", "prompt": strings.Repeat("Read the file and list what is odd in it. ", size/44),
		"deps": []string{"a", "b", "c"}, "priority": 5, "meta": map[string]any{"repo": "owner/name", "sha": strings.Repeat("ab", 20), "n": 12.5},
	})
	if err != nil {
		panic(err)
	}
	return body
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{500, 4_000, 64_000} {
		body := taskBody(size)
		b.Run(fmt.Sprintf("task=%d", len(body)), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(body, Options{FoldKeys: true, Int64: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	dense := bytes.Repeat([]byte(`{"id":1,"name":"été","deps":[1,2,3],"ok":true},`), 1000)
	dense = append(append([]byte("["), dense[:len(dense)-1]...), ']')
	b.Run("dense", func(b *testing.B) {
		b.SetBytes(int64(len(dense)))
		for b.Loop() {
			if err := Check(dense, Options{FoldKeys: true, Int64: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
