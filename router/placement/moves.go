package placement

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// Loaded is how many copies all ranks load that move from one layout to another:
// the different experts that each holds in the second and not in the first.
func Loaded(from, to router.Layout) (all int) {
	for rank := range to.Ranks() {
		all += lacks(from.Held(rank), to.Held(rank))
	}
	return all
}

// lacks is how many different experts of the second list are not in the first.
func lacks(had, wanted []int32) (n int) {
	for i, e := range wanted {
		if !slices.Contains(had, e) && !slices.Contains(wanted[:i], e) {
			n++
		}
	}
	return n
}

// Renamed is a placement with the same load, whose ranks are called so that they load the
// fewest copies coming from another, and hold what stays in the slot where it was. Ranks
// of one node stay together.
func Renamed(slots []int32, from router.Layout, s Size) []int32 {
	ranks, nodes := from.Ranks(), s.hierarchy().Nodes
	held, perNode := slices.Collect(slices.Chunk(slots, len(slots)/ranks)), ranks/nodes
	inner, cost := make([][][]int, nodes), make([][]float64, nodes)
	for node := range nodes { // that runs
		inner[node], cost[node] = make([][]int, nodes), make([]float64, nodes)
		for other := range nodes { // that is to come in its place
			c := make([][]float64, perNode)
			for i := range c {
				for j := range perNode {
					c[i] = append(c[i], float64(lacks(from.Held(node*perNode+i), held[other*perNode+j])))
				}
			}
			inner[node][other] = assignment(c)
			for i, j := range inner[node][other] {
				cost[node][other] += c[i][j]
			}
		}
	}
	var out []int32
	for node, other := range assignment(cost) {
		for i, j := range inner[node][other] {
			out = append(out, inPlace(held[other*perNode+j], from.Held(node*perNode+i))...)
		}
	}
	return out
}

// inPlace orders the experts of a rank so that those it had stay in their slots.
func inPlace(experts, had []int32) []int32 {
	rest, out := slices.Clone(experts), slices.Repeat([]int32{-1}, len(experts))
	for slot, e := range had {
		if i := slices.Index(rest, e); i >= 0 && slot < len(out) {
			out[slot], rest = e, slices.Delete(rest, i, i+1)
		}
	}
	for slot, e := range out {
		if e < 0 {
			out[slot], rest = rest[0], rest[1:]
		}
	}
	return out
}

// assignment gives each row of a square matrix a column of its own so that their costs add
// up to the least, by shortest augmenting paths (the Hungarian method of Jonker and Volgenant).
func assignment(cost [][]float64) []int {
	n := len(cost)
	u, v := make([]float64, n+1), make([]float64, n+1)
	row, way := make([]int, n+1), make([]int, n+1) // of each column, from 1; 0 for none
	for i := 1; i <= n; i++ {
		least, used, at := slices.Repeat([]float64{math.Inf(1)}, n+1), make([]bool, n+1), 0
		for row[0] = i; row[at] != 0; {
			used[at] = true
			step, next := math.Inf(1), 0
			for j := 1; j <= n; j++ {
				if used[j] {
					continue
				}
				if c := cost[row[at]-1][j-1] - u[row[at]] - v[j]; c < least[j] {
					least[j], way[j] = c, at
				}
				if least[j] < step {
					step, next = least[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[row[j]], v[j] = u[row[j]]+step, v[j]-step
				} else {
					least[j] -= step
				}
			}
			at = next
		}
		for at != 0 {
			row[at], at = row[way[at]], way[at]
		}
	}
	columns := make([]int, n)
	for j := 1; j <= n; j++ {
		columns[row[j]-1] = j - 1
	}
	return columns
}
