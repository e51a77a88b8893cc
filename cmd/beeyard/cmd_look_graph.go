package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addGraph(root *cobra.Command) {
	formats := []string{"text", "dot", "mermaid", "json"}
	cmd := &cobra.Command{
		Use: "graph [RUN]", Short: "Show what depends on what", GroupID: groupLook,
		Long: `Shows the tasks of a run and what each waits for: as a tree, for Graphviz, for
Mermaid, or as JSON. In the tree a task stands below one that it waits for; one
that stands elsewhere already is marked with ^.`,
		Example: "  beeyard graph audit --format dot | dot -Tsvg > audit.svg",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
	}
	format := cmd.Flags().String("format", "text", strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		if !slices.Contains(formats, *format) {
			return usageText(cmd, "--format is "+strings.Join(formats, ", "))
		}
		arg := ""
		if len(argv) > 0 {
			arg = argv[0]
		}
		run, err := p.readRun(cmd.Context(), arg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, run.Close()) }()
		g, err := readGraph(cmd.Context(), run)
		if err != nil {
			return err
		}
		if p.json || *format == "json" {
			return p.printJSON(g)
		}
		text := map[string]func(*graph, func(beeyard.State) string) string{"text": treeText, "dot": dotText, "mermaid": mermaidText}[*format]
		if _, err := io.WriteString(p.stdout, text(g, p.state)); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	}
	root.AddCommand(cmd)
}

// stateMissing marks a dependency that does not exist.
const stateMissing = beeyard.State("missing")

type node struct {
	TaskID string        `json:"task_id"`
	Type   string        `json:"task_type"`
	State  beeyard.State `json:"state"`
}

// edge: To waits for From.
type edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type graph struct {
	RunID string `json:"run_id"`
	Nodes []node `json:"nodes"`
	Edges []edge `json:"edges"`
}

const graphPage = 10_000

func readGraph(ctx context.Context, run beeyard.Run) (*graph, error) {
	g := &graph{RunID: run.ID(), Nodes: []node{}, Edges: []edge{}}
	known := map[string]bool{}
	for q := (beeyard.Query{Limit: graphPage}); ; {
		page, err := run.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Tasks {
			if known[v.Task.ID] {
				continue
			}
			known[v.Task.ID] = true
			g.Nodes = append(g.Nodes, node{v.Task.ID, v.Task.Type, v.State})
			for _, d := range v.Task.DependsOn {
				g.Edges = append(g.Edges, edge{d, v.Task.ID})
			}
		}
		if page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	for _, e := range g.Edges {
		if known[e.From] {
			continue
		}
		known[e.From] = true
		n := node{TaskID: e.From, State: stateMissing}
		v, err := run.Get(ctx, e.From) // pruned ones are in no list
		switch {
		case err == nil:
			n.State = v.State
		case !errors.Is(err, beeyard.ErrNotFound):
			return nil, err
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g, nil
}

// treeText shows each task once in full, below the first that it waits for.
func treeText(g *graph, state func(beeyard.State) string) string {
	state1 := map[string]beeyard.State{}
	waits := map[string]int{}
	after := map[string][]string{}
	for _, n := range g.Nodes {
		state1[n.TaskID] = n.State
	}
	for _, e := range g.Edges {
		waits[e.To]++
		after[e.From] = append(after[e.From], e.To)
	}
	var b strings.Builder
	shown := map[string]bool{}
	type item struct {
		id    string
		depth int
	}
	// A stack of its own: a chain of 100,000 must not cost a call each.
	show := func(root string) {
		stack := []item{{root, 0}}
		for len(stack) > 0 {
			it := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			again := shown[it.id]
			mark := ""
			if again && len(after[it.id]) > 0 {
				mark = " ^"
			}
			fmt.Fprintf(&b, "%s%s %s%s\n", strings.Repeat("  ", min(it.depth, 40)), plain(it.id, 0), state(state1[it.id]), mark)
			if again {
				continue
			}
			shown[it.id] = true
			for i := len(after[it.id]) - 1; i >= 0; i-- {
				stack = append(stack, item{after[it.id][i], it.depth + 1})
			}
		}
	}
	for _, n := range g.Nodes {
		if waits[n.TaskID] == 0 {
			show(n.TaskID)
		}
	}
	for _, n := range g.Nodes { // what is left is part of a cycle
		if !shown[n.TaskID] {
			show(n.TaskID)
		}
	}
	return b.String()
}

func dotText(g *graph, _ func(beeyard.State) string) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(plain(s, 0)) + `"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quote(g.RunID))
	for _, n := range g.Nodes {
		label := quote(n.TaskID)
		fmt.Fprintf(&b, "  %s [label=%s+\"\\n%s\"];\n", label, label, n.State)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %s -> %s;\n", quote(e.From), quote(e.To))
	}
	b.WriteString("}\n")
	return b.String()
}

func mermaidText(g *graph, _ func(beeyard.State) string) string {
	// Mermaid knows no quoting in names: names are numbers, labels are entities.
	quote := func(s string) string {
		var b strings.Builder
		for _, r := range plain(s, 0) {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.', r == ' ':
				b.WriteRune(r)
			default:
				fmt.Fprintf(&b, "#%d;", r)
			}
		}
		return b.String()
	}
	at := map[string]int{}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, n := range g.Nodes {
		at[n.TaskID] = i
		fmt.Fprintf(&b, "  n%d[\"%s: %s\"]\n", i, quote(n.TaskID), n.State)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  n%d --> n%d\n", at[e.From], at[e.To])
	}
	return b.String()
}
