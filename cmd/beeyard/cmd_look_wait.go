package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"beeyard"

	"github.com/spf13/cobra"
)

func (p *program) addWait(root *cobra.Command) {
	cmd := &cobra.Command{
		Use: "wait [TASK…]", Short: "Wait until tasks have ended", GroupID: groupLook,
		Long: `Waits until the tasks named, or all of the run, have ended. Exit 0: all done. 1:
one failed or was canceled, or the rest can never run (a dependency failed and
nothing else is under way). 8: --timeout passed. --any returns with the first
that ends.`,
		Example: "  beeyard wait report --timeout 1h && cat $(beeyard show report --json | jq -r '.artifacts[0].name')",
		Args:    args(0, -1), ValidArgsFunction: p.completeTasks(openStates()...),
	}
	timeout := cmd.Flags().Duration("timeout", 0, "how long at most; 0: no limit")
	anyOne := cmd.Flags().Bool("any", false, "until the first has ended")
	cmd.RunE = func(cmd *cobra.Command, ids []string) error {
		if *timeout < 0 {
			return usageText(cmd, "--timeout is not negative")
		}
		if *anyOne && len(ids) == 0 {
			return usageText(cmd, "--any needs TASK…")
		}
		return p.wait(cmd.Context(), ids, *timeout, *anyOne)
	}
	root.AddCommand(cmd)
}

type waitResult struct {
	Run      string                `json:"run"`
	Total    int                   `json:"total"`
	ByState  map[beeyard.State]int `json:"by_state"`
	Failed   []string              `json:"failed"` // and canceled; at most 1000
	Stuck    []string              `json:"stuck"`  // can never run as things are; at most 1000
	TimedOut bool                  `json:"timed_out"`
}

func (r *waitResult) open() int {
	return beeyard.Counts{ByState: r.ByState}.Open()
}

func (r *waitResult) bad() int {
	return r.ByState[beeyard.StateFailed] + r.ByState[beeyard.StateCanceled]
}

func (p *program) wait(ctx context.Context, ids []string, timeout time.Duration, anyOne bool) (err error) {
	run, err := p.readRun(ctx, "")
	if err != nil {
		return err
	}
	defer closing(run, &err)
	// Looks are under the caller's context: the answer at the timeout is a look.
	limit, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limit, cancel = context.WithTimeoutCause(ctx, timeout, beeyard.ErrTimeout)
	}
	defer cancel()
	changed, err := run.Changed(limit)
	if err != nil {
		return err
	}
	bar := p.newBar(0)
	for {
		begun := p.clock.Now()
		res, ended, err := waitLook(ctx, run, ids, anyOne)
		if err != nil {
			return err
		}
		bar.total = res.Total
		bar.set(res.ByState[beeyard.StateDone], res.bad())
		if ended || limit.Err() != nil {
			bar.end()
			res.TimedOut = !ended
			return p.waitEnd(ctx, run, ids, res)
		}
		took := p.clock.Now().Sub(begun)
		err = p.pause(limit, changed, waitPoll)
		if err == nil {
			err = p.pause(limit, nil, gatherFor(took))
		}
		if ctx.Err() != nil {
			bar.end()
			return fmt.Errorf("wait: %w", err)
		}
	}
}

const (
	waitPoll   = 2 * time.Second
	waitGather = 100 * time.Millisecond
	waitShare  = 9
)

// gatherFor is how long hints of change are gathered before the next look: they
// come with each rename, and looking at a large run may take a tenth of a
// processor's time, not more.
func gatherFor(look time.Duration) time.Duration { return max(waitGather, waitShare*look) }

// waitLook says how far things are; ended: there is nothing to wait for.
func waitLook(ctx context.Context, run beeyard.Run, ids []string, anyOne bool) (*waitResult, bool, error) {
	all, err := run.Counts(ctx)
	if err != nil {
		return nil, false, err
	}
	res := &waitResult{Run: run.Location(), ByState: map[beeyard.State]int{}, Failed: []string{}, Stuck: []string{}}
	if len(ids) == 0 {
		res.ByState = all.ByState
		for s, n := range all.ByState {
			if s != beeyard.StateQuarantined {
				res.Total += n
			}
		}
	} else {
		res.Total = len(ids)
		for _, id := range ids {
			v, err := run.Get(ctx, id)
			if err != nil {
				return nil, false, err
			}
			res.ByState[v.State]++
			switch v.State {
			case beeyard.StateFailed, beeyard.StateCanceled:
				res.Failed = append(res.Failed, id)
			case beeyard.StateBlocked, beeyard.StateQuarantined:
				res.Stuck = append(res.Stuck, id)
			}
		}
		if anyOne && res.open() < len(ids) {
			res.Stuck = []string{}
			return res, true, nil
		}
	}
	// What may still move anything: work, time, or a person who lets go.
	moves := 0
	for _, s := range []beeyard.State{beeyard.StateReady, beeyard.StateClaimed, beeyard.StateWaiting, beeyard.StateHeld} {
		moves += all.ByState[s]
	}
	if moves > 0 {
		res.Stuck = []string{}
	}
	return res, res.open() == 0 || moves == 0, nil
}

// namesMost bounds the ids that a result names.
const namesMost = 1000

func (p *program) waitEnd(ctx context.Context, run beeyard.Run, ids []string, res *waitResult) error {
	if len(ids) == 0 {
		for list, states := range map[*[]string][]beeyard.State{
			&res.Failed: {beeyard.StateFailed, beeyard.StateCanceled}, &res.Stuck: {beeyard.StateBlocked},
		} {
			if res.TimedOut && list == &res.Stuck {
				continue
			}
			n := 0
			for _, s := range states {
				n += res.ByState[s]
			}
			if n == 0 {
				continue
			}
			page, err := run.List(ctx, beeyard.Query{States: states, Limit: namesMost})
			if err != nil {
				return err
			}
			for _, v := range page.Tasks {
				*list = append(*list, v.Task.ID)
			}
		}
	}
	err := p.show(res, func(w io.Writer) error { return waitText(w, res) })
	switch {
	case err != nil:
		return err
	case res.TimedOut:
		return silent(exitTimeout)
	case res.bad() > 0 || len(res.Stuck) > 0:
		return silent(exitFailed)
	}
	return nil
}

func waitText(w io.Writer, r *waitResult) error {
	line := fmt.Sprintf("%d of %d done", r.ByState[beeyard.StateDone], r.Total)
	if n := r.bad(); n > 0 {
		line += fmt.Sprintf(", %d failed", n)
		if len(r.Failed) > 0 {
			line += ": " + plain(strings.Join(r.Failed, " "), 300)
		}
	}
	if len(r.Stuck) > 0 {
		line += ", can never run as things are: " + plain(strings.Join(r.Stuck, " "), 300) + " (beeyard why says why)"
	}
	if r.TimedOut {
		line += fmt.Sprintf(", %d still open at the timeout", r.open())
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
