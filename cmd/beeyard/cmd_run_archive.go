package main

import (
	"fmt"
	"io"
	"path/filepath"

	"beeyard/spool"

	"github.com/spf13/cobra"
)

func (p *program) addRunArchive(parent *cobra.Command) {
	cmd := &cobra.Command{
		Use: "archive [RUN]", Short: "Pack a run into one file",
		Long: `Packs a run into one gzipped file that beeyard run import takes, and reads it back
to prove every digest before it gets its name. --remove then takes the run's
folder away; it is refused while a worker is attached.`,
		Example: "  beeyard run archive audit --output audit-2026.tar.gz",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
	}
	output := cmd.Flags().StringP("output", "o", "", "the file (default: <run>.tar.gz beside the run)")
	var o spool.ArchiveOptions
	cmd.Flags().BoolVar(&o.Remove, "remove", false, "then remove the run's folder")
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		arg := ""
		if len(argv) > 0 {
			arg = argv[0]
		}
		run, err := p.openDir(cmd.Context(), arg, false)
		if err != nil {
			return err
		}
		defer closing(run, &err)
		file := *output
		if file == "" {
			file = run.Location() + ".tar.gz"
		}
		if file, err = filepath.Abs(file); err != nil {
			return fmt.Errorf("resolve %s: %w", *output, err)
		}
		var end func()
		o.Progress, end = p.newCounter("packed")
		rep, err := run.Archive(cmd.Context(), file, o)
		end()
		if err != nil {
			return err
		}
		p.exportNotes(rep.ExportReport)
		return p.show(rep, func(w io.Writer) error {
			text := fmt.Sprintf("%s: %d files, %d bytes packed", rep.File, rep.Files, rep.Size)
			if rep.Removed {
				text += ", the run was removed"
			}
			_, err := fmt.Fprintln(w, text)
			return err
		})
	}
	parent.AddCommand(cmd)
}
