package main

import (
	"fmt"
	"io"
	"strings"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addCompletion(root *cobra.Command) {
	// Ours instead of cobra's own, which answers an unknown shell with exit 0.
	root.CompletionOptions.DisableDefaultCmd = true
	shells := []string{"bash", "zsh", "fish", "powershell"}
	root.AddCommand(&cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print a shell's completion script", GroupID: groupOthers,
		Long: `Prints the script that completes commands, flags, runs, tasks and states.

  bash:        source <(beeyard completion bash)
  zsh:         beeyard completion zsh > "${fpath[1]}/_beeyard"
  fish:        beeyard completion fish > ~/.config/fish/completions/beeyard.fish
  powershell:  beeyard completion powershell | Out-String | Invoke-Expression`,
		Args: args(1, 1), ValidArgs: shells,
		RunE: func(cmd *cobra.Command, argv []string) error {
			var b strings.Builder
			var err error
			switch argv[0] {
			case "bash":
				err = root.GenBashCompletionV2(&b, true)
			case "zsh":
				err = root.GenZshCompletion(&b)
			case "fish":
				err = root.GenFishCompletion(&b, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(&b)
			default:
				return usageText(cmd, beeyard.Quote(argv[0])+" is none of "+strings.Join(shells, ", "))
			}
			if err != nil {
				return fmt.Errorf("write completion: %w", err)
			}
			return p.show(map[string]string{"shell": argv[0], "script": b.String()}, func(w io.Writer) error {
				_, err := io.WriteString(w, b.String())
				return err
			})
		},
	})
	_ = root.RegisterFlagCompletionFunc("run", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return p.runWords(cmd, word)
	})
}

// completeRuns offers the ids of the runs under the root.
func (p *program) completeRuns(cmd *cobra.Command, argv []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(argv) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.runWords(cmd, word)
}

func (p *program) runWords(cmd *cobra.Command, word string) ([]string, cobra.ShellCompDirective) {
	root, err := p.rootPath()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	infos, err := p.runsUnder(cmd.Context(), root)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var words []string
	for _, i := range infos {
		if strings.HasPrefix(i.ID, word) {
			words = append(words, plain(i.ID, 0)+"\t"+countsLine(i.Counts))
		}
	}
	return words, cobra.ShellCompDirectiveDefault // a path is as good
}

// completeMost bounds what is offered: more helps nobody.
const completeMost = 100

// completeTasks offers the tasks in these states, all without any.
func (p *program) completeTasks(states ...beeyard.State) cobra.CompletionFunc {
	return func(cmd *cobra.Command, argv []string, word string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		p.quiet = true
		run, err := p.readRun(cmd.Context(), "")
		if err != nil {
			return nil, none
		}
		defer func() { _ = run.Close() }() // only read
		page, err := run.List(cmd.Context(), beeyard.Query{States: states, Text: word, Limit: completeMost})
		if err != nil {
			return nil, none
		}
		var words []string
		for _, v := range page.Tasks {
			if id := v.Task.ID; strings.HasPrefix(id, word) && plain(id, 0) == id {
				words = append(words, id+"\t"+string(v.State)+" "+plain(v.Task.Type, 30))
			}
		}
		return words, none
	}
}
