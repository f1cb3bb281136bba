package logits

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// writerOf is an entry writer of a gate on as many ranks as there may be, 8 at most, with its spec.
func writerOf(t *testing.T, g router.Gate) (Spec, *entryWriter) {
	t.Helper()
	s := verifiedSpec(t, specOf(t, g, min(8, g.Shape.Experts)))
	w, err := newEntryWriter(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func (s Spec) assigned(t *testing.T, w *entryWriter, tokens int) (Feasibility, []int32) {
	t.Helper()
	p, err := s.plan("diagonal", tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.assign(p, s.Layout.Ranks()/3)
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.NewRouter(s.Gate)
	if err != nil {
		t.Fatal(err)
	}
	v, k := logitsOf(s.Gate), s.Gate.Shape.TopK
	for row := range slices.Chunk(w.ids, k) {
		logits, picked := slices.Repeat([]float32{v.low}, s.Gate.Shape.Experts), make([]int32, k)
		for _, id := range row {
			logits[id] = v.high
		}
		broken := func(id int32) bool { return !slices.Contains(row, id) }
		if err := r.Route(logits, picked, nil); err != nil || slices.ContainsFunc(picked, broken) {
			t.Fatalf("%v: promised %v, the router picks %v, %v", s.Gate, row, picked, err)
		}
	}
	return f, w.ids
}

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

// The margin is a promise: the hardest biases just below it change nothing, and just above it they do.
func TestMarginIsTight(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	single := router.Shape{Experts: 64, TopK: 4, Groups: 8, TopKGroups: 4} // one expert in each group
	for name, c := range map[string]struct {
		gate   router.Gate
		margin float64
	}{
		"DeepSeek-V3":          {deepSeek(), 1},
		"MiniMax2":             {small(router.MiniMax2), 1},
		"one expert per group": {router.Gate{Method: router.DeepSeekV3, Shape: single}, 0.5},
		"DeepSeek-V4":          {small(router.DeepSeekV4), math.Sqrt(32)}, // √softplus(32); the lower level adds nothing
	} {
		moved := map[bool]int{}
		for range 20 {
			for _, share := range []float64{0, 0.999, 1.001} {
				s, w := writerOf(t, withBias(c.gate, c.margin*share, rng))
				f, _ := s.assigned(t, w, 64)
				if share == 0 && math.Abs(f.LargestBias-c.margin) > 1e-6 {
					t.Errorf("%s: margin %v, want %v", name, f.LargestBias, c.margin)
				}
				moved[share > 1] += f.ProjectedRows
			}
		}
		// DeepSeek-V4's levels rise with the bias.
		if moved[false] > 0 || (moved[true] > 0) != (c.gate.Method != router.DeepSeekV4) {
			t.Errorf("%s: rows moved below and above the margin: %v", name, moved)
		}
	}
}

// By hand, MiniMax2 of 4 experts: expert 2 has 1.5 + σ(−32) even when left out, above 0 + σ(32) = 1 of
// any other, so it is always picked. DeepSeekV3 of 4 groups: group 3 starts 5 ahead, and its two best
// have 10 when no logit helps them, above 2 of any other group.
func TestBiasBeyondLogitsByHand(t *testing.T) {
	s, w := writerOf(t, router.Gate{Method: router.MiniMax2, Shape: router.Shape{Experts: 4, TopK: 2},
		Bias: []float32{0, 0, 1.5, 0}})
	f, ids := s.assigned(t, w, 6)
	for row := range slices.Chunk(ids, 2) {
		if !slices.Contains(row, 2) || f.ProjectedRows == 0 {
			t.Errorf("row %v avoids expert 2, %+v", row, f)
		}
	}
	g := router.Gate{Method: router.DeepSeekV3, Shape: router.Shape{Experts: 16, TopK: 4, Groups: 4, TopKGroups: 2},
		Bias: append(make([]float32, 12), 5, 5, 5, 5)}
	_, w = writerOf(t, g)
	for _, row := range [][]int32{{0, 1, 4, 5}, {0, 1, 12, 13}, {0, 1, 2, 3}, {12, 13, 14, 15}, {0, 4, 8, 12}} {
		to, err := w.route(row)
		if slices.Sort(to.to); err != nil || (to.to == nil) != (row[0] == 12) ||
			to.to != nil && !slices.Equal(to.to, []int32{12, 13, 14, 15}) {
			t.Errorf("row %v: %v, %v", row, to, err)
		}
	}
}

// Wild biases in every kind of shape: what is promised is routed (assigned does), experts are
// distinct, and groups few enough; a spread below the margin moves nothing.
func TestWildBiases(t *testing.T) {
	rng, statuses := rand.New(rand.NewPCG(12, 13)), map[string]int{}
	for range 400 {
		groups, size := 1<<rng.IntN(4), 1+rng.IntN(8)
		limit := 1 + rng.IntN(groups)
		shape := router.Shape{Experts: groups * size, TopK: 1 + rng.IntN(min(8, limit*size)), Groups: groups,
			TopKGroups: limit}
		g := router.Gate{Method: router.DeepSeekV3, Shape: shape, Bias: make([]float32, shape.Experts)}
		scale, offset := math.Pow(10, 3*rng.Float64()-2), []float64{0, -5, 4096, 3e7}[rng.IntN(4)]
		for e := range g.Bias {
			g.Bias[e] = float32(offset + rng.NormFloat64()*scale)
		}
		s, w := writerOf(t, g)
		f, ids := s.assigned(t, w, 1+rng.IntN(30))
		statuses[f.Status()]++
		if spread := Spread(g.Bias); spread < f.LargestBias*0.999 && f.ProjectedRows > 0 && offset < 1e6 {
			t.Fatalf("%v: a spread of %v is below the margin, yet %+v", shape, spread, f)
		}
		for row := range slices.Chunk(ids, shape.TopK) {
			entered := map[int32]bool{}
			for _, id := range row {
				entered[id/int32(shape.GroupSize())] = true
			}
			if len(entered) > shape.GroupLimit() {
				t.Fatalf("%v: row %v uses too many groups", shape, row)
			}
		}
	}
	if len(statuses) != 2 {
		t.Errorf("want exact and projected cases, have %v", statuses)
	}
}

// A plan that ignores the gate's groups cannot be routed as it stands; the entry holds what the router does.
func TestPlanThatIgnoresGroups(t *testing.T) {
	dir, list := filled(t, specOf(t, deepSeek(), 8), "trtllm-gen1", 16)
	if f := list[0].Feasibility; f.Status() != "projected" || f.ProjectedRows != 16 ||
		!verified(t, dir).Balance[0].Projected {
		t.Errorf("%+v", f)
	}
}

// A promise that the router does not keep is a fault: other experts, or weights that differ, whichever is the larger.
func TestPromisesAreHeld(t *testing.T) {
	_, w := writerOf(t, small(router.Renormalize))
	if to, err := w.route([]int32{3, 3}); err != nil || to.to == nil {
		t.Errorf("one expert twice is what the router picks: %v, %v", to, err)
	}
	for _, weights := range [][]float32{{0.4, 0.6}, {0.6, 0.4}} {
		if fair(weights) || !fair([]float32{0.5, 0.5}) {
			t.Errorf("weights %v are equal, or 0.5 and 0.5 are not", weights)
		}
	}
}
