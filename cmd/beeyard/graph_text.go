package main

import (
	"fmt"
	"strings"

	"beeyard"
)

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
