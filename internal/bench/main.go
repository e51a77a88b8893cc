// Command bench measures what beeyard promises about its speed, as ratios
// within one run on one machine: against a bare loop of the very system calls
// that the protocol needs, against bare fork and exec, against itself at
// another size, against an empty program. Absolute figures are shown too and
// mean little on a shared machine.
//
//	go run ./internal/bench [-only enqueue,settle] [-binary bin/beeyard]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// result is one line of the report.
type result struct {
	what  string
	got   float64
	goal  float64
	least bool // goal is a lower bound; else an upper one
	unit  string
	note  string
}

func (r result) ok() bool {
	if r.least {
		return r.got >= r.goal
	}
	return r.got <= r.goal
}

func (r result) String() string {
	sign, verdict := "≤", "ok"
	if r.least {
		sign = "≥"
	}
	if !r.ok() {
		verdict = "MISSED"
	}
	return fmt.Sprintf("MEASURED %-58s %8.2f%s (goal %s %g)  %-6s %s", r.what, r.got, r.unit, sign, r.goal, verdict, r.note)
}

type bench struct {
	name string
	run  func(b *env) ([]result, error)
}

// env is what the measurements share.
type env struct {
	dir    string // on the disk that runs live on
	binary string
	n      int // a scale for quick runs
}

// folder gives a fresh one: after removing a very large folder, creates
// elsewhere on the same ext4 run slower for minutes, so none is removed before
// the end.
func (e *env) folder(name string) string {
	d, err := os.MkdirTemp(e.dir, name+"-")
	if err != nil {
		fatal(err)
	}
	return d
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-answer-lines" {
		answerLines()
		return
	}
	only := flag.String("only", "", "comma-separated measurements; empty: all")
	binary := flag.String("binary", "bin/beeyard", "the program to measure")
	dir := flag.String("dir", "", "where runs are made; empty: a temporary folder")
	scale := flag.Int("scale", 1, "divide the sizes by this, for a quick look")
	flag.Parse()
	abs, err := filepath.Abs(*binary)
	if err != nil {
		fatal(err)
	}
	temp, err := os.MkdirTemp(*dir, "beeyard-bench-")
	if err != nil {
		fatal(err)
	}
	e := &env{dir: temp, binary: abs, n: max(*scale, 1)}
	missed := 0
	for _, b := range []bench{
		{"enqueue", benchEnqueue}, {"batch", benchBatch}, {"settle", benchSettle}, {"lines", benchLines},
		{"handler", benchHandler}, {"latency", benchLatency}, {"start", benchStart}, {"claim", benchClaim}, {"drain", benchDrain},
	} {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), b.name) {
			continue
		}
		results, err := b.run(e)
		if err != nil {
			fatal(fmt.Errorf("%s: %w", b.name, err))
		}
		for _, r := range results {
			fmt.Println(r)
			if !r.ok() {
				missed++
			}
		}
	}
	if err := os.RemoveAll(temp); err != nil {
		fatal(err)
	}
	if missed > 0 {
		fmt.Printf("%d goals missed\n", missed)
		os.Exit(1)
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

func quantile(v []float64, q float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[min(int(float64(len(s))*q), len(s)-1)]
}
