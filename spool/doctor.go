package spool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"beeyard"
)

// Severity says how much a finding matters.
type Severity string

// The severities: Info is worth knowing, Warn wants a person's look sooner or
// later, Bad breaks a promise or keeps work from being done.
const (
	Info Severity = "info"
	Warn Severity = "warn"
	Bad  Severity = "error"
)

// Finding is one thing that doctor noticed.
type Finding struct {
	Code     string   `json:"code"` // stable, for programs
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject,omitempty"` // a task, a file, a folder
	Detail   string   `json:"detail"`
	// Fix says what DoctorOptions.Fix does about it, or what a person can do. It
	// never names a command that destroys anything.
	Fix   string `json:"fix,omitempty"`
	Fixed bool   `json:"fixed,omitempty"`
}

// DoctorOptions say what doctor may do.
type DoctorOptions struct {
	// Fix does what is safe: it finishes decided claims, removes old temporary
	// files, moves leftover copies of a task to quarantine/, brings the
	// checkpoint up to done/ and promotes what is due.
	Fix bool
	// DryRun changes nothing, whatever Fix says; what Fix would do is in Finding.Fix.
	DryRun bool
	// StaleAfter is the age from which a claim of unproven life has expired; 300 s.
	StaleAfter time.Duration
	// Extra are the caller's own findings, put first.
	Extra []Finding
	// Progress, when set, hears which check is under way and how far.
	Progress func(check string, done, total int)
}

// DoctorReport is what doctor found, worst first.
type DoctorReport struct {
	Findings []Finding `json:"findings"`
}

// Worst is the highest severity of what is not fixed, "" when there is nothing.
func (r DoctorReport) Worst() Severity {
	worst := Severity("")
	for _, f := range r.Findings {
		if !f.Fixed && f.Severity.weight() > worst.weight() {
			worst = f.Severity
		}
	}
	return worst
}

func (s Severity) weight() int { return slices.Index([]Severity{"", Info, Warn, Bad}, s) }

// perCode bounds the findings of one kind: a run with 100,000 blocked tasks has
// one problem, not 100,000.
const perCode = 100

// doctor is one examination.
type doctor struct {
	r     *Run
	o     DoctorOptions
	out   []Finding
	count map[string]int
	now   time.Time // the file server's, or ours where that cannot be asked
	sight sights
}

// Doctor examines a run: its file system, folders, tasks, claims and
// checkpoint. Without Fix, or with DryRun, it changes nothing. The error is of
// the examination itself; what is wrong with the run is in the report.
func (r *Run) Doctor(ctx context.Context, o DoctorOptions) (DoctorReport, error) {
	if o.StaleAfter <= 0 {
		o.StaleAfter = defaultStaleAfter
	}
	if o.Fix && !o.DryRun {
		if err := r.writable("doctor --fix"); err != nil {
			return DoctorReport{}, err
		}
	}
	d := &doctor{r: r, o: o, out: slices.Clone(o.Extra), count: map[string]int{}}
	checks := []struct {
		name string
		run  func(context.Context) error
	}{
		{"file system", d.fileSystem}, {"clock", d.clock}, {"permissions", d.permissions},
		{"names", d.names}, {"temporary files", d.temps}, {"claims", d.claims}, {"tasks", d.tasks},
		{"copies", d.copies}, {"dependencies", d.graph}, {"spelling", d.spelling},
		{"quarantine", d.quarantine}, {"kept aside", d.keptAside}, {"checkpoint", d.checkpoint},
	}
	var errs []error
	for i, c := range checks {
		if ctx.Err() != nil {
			return d.report(), context.Cause(ctx)
		}
		d.progress(c.name, i, len(checks))
		// One check that fails must not hide what the others find.
		if err := c.run(ctx); err != nil {
			errs = append(errs, fmt.Errorf("check %s: %w", c.name, err))
			d.add(Finding{Code: "not-checked", Severity: Warn, Subject: c.name, Detail: err.Error()})
		}
	}
	d.progress("", len(checks), len(checks))
	return d.report(), errors.Join(errs...)
}

func (d *doctor) progress(check string, done, total int) {
	if d.o.Progress != nil {
		d.o.Progress(check, done, total)
	}
}

// add keeps a finding, up to perCode of a kind.
func (d *doctor) add(f Finding) {
	d.count[f.Code]++
	if d.count[f.Code] <= perCode {
		d.out = append(d.out, f)
	}
}

// fix adds a finding that Fix can do something about, and does it.
func (d *doctor) fix(f Finding, do func() error) {
	if d.o.Fix && !d.o.DryRun {
		if err := do(); err != nil {
			f.Detail += "; it could not be fixed: " + err.Error()
		} else {
			f.Fixed = true
		}
	}
	d.add(f)
}

func (d *doctor) report() DoctorReport {
	for code, n := range d.count {
		if n > perCode {
			d.out = append(d.out, Finding{Code: code, Severity: Info, Detail: fmt.Sprintf("and %d more of this kind", n-perCode)})
		}
	}
	slices.SortStableFunc(d.out, func(a, b Finding) int {
		if a.Severity != b.Severity {
			return b.Severity.weight() - a.Severity.weight()
		}
		return strings.Compare(a.Code, b.Code)
	})
	if d.out == nil {
		d.out = []Finding{}
	}
	return DoctorReport{Findings: d.out}
}

// some names a few of many.
func some(ids []string) string {
	const few = 5
	quoted := make([]string, 0, few)
	for _, id := range ids[:min(len(ids), few)] {
		quoted = append(quoted, beeyard.Quote(id))
	}
	s := strings.Join(quoted, ", ")
	if n := len(ids) - few; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
