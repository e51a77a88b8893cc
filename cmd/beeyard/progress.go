package main

import (
	"fmt"
	"strings"
	"time"

	"beeyard"
	"beeyard/worker"
)

// bar draws progress on a terminal's stderr, on one line.
type bar struct {
	p     *program
	on    bool
	total int
	base  int // ended before we came
	done  int
	bad   int
	begun time.Time
	drawn time.Time
}

func (p *program) newBar(total int) *bar {
	return &bar{p: p, on: p.progress(), total: total, begun: p.clock.Now()}
}

func (b *bar) hear(e worker.Event) {
	switch e.Kind {
	case "settled":
		switch {
		case e.State == beeyard.StateDone:
			b.done++
		case e.State.Finished():
			b.bad++
		}
	case "paused", "note", "lost", "reaped":
		if b.on {
			b.clear()
			b.p.notef("%s", workLine(e))
		}
	}
	b.draw(false)
}

// set is for those who count themselves.
func (b *bar) set(done, bad int) { b.done, b.bad = done, bad; b.draw(false) }

func (b *bar) draw(last bool) {
	now := b.p.clock.Now()
	if !b.on || !last && now.Sub(b.drawn) < 100*time.Millisecond {
		return
	}
	b.drawn = now
	const width = 30
	ended := min(b.base+b.done+b.bad, b.total)
	fill := width
	if b.total > 0 {
		fill = width * ended / b.total
	}
	line := fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("#", fill), strings.Repeat(".", width-fill), ended, b.total)
	if b.bad > 0 {
		line += fmt.Sprintf(", %d failed", b.bad)
	}
	if did := b.done + b.bad; did > 0 && ended < b.total {
		left := now.Sub(b.begun) / time.Duration(did) * time.Duration(b.total-ended)
		line += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	fmt.Fprintf(b.p.stderr, "\r\x1b[K%s", line)
}

func (b *bar) clear() {
	if b.on {
		fmt.Fprint(b.p.stderr, "\r\x1b[K")
	}
}

func (b *bar) end() {
	if b.on {
		b.draw(true)
		fmt.Fprintln(b.p.stderr)
	}
}
