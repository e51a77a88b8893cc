package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// timed runs a program and gives its whole time.
func timed(path string, args ...string) (float64, error) {
	cmd := exec.Command(path, args...)
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begun).Seconds()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", filepath.Base(path), err, out)
	}
	return took, nil
}

// benchStart compares a claim that finds nothing with an empty Go program.
func benchStart(e *env) ([]result, error) {
	dir := e.folder("empty")
	src := filepath.Join(dir, "main.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return nil, err
	}
	empty := filepath.Join(dir, "empty")
	build := exec.Command("go", "build", "-o", empty, src)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build an empty program: %w: %s", err, out)
	}
	run := filepath.Join(e.folder("start"), "run")
	r, err := openBench(run, nil)
	if err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	var ratios []float64
	var a, b float64
	for range max(60/e.n, 10) {
		if a, err = timed(empty); err != nil {
			return nil, err
		}
		if b, err = timed(e.binary, "version"); err != nil {
			return nil, err
		}
		ratios = append(ratios, b/a)
	}
	init, err := initTime(e.binary, run)
	if err != nil {
		return nil, err
	}
	return []result{
		{what: "cold start: times an empty Go program", got: median(ratios), goal: 4, note: fmt.Sprintf("%.1f ms against %.1f ms", b*1e3, a*1e3)},
		{what: "package-level work on the path of claim (inittrace)", got: init, goal: 2, unit: " ms"},
	}, nil
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.*?, ([0-9.]+) ms clock`)

// initTime adds up what packages do before main, by the runtime's own account.
func initTime(binary, run string) (float64, error) {
	var all []float64
	for range 9 {
		cmd := exec.Command(binary, "claim", "--run", run, "--worker-id", "bench")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("claim: %w: %s", err, out)
		}
		lines := initLine.FindAllStringSubmatch(string(out), -1)
		if len(lines) == 0 {
			return 0, errors.New("the runtime printed no init lines")
		}
		sum := 0.0
		for _, l := range lines {
			ms, err := strconv.ParseFloat(l[2], 64)
			if err != nil {
				return 0, err
			}
			sum += ms
		}
		all = append(all, sum)
	}
	return median(all), nil
}

// benchClaim is a one-shot claim with many pending, as a whole process.
func benchClaim(e *env) ([]result, error) {
	n := 100000 / e.n
	run := filepath.Join(e.folder("claim"), "run")
	r, err := openBench(run, nil)
	if err != nil {
		return nil, err
	}
	if err := fill(context.Background(), r, "t", n); err != nil {
		return nil, err
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	var plain, strict []float64
	for i := range 9 {
		s, err := timed(e.binary, "claim", "--run", run, "--worker-id", fmt.Sprintf("p%d", i))
		if err != nil {
			return nil, err
		}
		plain = append(plain, s*1e3)
	}
	for i := range 3 {
		s, err := timed(e.binary, "claim", "--run", run, "--worker-id", fmt.Sprintf("s%d", i), "--strict-order")
		if err != nil {
			return nil, err
		}
		strict = append(strict, s*1e3)
	}
	return []result{
		{what: fmt.Sprintf("one-shot claim at %d pending", n), got: median(plain), goal: 60, unit: " ms", note: fmt.Sprintf("first, with a cold index: %.0f ms", plain[0])},
		{what: fmt.Sprintf("one-shot claim --strict-order at %d pending", n), got: median(strict), goal: 2000, unit: " ms", note: fmt.Sprintf("worst %.0f ms", quantile(strict, 1))},
	}, nil
}
