package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"beeyard"
	"beeyard/internal/durable"

	"github.com/spf13/cobra"
)

func (p *program) compatLink() *cobra.Command {
	return &cobra.Command{
		Use: "link DIR", Short: "Make links by the older programs' names",
		Long: `Makes swarm-cli, worker_loop.sh and sweep-state in DIR as links to this program,
and sweep-state.py, three lines of Python that start it. Links of an earlier call
are renewed; anything else of these names is left alone (exit 4).`,
		Example: "  beeyard compat link ~/.local/bin",
		Args:    args(1, 1),
		RunE:    func(_ *cobra.Command, a []string) error { return p.linkOlder(a[0]) },
	}
}

const (
	linkPerm   = 0o755
	pyName     = "sweep-state.py"
	pyHead     = "#!/usr/bin/env python3\nimport os, sys; "
	pyScript   = pyHead + "program = %s\nos.execv(program, [\"sweep-state\"] + sys.argv[1:])\n"
	linkMaxLen = 1 << 16
)

// linkOlder looks at all names before it makes the first.
func (p *program) linkOlder(dir string) (err error) {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", dir, err)
	}
	d, err := durable.MkdirAll(abs, linkPerm)
	switch {
	case errors.Is(err, durable.ErrUnsafe), errors.Is(err, fs.ErrPermission):
		return &beeyard.Error{Op: "make links", ID: dir, Err: fmt.Errorf("%w: %w", beeyard.ErrNotAllowed, err), Hint: "name a folder that this user may write to; nothing was made"}
	case err != nil:
		return &beeyard.Error{Op: "make links", ID: dir, Err: err, Hint: "name a folder that is there, or can be made; nothing was made"}
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	links := []string{"swarm-cli", "worker_loop.sh", "sweep-state"}
	var taken []string
	for _, name := range append(links, pyName) {
		ours, err := oursToRenew(d, name, program)
		if err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
		if !ours {
			taken = append(taken, name)
		}
	}
	if len(taken) > 0 {
		return &beeyard.Error{Op: "make links", ID: dir, Err: beeyard.Because(beeyard.ErrExists, strings.Join(taken, ", ")+" there is not a link of beeyard's"),
			Hint: "move it to another name, or name another folder; nothing was made"}
	}
	for _, name := range links {
		temp := durable.TempName(name)
		if err := durable.Symlink(program, d, temp); err != nil {
			return fmt.Errorf("make link: %w", err)
		}
		if err := d.Rename(temp, d, name); err != nil {
			return errors.Join(fmt.Errorf("make link: %w", err), d.Remove(temp))
		}
	}
	quoted, err := json.Marshal(program) // a string of JSON is one of Python
	if err != nil {
		return fmt.Errorf("quote %s: %w", program, err)
	}
	if err := durable.WriteFile(d, pyName, fmt.Appendf(nil, pyScript, quoted), linkPerm); err != nil {
		return fmt.Errorf("write %s: %w", pyName, err)
	}
	out := struct {
		Program string   `json:"program"`
		Made    []string `json:"made"`
	}{Program: program}
	for _, name := range append(links, pyName) {
		out.Made = append(out.Made, filepath.Join(abs, name))
	}
	return p.show(out, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, strings.Join(out.Made, "\n"))
		return err
	})
}

// oursToRenew reports whether a name is free, or a link of an earlier call: one
// to this program, or to one called beeyard.
func oursToRenew(d durable.Dir, name, program string) (bool, error) {
	info, err := d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case info.Mode.Type() == fs.ModeSymlink:
		target, err := durable.ReadLink(d, name)
		return target == program || filepath.Base(target) == "beeyard", err
	case info.Mode.IsRegular() && name == pyName:
		text, _, err := d.ReadFile(name, linkMaxLen)
		return strings.HasPrefix(string(text), pyHead), err
	}
	return false, nil
}
