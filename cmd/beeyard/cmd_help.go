package main

import (
	"fmt"
	"io"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addHelp(root *cobra.Command) {
	// Ours instead of cobra's own, which answers an unknown word with exit 0.
	root.SetHelpCommand(&cobra.Command{
		Use: "help [TOPIC | COMMAND…]", Short: "Explain a topic or a command", GroupID: groupOthers,
		Long: "Explains a command, or one of the topics: " + strings.Join(topicNames(), ", ") + ".",
		Args: args(0, -1),
		ValidArgsFunction: func(_ *cobra.Command, argv []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(argv) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(topicNames(), names(root)...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, argv []string) error {
			if len(argv) == 0 {
				return root.Help()
			}
			if len(argv) == 1 {
				for _, t := range topics() {
					if t.name == argv[0] {
						return p.showTopic(t)
					}
				}
			}
			cmd, rest, err := root.Find(argv)
			if err != nil || len(rest) > 0 || cmd == root {
				return &beeyard.Error{Op: "help", ID: strings.Join(argv, " "), Err: beeyard.Because(beeyard.ErrUsage, "there is no such command or topic"),
					Hint: "topics are " + strings.Join(topicNames(), ", ") + "; beeyard help lists the commands"}
			}
			return cmd.Help()
		},
	})
	text := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, argv []string) {
		if !p.json {
			text(cmd, argv)
			if cmd == root {
				fmt.Fprintf(p.stdout, "\nTopics, for beeyard help TOPIC: %s\n", strings.Join(topicNames(), ", "))
			}
			return
		}
		var b strings.Builder
		cmd.SetOut(&b)
		text(cmd, argv)
		cmd.SetOut(p.stdout)
		_ = p.printJSON(map[string]string{"command": cmd.CommandPath(), "text": b.String()}) // stdout is gone: nobody reads
	})
}

func (p *program) showTopic(t topic) error {
	return p.show(map[string]string{"topic": t.name, "text": t.text()}, func(w io.Writer) error {
		_, err := io.WriteString(w, t.text())
		return err
	})
}

func topicNames() []string {
	var all []string
	for _, t := range topics() {
		all = append(all, t.name)
	}
	return all
}
