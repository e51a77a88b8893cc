package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"beeyard"
)

type memoryArtifact struct {
	*bytes.Reader
	size int64
}

func (m memoryArtifact) Close() error               { return nil }
func (m memoryArtifact) Info() beeyard.ArtifactInfo { return beeyard.ArtifactInfo{Size: m.size} }

func TestTailStart(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"a\nb\nc\n", 1, "c\n"}, {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc\n", 3, "a\nb\nc\n"}, {"a\nb\nc\n", 9, "a\nb\nc\n"},
		{"a\nb", 1, "b"}, {"a\n\n\n", 2, "\n\n"}, {"", 3, ""}, {"a\nb\n", 0, "a\nb\n"},
		{"a\n" + long + "\nb\n", 2, long + "\nb\n"}, {long, 1, long},
	} {
		a := memoryArtifact{bytes.NewReader([]byte(c.text)), int64(len(c.text))}
		at, err := tailStart(a, c.n)
		if err != nil || c.text[at:] != c.want {
			t.Errorf("%d lines of %.20q…: %.20q… %v", c.n, c.text, c.text[at:], err)
		}
	}
}

// TestTameWriterAtEveryCut: however the text is cut into writes, the same comes out.
func TestTameWriterAtEveryCut(t *testing.T) {
	const in, want = "é\x1b[1m日本\u202ex\r\ny\xffz", "é\ufffd[1m日本\ufffdx\ny\ufffdz"
	for cut := range len(in) + 1 {
		var out bytes.Buffer
		w := &tameWriter{w: &out}
		for _, part := range []string{in[:cut], in[cut:]} {
			if n, err := io.WriteString(w, part); err != nil || n != len(part) {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if out.String() != want {
			t.Errorf("cut at %d: %q", cut, out.String())
		}
	}
}

func TestListFlag(t *testing.T) {
	l := []string{"default"}
	f := &listFlag{to: &l}
	for _, s := range []string{"a,b", " c ,, d", "e\nf"} {
		if err := f.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"a", "b", "c", "d", "e\nf"}; !slices.Equal(l, want) {
		t.Errorf("%q", l)
	}
	if f.String() != "a,b,c,d,e\nf" {
		t.Errorf("String: %q", f.String())
	}
}

// TestDrawnGraphsQuoteWhatOthersWrote: ids that older programs accept.
func TestDrawnGraphsQuoteWhatOthersWrote(t *testing.T) {
	evil := `x"]; click n0 "javascript:alert(1)`
	g := &graph{RunID: `r"\`, Nodes: []node{{TaskID: evil, State: "ready"}, {TaskID: "b\n\x1b", State: "blocked"}}, Edges: []edge{{From: evil, To: "b\n\x1b"}}}
	plainState := func(s beeyard.State) string { return string(s) }
	dot := dotText(g, plainState)
	if !strings.Contains(dot, `"x\"]; click n0 \"javascript:alert(1)"`) || !strings.Contains(dot, `digraph "r\"\\"`) {
		t.Errorf("dot: %s", dot)
	}
	mermaid := mermaidText(g, plainState)
	if strings.Contains(mermaid, `x"`) || strings.Contains(mermaid, "click n0 \"") || !strings.Contains(mermaid, "n0 --> n1") {
		t.Errorf("mermaid: %s", mermaid)
	}
	for _, text := range []string{dot, mermaid, treeText(g, plainState)} {
		if strings.Contains(text, "\x1b") {
			t.Errorf("control characters: %q", text)
		}
	}
}

// TestTreeOfALongChain: 100,000 tasks in a row cost neither a deep stack nor a
// line that grows with each.
func TestTreeOfALongChain(t *testing.T) {
	const n = 100_000
	g := &graph{}
	for i := range n {
		id := string(rune('a'+i%26)) + strings.Repeat("x", i%7) + time.Duration(i).String()
		g.Nodes = append(g.Nodes, node{TaskID: id, State: "blocked"})
		if i > 0 {
			g.Edges = append(g.Edges, edge{From: g.Nodes[i-1].TaskID, To: id})
		}
	}
	text := treeText(g, func(s beeyard.State) string { return string(s) })
	if lines := strings.Count(text, "\n"); lines != n {
		t.Errorf("%d lines", lines)
	}
	if len(text) > 200*n {
		t.Errorf("%d bytes", len(text))
	}
}
