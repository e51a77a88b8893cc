package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/ledger"

	"github.com/spf13/cobra"
)

// addCompatSweep is the older ledger engine's command line: one word on line 1,
// JSON on line 2, exit 0 for whatever happens to the ledger and 2 for misuse.
func (p *program) addCompatSweep(root *cobra.Command) {
	p.compatGroup(root).AddCommand(&cobra.Command{
		Use: "sweep-state COMMAND --state FILE …", Short: "The older ledger engine's commands, words and exit codes",
		Long:               "Commands: " + strings.Join(ledger.SweepStateCommands, ", ") + ".",
		DisableFlagParsing: true, // its flags are the older program's, ours would mix with them
		RunE: func(cmd *cobra.Command, argv []string) error {
			if slices.Contains(argv, "--help") || slices.Contains(argv, "-h") {
				return cmd.Help()
			}
			c, err := p.sweepState(argv)
			if err != nil {
				return usage(cmd, err)
			}
			return p.runSweepState(cmd.Context(), c)
		},
	})
}

// compatGroup is the command that groups the older programs.
func (p *program) compatGroup(root *cobra.Command) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == "compat" {
			return c
		}
	}
	compat := &cobra.Command{Use: "compat", Short: "Act as the older programs do", GroupID: groupOthers}
	root.AddCommand(compat)
	return compat
}

// sweepFlags are the flags that a command of the older engine must have, and
// after the bar those that it may have.
var sweepFlags = map[string]string{
	"read": "state", "validate": "state", "cursor-get": "state source",
	"upsert-item":    "state id source writer json | now",
	"cursor-advance": "state source to past-item writer | now",
	"lease-acquire":  "state writer | ttl-minutes now",
	"lease-release":  "state writer",
	"run-record":     "state writer outcome counts timestamp",
	"import-legacy":  "state file | source-map",
}

// sweepState reads the older command line.
func (p *program) sweepState(argv []string) (ledger.SweepState, error) {
	var c ledger.SweepState
	values, err := sweepValues(argv, &c.Command)
	if err != nil {
		return c, err
	}
	c.ID, c.Source, c.Writer, c.JSON = values["id"], values["source"], values["writer"], values["json"]
	c.To, c.PastItem, c.Outcome, c.Counts, c.Timestamp = values["to"], values["past-item"], values["outcome"], values["counts"], values["timestamp"]
	c.Now = ledger.At(p.clock.Now())
	if now, ok := values["now"]; ok {
		c.Now = ledger.NowText(now)
	}
	c.TTLMinutes = ledger.DefaultTTL
	if ttl, ok := values["ttl-minutes"]; ok {
		if c.TTLMinutes, err = strconv.ParseInt(ttl, 10, 64); err != nil {
			return c, fmt.Errorf("--ttl-minutes is not a whole number: %s", beeyard.Quote(ttl))
		}
	}
	if c.Command == "run-record" && !slices.Contains(ledger.Outcomes, c.Outcome) {
		return c, fmt.Errorf("--outcome is one of %s", strings.Join(ledger.Outcomes, ", "))
	}
	if text, ok := values["source-map"]; ok {
		if err := json.Unmarshal([]byte(text), &c.Channels); err != nil {
			return c, fmt.Errorf("--source-map is not a JSON object of strings")
		}
	}
	if path, ok := values["file"]; ok {
		if c.Legacy, err = durable.ReadNamed(path, ledger.MaxBytes); err != nil {
			c.Legacy = nil // answered ERROR, as a file that is no JSON
		}
	}
	c.File, err = ledger.OpenFile(values["state"], ledger.Compat)
	return c, err
}

// sweepValues takes the command and the values of its flags from argv: --flag
// VALUE or --flag=VALUE, before or after the command.
func sweepValues(argv []string, command *string) (map[string]string, error) {
	values := map[string]string{}
	for i := 0; i < len(argv); i++ {
		name, flag := strings.CutPrefix(argv[i], "--")
		if !flag {
			if *command != "" {
				return nil, fmt.Errorf("unexpected argument %s", beeyard.Quote(argv[i]))
			}
			*command = argv[i]
			continue
		}
		name, v, given := strings.Cut(name, "=")
		if !given {
			if i++; i == len(argv) {
				return nil, fmt.Errorf("--%s needs a value", name)
			}
			v = argv[i]
		}
		values[name] = v
	}
	spec, ok := sweepFlags[*command]
	if !ok {
		return nil, fmt.Errorf("it needs a command: %s", strings.Join(ledger.SweepStateCommands, ", "))
	}
	must, may, _ := strings.Cut(spec, "|")
	full := map[string]string{}
	for name, v := range values {
		long, err := sweepFlag(name, strings.Fields(must+" "+may))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", *command, err)
		}
		full[long] = v
	}
	for _, name := range strings.Fields(must) {
		if _, ok := full[name]; !ok {
			return nil, fmt.Errorf("%s needs --%s", *command, name)
		}
	}
	return full, nil
}

// sweepFlag finds a flag by its name or, as the older program's callers may, by
// a beginning that only one flag has.
func sweepFlag(name string, known []string) (string, error) {
	var found []string
	for _, k := range known {
		if k == name {
			return k, nil
		}
		if name != "" && strings.HasPrefix(k, name) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("there is no flag --%s", name)
	}
	return "", fmt.Errorf("--%s could be --%s", name, strings.Join(found, " or --"))
}

// runSweepState prints what the older engine would. Why a ledger is corrupt, or
// what the system said, goes to stderr.
func (p *program) runSweepState(ctx context.Context, c ledger.SweepState) error {
	fewCollections()
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	out, err := c.Run(ctx)
	if err != nil {
		out = ledger.Outcome{Word: ledger.Failed, Reason: err.Error()}
	}
	if out.Reason != "" && (out.Word == ledger.Corrupt || out.Word == ledger.Failed) {
		fmt.Fprintf(p.stderr, "beeyard: %s\n", plain(out.Reason, 500))
	}
	text := string(out.Word) + "\n"
	if out.Payload != nil {
		line, err := ledger.MapValue(out.Payload).MarshalJSON()
		if err != nil {
			return err
		}
		text += string(line) + "\n"
	}
	if _, err := fmt.Fprint(p.stdout, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
