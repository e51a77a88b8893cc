package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"beeyard"
	"beeyard/internal/durable"
)

// claimDir is a directory D below claimed/ that this process made.
//
// Invariant (2 of ADR 0002): nobody but its maker renames into D, and a pair
// (D, x) is used at most once ever. So D/x.json exists if and only if that very
// claim is current.
type claimDir struct {
	name string
	dir  durable.Dir
	beat durable.File // holds the flock that proves our life, until it is closed

	mu   sync.Mutex
	used map[string]bool // ids ever claimed here
}

// beatText is what .heartbeat says: who to ask for, when the beat alone does not tell.
type beatText struct {
	Boot  string       `json:"boot"`
	Host  string       `json:"host"`
	PID   int          `json:"pid"`
	Start uint64       `json:"start"`
	Kind  beeyard.Kind `json:"kind"`
}

// newClaimDir makes D and proves our life in it before anything can be claimed
// into it. The new name is synced once a process: a claim that takes the
// machine down must be found again for its attempt to count.
func (r *Run) newClaimDir(ctx context.Context, worker string, kind beeyard.Kind) (*claimDir, error) {
	name := worker + "~" + nonce(beeyard.NonceLen)
	if err := r.claimed.Mkdir(name, folderMode); err != nil {
		return nil, fmt.Errorf("make claim directory: %w", err)
	}
	dir, err := r.claimed.OpenDir(name)
	if err != nil {
		return nil, fmt.Errorf("open claim directory: %w", err)
	}
	d := &claimDir{name: name, dir: dir, used: map[string]bool{}}
	text, err := json.Marshal(beatText{r.host.Boot, r.host.Name, r.host.PID, r.host.Start, kind})
	if err == nil {
		d.beat, err = dir.Create(fileBeat, fileMode)
	}
	if err == nil {
		_, err = d.beat.Write(text)
	}
	if err == nil && kind == beeyard.KindProcess {
		err = d.lockBeat(ctx)
	}
	if err == nil {
		err = r.claimed.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare claim directory: %w", err), d.close())
	}
	return d, nil
}

// lockBeat takes the flock. Somebody who asks whether we live holds a shared
// one for an instant, so one refusal says nothing.
func (d *claimDir) lockBeat(ctx context.Context) error {
	for range 1000 {
		got, err := d.beat.TryLock()
		if err != nil || got {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the new beat of %s", beeyard.ErrLocked, d.name)
}

// use marks (D, x) as used; false when it was before.
func (d *claimDir) use(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.used[id] {
		return false
	}
	d.used[id] = true
	return true
}

// unuse takes the mark back: the rename into D did not happen.
func (d *claimDir) unuse(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.used, id)
}

func (d *claimDir) token(rev int64) beeyard.Token {
	worker, n, _ := beeyard.ParseClaimDir(d.name)
	return beeyard.Token{Rev: rev, Worker: worker, Nonce: n}
}

// gone reports whether D was removed under us.
func (d *claimDir) gone() bool {
	info, err := d.dir.Info()
	return err != nil || info.Nlink == 0
}

// close gives the proof of life up. The directory stays until it has been idle
// for an hour: an older reaper ends with an error if one vanishes while it lists.
func (d *claimDir) close() error {
	var err error
	if d.beat != nil {
		err = d.beat.Close()
	}
	return errors.Join(err, d.dir.Close())
}

// openClaimDir opens the directory of a token that was handed out, perhaps by
// another process.
func (r *Run) openClaimDir(tok beeyard.Token) (durable.Dir, error) {
	d, err := r.claimed.OpenDir(tok.Dir())
	if err != nil {
		return nil, fmt.Errorf("open claim directory: %w", err)
	}
	return d, nil
}

// lifeState is what is known of the one who owns a claim directory.
type lifeState string

const (
	lifeAlive   lifeState = "yes"     // its lock is held
	lifeStopped lifeState = "stopped" // held by a process of this boot that is stopped
	lifeDead    lifeState = "no"      // proven
	lifeUnknown lifeState = "unknown" // only time can tell
)

type life struct {
	State lifeState
	Beat  beatText
	// BeatAt is the newest beat by the file server's clock, zero without one.
	BeatAt time.Time
	Note   string
	Older  bool // an older program's directory
}

const noteMax = 4096

// liveness judges the owner of a claim directory.
//
// A held flock is life: a stopped process still holds it. A free one is death
// for an owner of kind "process" when the file system is this host's own or the
// boot is ours; anything else is judged by the age of its beat.
func (r *Run) liveness(ctx context.Context, name string, dir durable.Dir) (life, error) {
	l := life{State: lifeUnknown}
	_, _, ours := beeyard.ParseClaimDir(name)
	l.Older = !ours
	if info, err := dir.Stat(fileBeat); err == nil {
		l.BeatAt = info.ModTime
	} else if !missing(err) {
		return l, fmt.Errorf("look at beat: %w", err)
	}
	if text, _, err := dir.ReadFile(fileBeatNote, noteMax); err == nil {
		l.Note = string(text)
	}
	if !ours {
		if text, _, err := dir.ReadFile(fileBeat, noteMax); err == nil && l.Note == "" {
			l.Note = string(text)
		}
		return l, nil
	}
	if l.BeatAt.IsZero() {
		return l, nil // being made, or its maker died making it: no claim is in it
	}
	f, err := dir.Open(fileBeat)
	if err != nil {
		return l, ignoreMissing(err)
	}
	defer f.Close()
	text, _, err := dir.ReadFile(fileBeat, noteMax)
	if err != nil {
		return l, ignoreMissing(err)
	}
	known := json.Unmarshal(text, &l.Beat) == nil
	locked, err := f.Locked()
	if err != nil {
		return l, fmt.Errorf("ask for the lock of a beat: %w", err)
	}
	ourBoot := r.host.Boot != "" && l.Beat.Boot == r.host.Boot
	switch {
	case locked:
		l.State = lifeAlive
		if ourBoot && r.host.Stopped != nil && r.host.Stopped(l.Beat.PID, l.Beat.Start) {
			l.State = lifeStopped
		}
	case known && l.Beat.Kind == beeyard.KindProcess && (ourBoot || !r.networked()):
		l.State = lifeDead
	}
	return l, nil
}

// networked reports whether other hosts may see this run, asked once.
func (r *Run) networked() bool {
	r.netOnce.Do(func() {
		kind, err := durable.FSKind(r.root)
		// Unknown counts as shared: then only time proves a death.
		r.net = err != nil || kind.Network
	})
	return r.net
}
