package plan

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// uniform chooses for every token k distinct experts at random, every set of k
// equally likely; with groups first TopKGroups distinct groups, then k distinct
// experts of these groups. The numbers come from PCG seeded with the seed and with the
// source and layer, so ranks and layers are independent; a number below n is the
// high word of a 64-bit product, whose bias of n/2⁶⁴ nobody can measure.
type uniform struct {
	problem Problem
	name    string
	seed    uint64
}

// Name holds the seed, such as "uniform/1 seed=7".
func (u *uniform) Name() string { return fmt.Sprintf("%s/1 seed=%d", u.name, u.seed) }

// random are the numbers of a rank's source.
func (u *uniform) random(rank int) *rand.PCG {
	return rand.NewPCG(u.seed, uint64(u.problem.Layer)<<32|uint64(u.problem.source(rank)))
}

func (u *uniform) Fill(dst []int32, rank int) {
	checkFill(u.problem, dst, rank)
	shape, random := u.problem.Shape, u.random(rank)
	groups, size := make([]int32, shape.GroupLimit()), int32(shape.GroupSize())
	for ; len(dst) > 0; dst = dst[shape.TopK:] {
		token := dst[:shape.TopK]
		if shape.Grouped() {
			sample(groups, shape.Groups, random)
		}
		sample(token, shape.Reachable(), random)
		for i, x := range token {
			token[i] = groups[x/size]*size + x%size
		}
	}
}

// sample fills dst with distinct numbers below n, every set equally likely:
// Floyd's method (Bentley and Floyd, CACM 30(9), 1987). The order is not
// uniform; nothing here depends on it.
func sample(dst []int32, n int, random *rand.PCG) {
	for i := range dst {
		last := n - len(dst) + i
		high, _ := bits.Mul64(random.Uint64(), uint64(last+1))
		pick := int32(high)
		if slices.Contains(dst[:i], pick) {
			pick = int32(last)
		}
		dst[i] = pick
	}
}
