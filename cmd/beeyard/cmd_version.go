package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

func (p *program) addVersion(root *cobra.Command) {
	root.SetVersionTemplate("beeyard {{.Version}}\n")
	root.AddCommand(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: groupOthers,
		Args:    args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return p.show(v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "beeyard %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			})
		},
	})
}
