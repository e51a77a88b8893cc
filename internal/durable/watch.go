package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// Hint says that names of a folder came, went or were written. It may be late,
// doubled or missing: it saves waiting for the next poll, never the poll.
type Hint struct {
	Dir   Dir      // as given to Watch
	Names []string // sorted, each once; temporary names are left out
	All   bool     // there was more than Names holds: list the folder
}

// hintNames bounds what is kept of a folder while the receiver is busy.
const hintNames = 1024

// Watcher gives hints about some folders. Its owner calls Close.
type Watcher struct {
	hints  chan Hint
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	why    error
}

// Watch starts watching. It never fails: where the system's limits, the kind
// of file system or an error keep some hints from coming, Degraded says so,
// and the caller's poll is all there is. It stops when ctx ends or at Close;
// the folders must stay open during the call of Watch only.
func Watch(ctx context.Context, dirs ...Dir) *Watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{hints: make(chan Hint), cancel: cancel, done: make(chan struct{})}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		w.degrade(limitError(err, unix.EMFILE, "fs.inotify.max_user_instances"))
	}
	byPath := map[string]Dir{}
	for _, d := range dirs {
		if events == nil {
			break
		}
		if err := addWatch(events, d, byPath); err != nil {
			w.degrade(fmt.Errorf("watch %s: %w", d.Path(), err))
		}
		if kind, err := FSKind(d); err == nil && kind.Network {
			w.degrade(fmt.Errorf("watch %s: %w (%s): changes by other hosts give no event", d.Path(), ErrNetworkFS, kind.Name))
		}
	}
	go w.run(ctx, events, byPath)
	return w
}

// addWatch names the open folder itself, not the path it was opened by.
func addWatch(events *fsnotify.Watcher, d Dir, byPath map[string]Dir) error {
	o, ok := under(d).(*osDir)
	if !ok {
		return errors.ErrUnsupported
	}
	path := ""
	err := o.h.call(func(fd int) error {
		path = "/proc/self/fd/" + strconv.Itoa(fd)
		return events.Add(path)
	})
	if err != nil {
		return limitError(err, unix.ENOSPC, "fs.inotify.max_user_watches")
	}
	byPath[path] = d
	return nil
}

func limitError(err error, limit error, sysctl string) error {
	if errors.Is(err, limit) {
		return fmt.Errorf("%w (the limit of file watches is reached; raise %s for quicker wake-ups)", err, sysctl)
	}
	return err
}

// Hints is closed when the watcher has stopped. Until then, degraded or not,
// it is silent when there is nothing to tell.
func (w *Watcher) Hints() <-chan Hint { return w.hints }

// Degraded is nil while hints of all folders come, else why some do not.
func (w *Watcher) Degraded() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

func (w *Watcher) degrade(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.why = errors.Join(w.why, err)
}

// Close stops the watcher and waits until it has. It is idempotent.
func (w *Watcher) Close() {
	w.cancel()
	<-w.done
}

func (w *Watcher) run(ctx context.Context, events *fsnotify.Watcher, byPath map[string]Dir) {
	defer close(w.done)
	defer close(w.hints)
	if events == nil {
		<-ctx.Done()
		return
	}
	defer events.Close() // waits for its reader; what it says about closing helps nobody
	var waiting queue
	for {
		var out chan Hint
		var next Hint
		if len(waiting) > 0 {
			out, next = w.hints, waiting[0].hint()
		}
		select {
		case <-ctx.Done():
			return
		case out <- next:
			waiting = waiting[1:]
		case ev, ok := <-events.Events:
			if !ok {
				return
			}
			w.take(ev, byPath, &waiting)
		case err, ok := <-events.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.degrade(err)
				continue
			}
			for _, d := range byPath {
				waiting.of(d).all = true
			}
		}
	}
}

func (w *Watcher) take(ev fsnotify.Event, byPath map[string]Dir, waiting *queue) {
	// A change of times or mode is a beat, and beats are not work.
	if !ev.Has(fsnotify.Create | fsnotify.Remove | fsnotify.Rename | fsnotify.Write) {
		return
	}
	if d, ok := byPath[ev.Name]; ok { // the folder itself
		if ev.Has(fsnotify.Remove | fsnotify.Rename) {
			w.degrade(fmt.Errorf("watch %s: the folder was removed or moved", d.Path()))
			waiting.of(d).all = true
		}
		return
	}
	at := strings.LastIndexByte(ev.Name, '/')
	d, ok := byPath[ev.Name[:max(at, 0)]]
	if name := ev.Name[at+1:]; ok && !IsTemp(name) {
		waiting.of(d).add(name)
	}
}

// queue holds what was not received yet, one entry a folder.
type queue []*gathered

type gathered struct {
	dir   Dir
	names map[string]bool
	all   bool
}

func (q *queue) of(d Dir) *gathered {
	for _, g := range *q {
		if g.dir == d {
			return g
		}
	}
	g := &gathered{dir: d, names: map[string]bool{}}
	*q = append(*q, g)
	return g
}

func (g *gathered) add(name string) {
	if len(g.names) < hintNames {
		g.names[name] = true
	} else if !g.names[name] {
		g.all = true
	}
}

func (g *gathered) hint() Hint {
	h := Hint{Dir: g.dir, All: g.all}
	for name := range g.names {
		h.Names = append(h.Names, name)
	}
	slices.Sort(h.Names)
	return h
}
