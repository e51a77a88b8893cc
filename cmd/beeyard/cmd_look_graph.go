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
		defer closing(run, &err)
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
