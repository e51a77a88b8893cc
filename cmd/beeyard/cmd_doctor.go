package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"beeyard/internal/proc"
	"beeyard/open"
	"beeyard/spool"

	"github.com/spf13/cobra"
)

func (p *program) addDoctor(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "doctor [RUN]", Short: "Look for what is wrong with a run", GroupID: groupLook,
		Long: `Examines a run: its file system, folders, tasks, claims and checkpoint, and what
this machine can do to end and confine processes. --fix does what is safe and
says so. Exit 1 when something of the run is wrong and left so; what it says of
the machine's file system (fs-…) is told, and changes no exit code.`,
		Example: "  beeyard doctor audit --fix",
		Args:    args(0, 1), ValidArgsFunction: p.completeRuns,
	}
	var o spool.DoctorOptions
	cmd.Flags().BoolVar(&o.Fix, "fix", false, "do what is safe")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "change nothing, only say what --fix would do")
	cmd.RunE = func(cmd *cobra.Command, argv []string) (err error) {
		c, err := p.conf()
		if err != nil {
			return err
		}
		if o.StaleAfter, err = c.duration("worker.stale_after", nil); err != nil {
			return err
		}
		arg := ""
		if len(argv) > 0 {
			arg = argv[0]
		}
		o.Extra = p.ledgerFindings(c)
		return p.doctor(cmd.Context(), arg, o)
	}
	root.AddCommand(cmd)
}

func (p *program) doctor(ctx context.Context, arg string, o spool.DoctorOptions) (err error) {
	path, err := p.runPath(ctx, arg)
	if err != nil {
		return err
	}
	var heard warnings
	changes := o.Fix && !o.DryRun
	run, err := open.Dir(ctx, path, open.Options{ReadOnly: !changes, Warn: heard.add, Clock: p.clock})
	if err != nil {
		return err
	}
	defer closing(run, &err)
	o.Extra = append(machineFindings(), o.Extra...)
	bar := p.newBar(0)
	o.Progress = func(_ string, done, total int) { bar.total = total; bar.set(done, 0) }
	rep, err := run.Doctor(ctx, o)
	bar.end()
	if err != nil && len(rep.Findings) == 0 {
		return err
	}
	rep.Findings = append(rep.Findings, heard.findings(changes)...)
	out := struct {
		Run      string          `json:"run"`
		Healthy  bool            `json:"healthy"`
		Findings []spool.Finding `json:"findings"`
	}{run.Location(), healthy(rep), orEmpty(rep.Findings)}
	if serr := p.show(out, func(w io.Writer) error { return p.doctorText(w, rep) }); serr != nil {
		return serr
	}
	if err != nil {
		p.notef("%v", err) // each is a finding as well
	}
	if !out.Healthy {
		return silent(exitFailed)
	}
	return nil
}

// warnings are what the store says aside while it is examined: a file that it
// passed over is as much a finding as one that it judged.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) add(msg string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, msg)
}

// findings tells them; of a doctor that mends they are what it did.
func (w *warnings) findings(mending bool) []spool.Finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	severity := spool.Warn
	if mending {
		severity = spool.Info
	}
	var all []spool.Finding
	for _, msg := range w.text {
		all = append(all, spool.Finding{Code: "noticed", Severity: severity, Detail: msg})
	}
	return all
}

// healthy: nothing of the run itself is wrong and left.
func healthy(rep spool.DoctorReport) bool {
	for _, f := range rep.Findings {
		machine := strings.HasPrefix(f.Code, "fs-") && f.Severity != spool.Bad
		if !f.Fixed && !machine && f.Severity != spool.Info {
			return false
		}
	}
	return true
}

// machineFindings say how surely this machine ends and confines handlers.
func machineFindings() []spool.Finding {
	level, why := proc.Level()
	detail := "processes of a handler are ended by " + string(level)
	if why != "" {
		detail += ": " + why
	}
	return []spool.Finding{
		{Code: "process-control", Severity: spool.Info, Subject: string(level), Detail: detail},
		{Code: "sandbox", Severity: spool.Info, Detail: "with --sandbox on: " + proc.SandboxStatus().String()},
	}
}

func (p *program) doctorText(w io.Writer, rep spool.DoctorReport) error {
	var b strings.Builder
	for _, f := range rep.Findings {
		head := string(f.Severity)
		switch {
		case f.Fixed:
			head = p.paint("32", "fixed")
		case f.Severity == spool.Bad:
			head = p.paint("31", head)
		case f.Severity == spool.Warn:
			head = p.paint("33", head)
		}
		fmt.Fprintf(&b, "%s %s", head, f.Code)
		if f.Subject != "" {
			b.WriteString(" " + plain(f.Subject, 200))
		}
		b.WriteString(": " + plain(f.Detail, 600) + "\n")
		if f.Fix != "" && !f.Fixed {
			b.WriteString("    " + plain(f.Fix, 400) + "\n")
		}
	}
	if healthy(rep) {
		b.WriteString("nothing of the run is wrong\n")
	} else {
		b.WriteString("something of the run is wrong\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
