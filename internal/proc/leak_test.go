package proc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Many trees of every kind leave no goroutine, descriptor, zombie, process or
// cgroup behind.
func TestNothingGrows(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	eachLevel(t, func(t *testing.T, c *controller) {
		m := mark()
		scripts := []string{
			"exit 0",
			"exit 3",
			"(setsid sleep " + m + " &) ; exit 0",
			"sleep " + m,
			"trap '' TERM; sleep " + m + " & while :; do sleep " + m + "; done",
			"exec <&-; exit 0",
			"echo out; echo err >&2; setsid sleep " + m,
		}
		one := func(i int) {
			log := NewCappedLog(discardAt{}, 0)
			cap, err := NewCapture(log, log.Stderr())
			if err != nil {
				t.Error(err)
				return
			}
			s := sh(scripts[i%len(scripts)])
			s.Stdin, s.Stdout, s.Stderr = make([]byte, 1<<20), cap.Stdout(), cap.Stderr()
			s.Timeout, s.Grace = 50*time.Millisecond, 20*time.Millisecond
			p, err := c.start(context.Background(), s)
			if err != nil {
				t.Error(err)
			} else if r := p.Wait(); r.Abandoned {
				t.Errorf("%+v", r)
			}
			if i%9 == 0 {
				c.start(context.Background(), Spec{Path: "/no/such", Stdin: []byte("x")})
			}
			if i%5 == 0 {
				if l, err := c.startLines(context.Background(), sh(echoLines)); err != nil {
					t.Error(err)
				} else {
					l.Do(context.Background(), []byte("x"), time.Minute)
					l.Close()
				}
			}
			cap.Close()
			log.Close()
		}
		all := func(n int) {
			var wg sync.WaitGroup
			for slot := range 4 {
				wg.Go(func() {
					for i := range n {
						one(slot + i)
					}
				})
			}
			wg.Wait()
		}
		all(len(scripts)) // what is made once is made now
		before := openFDs(t)
		all(rounds)
		if c.level == LevelCgroup {
			// Idle cgroups are open: as many as ever ran at once, here 8.
			if n := len(ownCgroups(t, c)); n > 9 {
				t.Errorf("%d cgroups", n)
			}
			before += 4 * 8
		}
		if after := openFDs(t); after > before {
			t.Errorf("%d descriptors, %d before", after, before)
		}
		noneLeft(t, m)
		// What was killed in a cgroup becomes init's; with the subreaper it is ours.
		if c.level == LevelSubreaper {
			c.mustRun(t, sh("(sleep 0.01 &) ; exit 0"))
		}
		if z := ourZombies(); len(z) > 0 && c.level == LevelSubreaper {
			t.Errorf("zombies: %v", z)
		}
		goleak.VerifyNone(t)
	})
}

// 500 starts and stops, stopped at every moment of their lives.
func TestStartStop(t *testing.T) {
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	eachLevel(t, func(t *testing.T, c *controller) {
		m := mark()
		for i := range rounds {
			p := c.mustStart(t, sh(fmt.Sprintf("sleep %s & sleep %s", m, m)))
			time.Sleep(time.Duration(i%10) * 100 * time.Microsecond)
			if i%2 == 0 {
				p.Stop("x")
			} else {
				p.Kill()
			}
			if r := waitFor(t, p); r.Stopped == "" || r.Abandoned {
				t.Fatalf("round %d: %+v", i, r)
			}
		}
		noneLeft(t, m)
	})
}
