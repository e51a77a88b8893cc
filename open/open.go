// Package open is the library's front door: it opens a run or a root by path
// or URL, with whatever store serves it.
//
//	run, err := open.Run(ctx, ".swarm/audit", open.Options{})
//	if err != nil { … }
//	defer run.Close()
package open

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"beeyard"
	"beeyard/internal/clock"
	"beeyard/internal/proc"
	"beeyard/spool"
)

// Options say how.
type Options struct {
	// ReadOnly makes no folder and takes no lock.
	ReadOnly bool
	// Warn hears of what was found and put right or kept aside; nil drops it.
	Warn func(msg string)
	// Clock is the time; nil is the machine's.
	Clock clock.Clock
}

func (o Options) clock() clock.Clock {
	if o.Clock != nil {
		return o.Clock
	}
	return clock.Real()
}

// Run opens a run by path. ErrNotFound when there is none; ErrUsage for a URL
// whose store this build does not have.
func Run(ctx context.Context, location string, o Options) (beeyard.Run, error) {
	return Dir(ctx, location, o)
}

// Dir opens a run in a directory, as the store's own type.
func Dir(_ context.Context, location string, o Options) (*spool.Run, error) {
	if err := local(location); err != nil {
		return nil, err
	}
	host, err := Host()
	if err != nil {
		return nil, err
	}
	return spool.Open(location, spool.Options{Host: host, ReadOnly: o.ReadOnly, Warn: o.Warn}, o.clock())
}

// CreateDir makes a run in a directory. ErrExists when there is one.
func CreateDir(_ context.Context, location string, c beeyard.Checkpoint, o Options) (*spool.Run, error) {
	if err := local(location); err != nil {
		return nil, err
	}
	host, err := Host()
	if err != nil {
		return nil, err
	}
	return spool.Create(location, c, spool.Options{Host: host, Warn: o.Warn}, o.clock())
}

func local(location string) error {
	if scheme, _, ok := strings.Cut(location, "://"); ok {
		return &beeyard.Error{Op: "open", ID: location,
			Err:  beeyard.Because(beeyard.ErrUsage, "this build has no store for "+scheme+"://"),
			Hint: "give the path of a run's folder"}
	}
	return nil
}

// Host describes this process to a store, from internal/proc.
func Host() (spool.Host, error) {
	id, err := proc.Self()
	if err != nil {
		return spool.Host{}, fmt.Errorf("identify this process: %w", err)
	}
	of := func(pid int, start uint64) proc.Identity {
		return proc.Identity{Boot: id.Boot, Host: id.Host, PID: pid, Start: start}
	}
	return spool.Host{
		Boot: id.Boot, Name: id.Host, PID: id.PID, Start: id.Start,
		Stopped: func(pid int, start uint64) bool { return proc.Alive(of(pid, start)) && proc.Stopped(pid) },
		Gone:    func(pid int, start uint64) bool { return proc.Look(of(pid, start)) == proc.Gone },
		Kill: func(pid int, start uint64) error {
			return errors.Join(proc.Kill(of(pid, start)), endLeft())
		},
		EndLeft: endLeft,
	}, nil
}

func endLeft() error {
	_, err := proc.CleanStale()
	return err
}
