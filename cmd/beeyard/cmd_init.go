package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

func (p *program) addInit(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "init [DIR]", Short: "Make a root and a configuration file here", GroupID: groupRuns,
		Long: `Makes .swarm/, the folder that holds runs, and a commented beeyard.yaml, in DIR or
the current folder. What is there already is left as it is.`,
		Example: "  beeyard init && beeyard run new audit",
		Args:    args(0, 1),
		RunE: func(_ *cobra.Command, argv []string) error {
			dir := "."
			if len(argv) > 0 {
				dir = argv[0]
			}
			return p.init(dir)
		},
	})
}

type initResult struct {
	Root    string   `json:"root"`
	Config  string   `json:"config"`
	Created []string `json:"created"`
}

func (p *program) init(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", dir, err)
	}
	if !durable.IsFolder(abs) {
		return &beeyard.Error{Op: "init", ID: dir, Err: beeyard.Because(beeyard.ErrNotFound, "there is no such folder")}
	}
	out := initResult{Root: filepath.Join(abs, spool.RootName), Config: filepath.Join(abs, "beeyard.yaml"), Created: []string{}}
	if !durable.IsFolder(out.Root) {
		d, err := durable.MkdirAll(out.Root, 0o700)
		if err == nil {
			err = d.Close()
		}
		if err != nil {
			return initError(out.Root, err)
		}
		out.Created = append(out.Created, out.Root)
	}
	err = durable.WriteNamed(out.Config, 0o644, false, func(w io.Writer) error {
		_, err := io.WriteString(w, sampleConfig())
		return err
	})
	switch {
	case err == nil:
		out.Created = append(out.Created, out.Config)
	case !errors.Is(err, fs.ErrExist):
		return initError(out.Config, err)
	}
	return p.show(out, func(w io.Writer) error {
		for _, path := range out.Created {
			if _, err := fmt.Fprintln(w, "made "+path); err != nil {
				return err
			}
		}
		if len(out.Created) == 0 {
			p.notef("%s and %s are there already", out.Root, out.Config)
		}
		return nil
	})
}

func initError(path string, err error) error {
	if errors.Is(err, durable.ErrUnsafe) || errors.Is(err, fs.ErrPermission) {
		return &beeyard.Error{Op: "init", ID: path, Err: fmt.Errorf("%w: %w", beeyard.ErrNotAllowed, err)}
	}
	return fmt.Errorf("init: %w", err)
}

// sampleConfig is a configuration file in which every setting is a comment
// with its default, so that it changes nothing until somebody edits it.
func sampleConfig() string {
	var b strings.Builder
	b.WriteString("# beeyard: settings for this folder and those below it. Each line shows a default;\n# remove the '#' to change one. A flag or BEEYARD_… in the environment wins.\n")
	in := ""
	for _, s := range settings() {
		group, name, nested := strings.Cut(s.key, ".")
		indent := ""
		if nested {
			if group != in {
				fmt.Fprintf(&b, "\n# %s:\n", group)
				in = group
			}
			indent = "  "
		} else {
			name, in = group, ""
			b.WriteByte('\n')
		}
		def := s.def
		if s.kind == "list" {
			def = "[" + strings.ReplaceAll(def, ",", ", ") + "]"
		}
		fmt.Fprintf(&b, "# %s%s: %s  # %s\n", indent, name, def, s.doc)
	}
	return b.String()
}
