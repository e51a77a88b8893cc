package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"

	"github.com/spf13/pflag"
)

// value is a setting's value and where it came from.
type value struct {
	text   string
	source string // flag, environment variable's name, a file with its line, or default
}

// config answers for settings: flag over environment over the nearest
// beeyard.yaml upward over the user's own over the default.
type config struct {
	files []configFile // nearest first
	env   func(string) (string, bool)
}

type configFile struct {
	path   string
	values map[string]value
}

const configMax = 1 << 20

// conf reads the configuration files once, on first use: most commands need
// them, and a missing file costs one look.
func (p *program) conf() (*config, error) {
	if p.config != nil {
		return p.config, nil
	}
	c := &config{env: p.getenv}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the current folder: %w", err)
	}
	var paths []string
	for d := dir; ; d = filepath.Dir(d) {
		f := filepath.Join(d, "beeyard.yaml")
		if durable.HasNamed(f) {
			paths = append(paths, f)
			break
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	home := p.env("XDG_CONFIG_HOME")
	if home == "" && p.env("HOME") != "" {
		home = filepath.Join(p.env("HOME"), ".config")
	}
	if home != "" {
		paths = append(paths, filepath.Join(home, "beeyard", "config.yaml"))
	}
	for _, path := range paths {
		f, err := readConfig(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
	}
	p.config = c
	return c, nil
}

func readConfig(path string) (configFile, error) {
	fail := func(err error) (configFile, error) {
		return configFile{}, &beeyard.Error{Op: "read configuration", ID: path, Err: err,
			Hint: "beeyard help configuration lists what may stand there"}
	}
	data, err := durable.ReadNamed(path, configMax)
	if errors.Is(err, fs.ErrNotExist) {
		return configFile{}, err
	}
	if err != nil {
		return fail(err)
	}
	f := configFile{path: path, values: map[string]value{}}
	root, err := strict.YAML(data, strict.Options{})
	if err != nil {
		return fail(fmt.Errorf("%w: %w", beeyard.ErrUsage, err))
	}
	if root == nil {
		return f, nil
	}
	if err := flatten(root, "", f.values, path); err != nil {
		return fail(err)
	}
	return f, nil
}

// get finds a setting. flags may be nil; a flag counts when it was given.
func (c *config) get(key string, flags *pflag.FlagSet) value {
	s, ok := findSetting(key)
	if !ok {
		panic("beeyard: no setting " + key) // a programmer's slip that any test of the command meets
	}
	if flags != nil {
		if f := flags.Lookup(flagOf(key)); f != nil && f.Changed {
			return value{f.Value.String(), "flag --" + f.Name}
		}
	}
	if v, ok := c.env(s.env()); ok && v != "" {
		return value{v, s.env()}
	}
	for _, f := range c.files {
		if v, ok := f.values[key]; ok {
			return v
		}
	}
	return value{s.def, "default"}
}

// flagOf is the flag of a setting: worker.poll_interval → poll-interval.
func flagOf(key string) string {
	name := key[strings.LastIndexByte(key, '.')+1:]
	if key == "worker.id" {
		name = "worker-id"
	}
	return strings.ReplaceAll(name, "_", "-")
}

func (c *config) badValue(key string, v value, err error) error {
	return &beeyard.Error{Op: "read setting " + key, ID: v.text,
		Err: fmt.Errorf("%w (from %s)", err, v.source)}
}

func (c *config) duration(key string, flags *pflag.FlagSet) (time.Duration, error) {
	v := c.get(key, flags)
	var d time.Duration
	if err := parseWait(v.text, &d); err != nil {
		return 0, c.badValue(key, v, err)
	}
	return d, nil
}

func (c *config) int(key string, flags *pflag.FlagSet) (int, error) {
	v := c.get(key, flags)
	n, err := parseCount(v.text)
	if err != nil {
		return 0, c.badValue(key, v, err)
	}
	return n, nil
}

func (c *config) list(key string, flags *pflag.FlagSet) []string {
	return splitList(c.get(key, flags).text)
}

// parseWait reads a duration in Go's form that is not negative.
func parseWait(s string, to *time.Duration) error {
	var d beeyard.Duration
	if err := d.UnmarshalText([]byte(s)); err != nil {
		return err
	}
	*to = time.Duration(d)
	return nil
}

func parseCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, beeyard.Because(beeyard.ErrUsage, "not a whole number from 0: "+beeyard.Quote(s))
	}
	return n, nil
}

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, beeyard.Because(beeyard.ErrUsage, "neither true nor false: "+beeyard.Quote(s))
	}
	return b, nil
}

// splitList reads a,b,c; empty parts are dropped.
func splitList(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
