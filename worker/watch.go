package worker

import (
	"context"
	"fmt"
	"time"

	"beeyard"
	"beeyard/internal/clock"
)

// checkEvery is how soon a cancel is obeyed. The look costs a system call or
// two a running task.
const checkEvery = time.Second

// beats proves that this process lives. It is the process that owns the
// handlers, so the beat dies with it and never hides a death.
func (w *Worker) beats(ctx context.Context) {
	for clock.Sleep(ctx, w.clk, w.cfg.Heartbeat) == nil {
		refs, note := w.held()
		rep, err := w.att.Beat(ctx, refs, note)
		if err != nil && ctx.Err() == nil {
			w.tell(Event{Kind: "note", Text: "beat: " + err.Error()})
		}
		if rep.Late > 0 {
			// Stopped, asleep, or starved: claims may have been taken meanwhile.
			w.tell(Event{Kind: "note", Text: fmt.Sprintf("woke up late: no beat for %s", rep.Late.Round(time.Second))})
			w.mu.Lock()
			for _, j := range w.jobs {
				j.late = true
			}
			w.mu.Unlock()
		}
		w.obey(rep)
	}
}

// checks looks for cancels and losses between beats.
func (w *Worker) checks(ctx context.Context) {
	for clock.Sleep(ctx, w.clk, checkEvery) == nil {
		refs, _ := w.held()
		if len(refs) == 0 {
			continue
		}
		rep, err := w.att.Check(ctx, refs)
		if err != nil && ctx.Err() == nil {
			w.tell(Event{Kind: "note", Text: "look at claims: " + err.Error()})
		}
		w.obey(rep)
	}
}

func (w *Worker) held() (refs []beeyard.Ref, note string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, j := range w.jobs {
		refs = append(refs, ref)
		if note == "" {
			note = fmt.Sprintf("%s for %s", ref.TaskID, w.clk.Now().Sub(j.begun).Round(time.Second))
		}
	}
	if len(refs) > 1 {
		note += fmt.Sprintf(" and %d more", len(refs)-1)
	}
	return refs, note
}

// obey ends the handlers of canceled and lost claims; their settle follows, or
// does not, when the tree is gone.
func (w *Worker) obey(rep beeyard.BeatReport) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range rep.Canceled {
		if j := w.jobs[ref]; j != nil {
			j.end(errCanceled)
		}
	}
	for _, ref := range rep.Lost {
		if j := w.jobs[ref]; j != nil {
			j.end(errLost)
		}
	}
}

// reaps frees the claims of the dead at start and every third of stale-after:
// one sweep at start alone would leave them for ever where workers run on.
func (w *Worker) reaps(ctx context.Context) {
	for {
		rep, err := w.run.Reap(ctx, beeyard.ReapOptions{StaleAfter: w.cfg.StaleAfter, Limits: w.cfg.Limits})
		if err != nil && ctx.Err() == nil {
			w.tell(Event{Kind: "note", Text: "reap: " + err.Error()})
		}
		if len(rep.Reaped) > 0 {
			w.tell(Event{Kind: "reaped", Reaps: rep.Reaped})
		}
		if clock.Sleep(ctx, w.clk, max(w.cfg.StaleAfter/3, time.Second)) != nil {
			return
		}
	}
}
