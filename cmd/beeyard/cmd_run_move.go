package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

// newCounter draws how many files were read or written, on a terminal.
func (p *program) newCounter(verb string) (tell func(files int, bytes int64), end func()) {
	if !p.progress() {
		return nil, func() {}
	}
	return func(files int, bytes int64) {
			if files%64 == 0 {
				fmt.Fprintf(p.stderr, "\r\x1b[K%s %d files, %d MiB", verb, files, bytes>>20)
			}
		}, func() {
			fmt.Fprint(p.stderr, "\r\x1b[K")
		}
}

func (p *program) addRunExport(parent *cobra.Command) {
	cmd := &cobra.Command{
		Use: "export [RUN]", Short: "Write a run as one stream",
		Long: `Writes the whole run as a tar that beeyard run import takes: tasks with their
history, checkpoint, artifacts, events. Running tasks go out as pending, so a run
that is being worked on is refused unless --live. To stdout, or to --output.`,
		Example: "  beeyard run export audit | gzip > audit.tar.gz",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
	}
	output := cmd.Flags().StringP("output", "o", "-", "file to write; - is stdout")
	force := cmd.Flags().Bool("force", false, "replace the file")
	live := cmd.Flags().Bool("live", false, "also while workers are at it: what they have may then run in both places")
	cmd.RunE = func(cmd *cobra.Command, argv []string) error {
		arg := ""
		if len(argv) > 0 {
			arg = argv[0]
		}
		if *output == "-" && p.json {
			return usageText(cmd, "with --json it needs --output FILE: stdout is for the answer")
		}
		if *output == "-" && isTerminal(p.stdout) {
			return usageText(cmd, "stdout is a terminal: it needs --output FILE, or a pipe")
		}
		return p.export(cmd.Context(), arg, *output, *force, *live)
	}
	parent.AddCommand(cmd)
}

func (p *program) export(ctx context.Context, arg, output string, force, live bool) (err error) {
	run, err := p.openDir(ctx, arg, false)
	if err != nil {
		return err
	}
	defer closing(run, &err)
	o := spool.ExportOptions{Live: live}
	var end func()
	o.Progress, end = p.newCounter("exported")
	var rep spool.ExportReport
	write := func(w io.Writer) (err error) {
		rep, err = run.Export(ctx, w, o)
		return err
	}
	if output == "-" {
		w := bufio.NewWriterSize(p.stdout, 256<<10)
		err = write(w)
		if err == nil {
			err = w.Flush()
		}
		end()
		return err
	}
	err = durable.WriteNamed(output, 0o600, force, write)
	end()
	if err != nil {
		if rep.RunID == "" {
			return writeError("export run", output, err)
		}
		return err
	}
	out := struct {
		spool.ExportReport
		File string `json:"file"`
	}{rep, output}
	p.exportNotes(rep)
	return p.show(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %d files, %d bytes\n", output, rep.Files, rep.Bytes)
		return err
	})
}

func (p *program) exportNotes(rep spool.ExportReport) {
	if n := len(rep.Claims); n > 0 {
		p.notef("%d running tasks are in it as pending", n)
	}
	if n := len(rep.Skipped); n > 0 {
		p.notef("%d names are no regular files and are not in it: %s", n, plain(strings.Join(rep.Skipped, " "), 300))
	}
	if rep.Changed {
		p.notef("tasks moved meanwhile: each is in it once, but it is not one instant's state")
	}
}

// writeError is that of a file that the user named for writing; the domain's
// own errors pass as they are.
func writeError(op, file string, err error) error {
	if code, _ := codeOf(err); code != exitFailed {
		return err
	}
	e := &beeyard.Error{}
	if errors.As(err, &e) {
		return err
	}
	return namedWrite(op, file, err)
}

func namedWrite(op, file string, err error) error {
	named := namedError(op, file, err)
	if errors.Is(named, beeyard.ErrExists) {
		return &beeyard.Error{Op: op, ID: file, Err: beeyard.Because(beeyard.ErrExists, "there is such a file"), Hint: "choose another name, or replace it with --force"}
	}
	if errors.Is(named, beeyard.ErrUsage) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return named
}

func (p *program) addRunImport(parent *cobra.Command) {
	cmd := &cobra.Command{
		Use: "import FILE (NAME | --at FOLDER)", Short: "Make a run from an export",
		Long: `Makes a run from what beeyard run export or archive wrote, plain or gzipped; - is
stdin. NAME is its folder under the root; its id stays. Nothing is to be seen of
the run before every digest has been proven. It can be killed and begun again.`,
		Example: "  beeyard run import audit.tar.gz audit",
		Args:    args(1, 2),
	}
	folder := cmd.Flags().String("at", "", "the run's own folder, anywhere")
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		if (*folder == "") == (len(argv) < 2) {
			return usageText(cmd, "it needs either NAME or --at FOLDER")
		}
		path, err := *folder, error(nil)
		if path != "" {
			path, err = filepath.Abs(path)
		} else {
			path, err = p.newRunPath(argv[1])
		}
		if err != nil {
			return err
		}
		in, err := p.openInput("import run", argv[0])
		if err != nil {
			return err
		}
		defer closing(in, &err)
		tell, end := p.newCounter("imported")
		rep, err := spool.Import(cmd.Context(), in, path, spool.ImportOptions{Progress: tell})
		end()
		if err != nil {
			return err
		}
		return p.show(rep, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: %d files\n", rep.Path, rep.Files)
			return err
		})
	}
	parent.AddCommand(cmd)
}

// newRunPath is where a run of that name is to be made.
func (p *program) newRunPath(name string) (string, error) {
	if err := beeyard.CheckID("run", name); err != nil {
		return "", err
	}
	root, err := p.rootPath()
	return filepath.Join(root, name), err
}
