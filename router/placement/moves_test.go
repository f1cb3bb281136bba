package placement

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/combin"

	"github.com/moebalance/moebalance/router"
)

// By hand: 0 2 | 1 3 is 3 1 | 2 0 with other names, and nothing moves; of 4 5 in place of 2 3
// each rank loads one.
func TestRenamed(t *testing.T) {
	from, _ := router.Placed(4, [][]int32{{0, 2}, {1, 3}})
	if out := Renamed([]int32{3, 1, 2, 0}, from, Size{}); !slices.Equal(out, []int32{0, 2, 1, 3}) {
		t.Error(out)
	}
	if out := Renamed([]int32{3, 2, 1, 0}, from, Size{}); !slices.Equal(out, []int32{3, 2, 1, 0}) &&
		!slices.Equal(out, []int32{0, 1, 2, 3}) {
		t.Error(out)
	}
	// Two nodes of two ranks: 0 | 1 and 2 | 3 keep together.
	nodes, _ := router.Placed(4, [][]int32{{0}, {1}, {2}, {3}})
	if out := Renamed([]int32{3, 2, 1, 0}, nodes, Size{Groups: 2, Nodes: 2}); !slices.Equal(out, []int32{0, 1, 2, 3}) {
		t.Error(out)
	}
	if out := Renamed([]int32{3, 1, 2, 0}, nodes, Size{Groups: 2, Nodes: 2}); lacksOf(nodes, out) != 2 {
		t.Error(out)
	}
}

func lacksOf(from router.Layout, slots []int32) int {
	to, _ := Layout(from.Experts(), slots, from.Ranks())
	return Loaded(from, to)
}

// An assignment costs no more than the best of all permutations.
func TestAssignment(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := 1 + rng.IntN(6)
		cost := make([][]float64, n)
		for i := range cost {
			for range n {
				cost[i] = append(cost[i], float64(rng.IntN(9)))
			}
		}
		of := func(columns []int) (sum float64) {
			for i, j := range columns {
				sum += cost[i][j]
			}
			return sum
		}
		got, best := assignment(cost), 1e9
		for _, columns := range combin.Permutations(n, n) {
			best = min(best, of(columns))
		}
		if of(got) != best {
			t.Fatalf("%v: %v costs %v, the best %v", cost, got, of(got), best)
		}
	}
}
