package spool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"beeyard"
)

// The graph is gone over once: a chain, a circle and a comb of 100,000 tasks.
func TestDoctorGraphOfManyTasks(t *testing.T) {
	const n = 100_000
	chain := make([][]int32, n)
	for i := range n - 1 {
		chain[i] = []int32{int32(i + 1)}
	}
	ring := slices.Clone(chain)
	ring[n-1] = []int32{0}
	rng := rand.New(rand.NewPCG(3, 4))
	random := make([][]int32, n)
	for i := 1; i < n; i++ {
		for range 3 {
			random[i] = append(random[i], rng.Int32N(int32(i)))
		}
	}
	for _, c := range []struct {
		name string
		next [][]int32
		want []int
	}{{"chain", chain, nil}, {"ring", ring, []int{n}}, {"random", random, nil}} {
		start := time.Now()
		got := cycles(c.next)
		t.Logf("%s of %d: %v", c.name, n, time.Since(start))
		var sizes []int
		for _, g := range got {
			sizes = append(sizes, len(g))
		}
		if !slices.Equal(sizes, c.want) {
			t.Errorf("%s: circles of %v, want %v", c.name, sizes, c.want)
		}
	}
}

// Every circle that is reported is one, and there is one exactly when the plain
// search of the domain finds one.
func TestDoctorCyclesAreTheDomains(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rng.IntN(12)
		next := make([][]int32, n)
		for i := range next {
			for range rng.IntN(3) {
				next[i] = append(next[i], rng.Int32N(int32(n)))
			}
		}
		got := cycles(next)
		inSome := map[int32]bool{}
		for _, c := range got {
			for i, v := range c {
				inSome[v] = true
				if !slices.Contains(next[v], c[(i+1)%len(c)]) {
					t.Fatalf("seed %d: %v is no circle of %v", seed, c, next)
				}
			}
		}
		name := func(list []int32) []string {
			var out []string
			for _, i := range list {
				out = append(out, fmt.Sprint(i))
			}
			return out
		}
		any := false
		for i := range next {
			path := beeyard.FindCycle(fmt.Sprint(i), name(next[i]), func(id string) ([]string, bool) {
				var j int
				if _, err := fmt.Sscan(id, &j); err != nil {
					t.Fatal(err)
				}
				return name(next[j]), true
			})
			any = any || path != nil
			if inSome[int32(i)] && path == nil {
				t.Fatalf("seed %d: %d is in no circle of %v", seed, i, next)
			}
		}
		if any != (len(got) > 0) {
			t.Fatalf("seed %d: circles %v of %v", seed, got, next)
		}
	}
}
