package plan

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// random is a plan that draws each token; its name holds the seed, such as "uniform/1 seed=7". The
// numbers come from PCG seeded with the seed and with the source, so ranks are independent.
func (p Problem) random(name string, o Options, draw func(numbers *rand.Rand, token []int32)) (Plan, error) {
	return p.byToken(fmt.Sprintf("%s/1 seed=%d", name, o.Seed), func(rank int) func([]int32, int) {
		numbers := rand.New(rand.NewPCG(o.Seed, uint64(p.source(rank))))
		return func(token []int32, _ int) { draw(numbers, token) }
	}), nil
}

// uniform chooses for every token k distinct experts at random, every set of k
// equally likely; with groups first TopKGroups distinct groups, then k distinct
// experts of these groups.
func uniform(name string, p Problem, o Options) (Plan, error) {
	shape, size := p.Shape, int32(p.Shape.GroupSize())
	return p.random(name, o, func(numbers *rand.Rand, token []int32) {
		groups := make([]int32, shape.GroupLimit())
		if shape.Grouped() {
			sample(groups, shape.Groups, numbers)
		}
		sample(token, shape.Reachable(), numbers)
		for i, x := range token {
			token[i] = groups[x/size]*size + x%size
		}
	})
}

// sample fills dst with distinct numbers below n, every set equally likely:
// Floyd's method (Bentley and Floyd, CACM 30(9), 1987). The order is not
// uniform; nothing here depends on it. A number below n is the
// high word of a 64-bit product, whose bias of n/2⁶⁴ nobody can measure.
func sample(dst []int32, n int, numbers *rand.Rand) {
	for i := range dst {
		last := n - len(dst) + i
		high, _ := bits.Mul64(numbers.Uint64(), uint64(last+1))
		pick := int32(high)
		if slices.Contains(dst[:i], pick) {
			pick = int32(last)
		}
		dst[i] = pick
	}
}

// apart is SGLANG_SIMULATE_UNIFORM_EXPERTS: a random first expert for each token, the
// others a stride apart.
func apart(name string, p Problem, o Options) (Plan, error) {
	return p.random(name, o, func(numbers *rand.Rand, token []int32) {
		first := numbers.IntN(p.Shape.Experts)
		for s := range token {
			token[s] = int32((first + stride(p, s)) % p.Shape.Experts)
		}
	})
}

// normal is vLLM's normal_routing: every slot on its own takes expert ⌊E·σ(z)⌋ of a standard
// normal number z, so that a token may have an expert twice.
func normal(name string, p Problem, o Options) (Plan, error) {
	return p.random(name, o, func(numbers *rand.Rand, token []int32) {
		for s := range token {
			share := 1 / (1 + math.Exp(-numbers.NormFloat64()))
			token[s] = int32(min(int(share*float64(p.Shape.Experts)), p.Shape.Experts-1))
		}
	})
}
