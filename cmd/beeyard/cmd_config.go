package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (p *program) addConfig(root *cobra.Command) {
	config := &cobra.Command{
		Use: "config", Short: "What is configured, and where", GroupID: groupOthers,
		Long: "Settings come, the first that has one wins, from: a flag; a variable BEEYARD_…;\nthe nearest beeyard.yaml upward; ~/.config/beeyard/config.yaml; a default.",
	}
	config.AddCommand(&cobra.Command{
		Use: "show", Short: "Show each setting's value and where it came from",
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.conf()
			if err != nil {
				return err
			}
			type row struct {
				Key    string `json:"key"`
				Value  string `json:"value"`
				Source string `json:"source"`
				Env    string `json:"env"`
				Doc    string `json:"doc"`
			}
			var rows []row
			for _, s := range settings() {
				v := c.get(s.key, cmd.Flags())
				rows = append(rows, row{s.key, v.text, v.source, s.env(), s.doc})
			}
			return p.show(rows, func(w io.Writer) error {
				return table(w, func(w io.Writer) {
					for _, r := range rows {
						shown := r.Value
						if shown == "" {
							shown = "-"
						}
						fmt.Fprintf(w, "%s\t%s\t%s\n", r.Key, plain(shown, 60), r.Source)
					}
				})
			})
		},
	})
	root.AddCommand(config)
}
