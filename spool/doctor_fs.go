package spool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"beeyard/internal/durable"
)

// fileSystem says what can be promised where the run lies.
func (d *doctor) fileSystem(context.Context) error {
	look := durable.FSKind
	if d.o.Fix && !d.o.DryRun && !d.r.ro {
		look = durable.Probe // it writes two names and removes them
	}
	kind, err := look(d.r.root)
	if errors.Is(err, durable.ErrUnsafe) {
		d.add(Finding{Code: "fs-refused", Severity: Bad, Subject: d.r.path, Detail: err.Error()})
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask for the file system: %w", err)
	}
	where := kind.Name
	if kind.MountPoint != "" {
		where += " at " + kind.MountPoint
	}
	d.add(Finding{Code: "fs", Severity: Info, Subject: where, Detail: "journal: " + kind.Journal.String()})
	if kind.Network {
		d.add(Finding{Code: "fs-network", Severity: Warn, Subject: where,
			Detail: "other hosts may see this run: a worker's death is proven only by its host's boot or by time, new tasks are found by polling, and clocks must agree",
			Fix:    "keep the clocks of all hosts in step, or keep the run on a local file system"})
	}
	switch {
	case kind.Memory:
		d.add(Finding{Code: "fs-memory", Severity: Warn, Subject: where,
			Detail: "nothing here outlives a reboot", Fix: "keep runs that matter on a disk"})
	case kind.Journal == durable.JournalNone:
		d.add(Finding{Code: "fs-no-journal", Severity: Warn, Subject: where,
			Detail: "without a journal a power cut can lose a claimed task or leave a name on another file's content: no promise is made for power cuts here; kills and crashes of programs are safe",
			Fix:    "keep runs that matter on a journaled file system"})
	case !kind.CrashAtomicRename && !kind.Network:
		d.add(Finding{Code: "fs-unmeasured", Severity: Info, Subject: where,
			Detail: "what a power cut does to renames on this kind of file system was not measured"})
	}
	if err := durable.SameFS(d.r.folders()...); err != nil {
		d.add(Finding{Code: "fs-split", Severity: Bad, Subject: d.r.path, Detail: err.Error(),
			Fix: "put all folders of the run on one file system"})
	}
	return nil
}

// folders are those that the run has; one that was only looked at may lack some.
func (r *Run) folders() []durable.Dir {
	var dirs []durable.Dir
	for _, d := range []durable.Dir{r.root, r.pending, r.held, r.claimed, r.done, r.failed, r.artifacts, r.quarantine, r.events, r.meta} {
		if _, none := d.(absent); !none {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

const skewMost = 2 * time.Second

// clock compares the file server's clock, which stamps beats, with ours.
func (d *doctor) clock(context.Context) error {
	d.now = d.r.clk.Now()
	if d.r.ro {
		return nil // the server's clock shows in a file that is touched
	}
	before := d.r.clk.Now()
	server, err := durable.ServerNow(d.r.meta, "clock")
	if err != nil {
		return fmt.Errorf("ask the file server's clock: %w", err)
	}
	after := d.r.clk.Now()
	d.now = server
	skew := time.Duration(0)
	switch {
	case server.Before(before):
		skew = before.Sub(server)
	case server.After(after):
		skew = server.Sub(after)
	}
	if skew > skewMost {
		d.add(Finding{Code: "clock-skew", Severity: Warn, Subject: d.r.path,
			Detail: fmt.Sprintf("the clock of the file server and this host's differ by %s", skew.Round(time.Millisecond)),
			Fix:    "set both by a time service; beats are judged by the file server's clock, not-before times by this host's"})
	}
	return nil
}

// permissions names who else could change the run.
func (d *doctor) permissions(context.Context) error {
	rep, err := durable.CheckRoot(d.r.path, durable.ReadOnly())
	switch {
	case errors.Is(err, durable.ErrUnsafe):
		d.add(Finding{Code: "folder-unsafe", Severity: Bad, Subject: d.r.path, Detail: err.Error()})
	case err != nil:
		return fmt.Errorf("look at the way to the run: %w", err)
	}
	for _, n := range rep.Notes {
		d.add(Finding{Code: "folder-permissions", Severity: Warn, Subject: d.r.path, Detail: n,
			Fix: "take the permission away unless that group works on this run"})
	}
	if rep.Resolved != "" && rep.Resolved != d.r.path {
		d.add(Finding{Code: "folder-link", Severity: Info, Subject: d.r.path, Detail: "it is reached over a link and lies at " + rep.Resolved})
	}
	top, err := d.r.root.Info()
	if err != nil {
		return fmt.Errorf("look at the run: %w", err)
	}
	for _, dir := range d.r.folders()[1:] {
		info, err := dir.Info()
		if err != nil {
			return fmt.Errorf("look at %s: %w", dir.Path(), err)
		}
		if info.Mode.Perm()&0o022 != 0 {
			d.add(Finding{Code: "folder-permissions", Severity: Warn, Subject: dir.Path(),
				Detail: fmt.Sprintf("others than its owner may write to it (mode %04o)", info.Mode.Perm()),
				Fix:    "take the permission away unless they work on this run"})
		}
		if info.UID != top.UID {
			d.add(Finding{Code: "folder-owner", Severity: Warn, Subject: dir.Path(),
				Detail: fmt.Sprintf("it belongs to user %d, the run to user %d", info.UID, top.UID)})
		}
	}
	return nil
}
