package logits

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// withBias gives a gate a bias that puts half of the experts, or half of the groups, at one end of
// the spread.
func withBias(g router.Gate, spread float64, rng *rand.Rand) router.Gate {
	g.Bias = make([]float32, g.Shape.Experts)
	size := 1
	if rng.IntN(2) == 0 && g.Shape.Grouped() {
		size = g.Shape.GroupSize()
	}
	for i, block := range rng.Perm(g.Shape.Experts / size) {
		for e := block * size; i%2 == 0 && e < (block+1)*size; e++ {
			g.Bias[e] = float32(spread)
		}
	}
	return g
}

// The margin is a promise: the hardest biases just below it change no choice, and just above it they do.
func TestMarginIsTight(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	single := router.Shape{Experts: 64, TopK: 4, Groups: 32, TopKGroups: 4} // one expert in each group
	for name, c := range map[string]struct {
		gate   router.Gate
		margin float64
	}{
		"DeepSeek-V3":          {deepSeek(), 1},
		"MiniMax2":             {small(router.MiniMax2), 1},
		"one expert per group": {router.Gate{Method: router.DeepSeekV3, Shape: single}, 0.5},
		"DeepSeek-V4":          {small(router.DeepSeekV4), math.Sqrt(32)}, // √softplus(32); the lower level adds nothing
		"no bias":              {small(router.Renormalize), math.Inf(1)},
	} {
		_, list := filled(t, specOf(c.gate, min(8, c.gate.Shape.Experts)), "diagonal", 64)
		if margin := float64(list[0].LargestBias); math.Abs(margin-c.margin) > 1e-6 {
			t.Errorf("%s: margin %v, want %v", name, margin, c.margin)
		}
		ids, values := read(t, list[2].Path)
		experts, k, moved := c.gate.Shape.Experts, c.gate.Shape.TopK, map[bool]int{}
		for i := range 40 {
			share := []float64{0.999, 1.001}[i%2]
			if math.IsInf(c.margin, 1) {
				break
			}
			r := require.Value(router.NewRouter(withBias(c.gate, c.margin*share, rng)))
			picked := make([]int32, k)
			for row := range slices.Chunk(ids, k) {
				r.Route(values[:experts], picked, nil)
				if slices.ContainsFunc(picked, func(e int32) bool { return !slices.Contains(row, int64(e)) }) {
					moved[share > 1]++
				}
				values = append(values[experts:], values[:experts]...)
			}
		}
		if moved[false] > 0 || (moved[true] > 0) != !math.IsInf(c.margin, 1) {
			t.Errorf("%s: rows moved below and above the margin: %v", name, moved)
		}
	}
}

// A plan that ignores the gate's groups cannot be routed as it stands; the entry holds what the router does.
func TestPlanThatIgnoresGroups(t *testing.T) {
	dir, list := filled(t, specOf(deepSeek(), 8), "trtllm-gen1", 16)
	if e := list[0]; e.Status != "projected" || e.ProjectedRows != 16 || !verified(t, dir).Balance[0].Projected {
		t.Errorf("%+v", e)
	}
	ids, _ := read(t, list[0].Path)
	for row := range slices.Chunk(ids, 8) {
		groups := map[int64]bool{}
		for _, id := range row {
			groups[id/32] = true
		}
		if len(groups) > 4 {
			t.Errorf("row %v uses too many groups", row)
		}
	}
}

// A promise that the router does not keep is a fault: other experts, or weights that differ, whichever is the larger.
func TestPromisesAreHeld(t *testing.T) {
	s := require.Value(specOf(small(router.Renormalize), 8).withDefaults())
	w := require.Value(newWriter(s, nil))
	if to, err := w.route([]int32{3, 3}); err != nil || to.to == nil {
		t.Errorf("one expert twice is what the router picks: %v, %v", to, err)
	}
	if fair([]float32{0.4, 0.6}) || fair([]float32{0.6, 0.4}) || !fair([]float32{0.5, 0.5}) {
		t.Error("weights that differ are fair, or equal ones are not")
	}
}
