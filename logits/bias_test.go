package logits

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// withBias gives a gate a bias that puts half of the experts at one end of the
// spread and half at the other, in random order. Every second bias does so by
// whole groups.
func withBias(g router.Gate, spread float64, rng *rand.Rand) router.Gate {
	g.Bias = make([]float32, g.Shape.Experts)
	size := 1
	if rng.IntN(2) == 0 {
		size = max(1, g.Shape.Experts/max(1, g.Shape.Groups)%g.Shape.Experts)
	}
	for i, block := range rng.Perm(g.Shape.Experts / size) {
		for e := block * size; i%2 == 0 && e < (block+1)*size; e++ {
			g.Bias[e] = float32(spread)
		}
	}
	return g
}

// entersTooMany reports whether a row is spread over more groups than a token may use.
func entersTooMany(s router.Shape, row []int32) bool {
	groups, _ := newGroupCounts(s).of(row)
	return groups > s.GroupLimit()
}

// feasibilityOf plans and reconciles one rank of eight, or of as many as there are experts.
func feasibilityOf(t *testing.T, g router.Gate, tokens int) (Feasibility, []int32) {
	t.Helper()
	ranks := min(8, g.Shape.Experts)
	rank := ranks / 3
	s, w := writerOf(t, specOf(t, g, ranks))
	plan, err := s.plan(tokens)
	if err != nil {
		t.Fatal(err)
	}
	var file memory
	made, err := w.write(context.Background(), plan, rank, sized(tokens), &file)
	if err != nil {
		t.Fatal(err)
	}
	if err := newChecker(new(plans)).checkBytes(nameOf(t, s, rank, tokens), file.b); err != nil {
		t.Fatalf("what was written fails: %v", err)
	}
	return made.feasibility, w.ids
}

// The margin is a promise: the hardest biases just below it change nothing, and
// just above it they do.
func TestMarginIsTight(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, which has no more to find here than in the other tests")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	single := router.Shape{Experts: 64, TopK: 4, Groups: 8, TopKGroups: 4} // one expert in each group
	for name, c := range map[string]struct {
		gate   router.Gate
		margin float64
	}{
		"DeepSeek-V3":          {deepSeek(), 1},
		"MiniMax2":             {small(router.MiniMax2), 1},
		"one expert per group": {router.Gate{Method: router.DeepSeekV3, Shape: single}, 0.5},
		// √softplus(32) = √32 = 5.657, the lower level adds nothing.
		"DeepSeek-V4": {small(router.DeepSeekV4), math.Sqrt(32)},
	} {
		unbiased, _ := feasibilityOf(t, c.gate, 64)
		if math.Abs(unbiased.LargestBias-c.margin) > 1e-6 || unbiased.ProjectedRows > 0 {
			t.Errorf("%s: margin %v, want %v", name, unbiased.LargestBias, c.margin)
		}
		for range 20 {
			if f, _ := feasibilityOf(t, withBias(c.gate, c.margin*0.999, rng), 64); f.ProjectedRows > 0 {
				t.Errorf("%s: a spread of %v below the margin %v: %+v", name, c.margin*0.999, c.margin, f)
			}
		}
		if c.gate.Method == router.DeepSeekV4 {
			continue // its levels rise with the bias: see below
		}
		moved := 0
		for range 20 {
			f, _ := feasibilityOf(t, withBias(c.gate, c.margin*1.001, rng), 64)
			moved += f.ProjectedRows
		}
		if moved == 0 {
			t.Errorf("%s: no bias above the margin %v moved a token", name, c.margin)
		}
	}
}

// An offset shared by all experts is harmless, many times the spread though it be:
// only the spread counts, as long as float32 can tell it.
func TestOffsetsAreHarmless(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	g := withBias(deepSeek(), 0.9, rng)
	for e := range g.Bias {
		g.Bias[e] += 40
	}
	if f, _ := feasibilityOf(t, g, 64); f.ProjectedRows > 0 {
		t.Errorf("%+v", f)
	}
}

// A sigmoid adds at most 1: of 4 experts with the biases 0, 0, 1.5 and 0 a
// token cannot avoid expert 2. Worked by hand: it has 1.5 + σ(−32) even when
// left out, which beats 0 + σ(32) = 1 of any other; so it is always picked, and
// the other place goes to the planned expert with the lower index.
func TestBiasBeyondLogitsByHand(t *testing.T) {
	g := router.Gate{Method: router.MiniMax2, Shape: router.Shape{Experts: 4, TopK: 2}, Bias: []float32{0, 0, 1.5, 0}}
	f, ids := feasibilityOf(t, g, 6)
	if f.ProjectedRows == 0 {
		t.Fatalf("%+v", f)
	}
	for row := range slices.Chunk(ids, 2) {
		if !slices.Contains(row, 2) {
			t.Errorf("row %v avoids expert 2", row)
		}
	}
}

// Group 3 of 4 starts 5 ahead: its two best have 10 when no logit helps them, and
// two experts of another group have 2 at most. A plan of two groups that leaves it
// out cannot keep either of them; one that has it keeps 12 and 13, and loses 0 and 1 at
// 1 each to 14 and 15 at 5. One group of four leaves a place for group 3, and for its
// experts.
func TestBiasOfGroupsByHand(t *testing.T) {
	g := router.Gate{Method: router.DeepSeekV3, Shape: router.Shape{Experts: 16, TopK: 4, Groups: 4, TopKGroups: 2},
		Bias: make([]float32, 16)}
	for e := 12; e < 16; e++ {
		g.Bias[e] = 5
	}
	w, err := newEntryWriter(Spec{Gate: g, DType: Float32})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ row, kept []int32 }{
		{[]int32{0, 1, 4, 5}, []int32{12, 13, 14, 15}},
		{[]int32{0, 1, 12, 13}, []int32{12, 13, 14, 15}},
		{[]int32{0, 1, 2, 3}, []int32{12, 13, 14, 15}},
		{[]int32{12, 13, 14, 15}, []int32{12, 13, 14, 15}},
		{[]int32{0, 4, 8, 12}, []int32{12, 13, 14, 15}}, // too many groups, whatever the bias
		{[]int32{0, 4, 5, 6}, []int32{12, 13, 14, 15}},  // another logit for 1 would help 0
	} {
		row := slices.Clone(c.row)
		f, err := w.reconcile(row)
		moved := !slices.Equal(c.row, c.kept)
		if slices.Sort(row); err != nil || (f.ProjectedRows == 1) != moved || !slices.Equal(row, c.kept) {
			t.Errorf("row %v: %+v, %v kept, %v; want %v", c.row, f, row, err, c.kept)
		}
	}
}

// √softplus has no upper bound: the level rises until any spread is beaten.
func TestSqrtSoftplusBeatsAnySpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, spread := range []float64{1, 5, 6, 20, 100, 150} {
		g := withBias(small(router.DeepSeekV4), spread, rng)
		f, _ := feasibilityOf(t, g, 64)
		if f.ProjectedRows > 0 || f.LargestBias < spread {
			t.Errorf("spread %v: %+v with levels %+v", spread, f, logitsOf(g))
		}
		for _, d := range DTypes {
			high := logitsOf(g).high
			if high > highest || roundTrip(DType(d), high) != high {
				t.Errorf("spread %v: level %v is not exact in %s", spread, high, d)
			}
		}
	}
}

func roundTrip(d DType, x float32) float32 {
	e := Entry{Logits: []byte{},
		Record: Record{Spec: Spec{DType: d, Gate: router.Gate{Shape: router.Shape{Experts: 1}}}}}
	bits := d.encode(x)
	for range d.stored().Size() {
		e.Logits = append(e.Logits, byte(bits))
		bits >>= 8
	}
	return e.Row(nil, 0)[0]
}

// Wild biases in every kind of shape: whatever happens, what is written passes,
// the experts are distinct, and the groups are few enough.
func TestWildBiases(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 13))
	statuses := map[string]int{}
	for range 400 {
		groups := 1 << rng.IntN(4)
		size := 1 + rng.IntN(8)
		experts := groups * size
		limit := 1 + rng.IntN(groups)
		shape := router.Shape{Experts: experts, TopK: 1 + rng.IntN(min(8, limit*size)), Groups: groups,
			TopKGroups: limit}
		g := router.Gate{Method: router.DeepSeekV3, Shape: shape, Bias: make([]float32, experts)}
		scale := math.Pow(10, 3*rng.Float64()-2)
		for e := range g.Bias {
			g.Bias[e] = float32(rng.NormFloat64() * scale)
		}
		f, ids := feasibilityOf(t, g, 1+rng.IntN(30))
		statuses[f.Status()]++
		if spread := Spread(g.Bias); spread < f.LargestBias*0.999 && f.ProjectedRows > 0 {
			t.Fatalf("%v: a spread of %v is below the margin, yet %+v", shape, spread, f)
		}
		for row := range slices.Chunk(ids, shape.TopK) {
			if entersTooMany(shape, row) {
				t.Fatalf("%v: row %v uses too many groups", shape, row)
			}
		}
	}
	if len(statuses) != 2 {
		t.Errorf("want exact and projected cases, have %v", statuses)
	}
}

// A plan that ignores the gate's groups cannot be routed as it stands; the entry
// says so and holds what the router does.
func TestPlanThatIgnoresGroups(t *testing.T) {
	s := specOf(t, deepSeek(), 8)
	s.Plan = "trtllm-gen1"
	dir := t.TempDir()
	c := openCache(t, dir, s)
	list := fill(t, c, 16)
	if f := list[0].Feasibility; f.Status() != "projected" || f.ProjectedRows != 16 ||
		!strings.HasPrefix(verified(t, dir).Balance[0].Plan, "trtllm-gen1") {
		t.Errorf("%+v", f)
	}
}

// Rows that the levels decide are not routed, and routing them would change nothing:
// for biases on both sides of the margin, wherever their mean lies.
func TestDecidedRowsNeedNoRouting(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	spared, moved := 0, 0
	for i := range 3000 {
		g := router.Gate{Method: router.DeepSeekV3, Scale: 1, Shape: router.Shape{Experts: 16, TopK: 1 + rng.IntN(4),
			Groups: 4, TopKGroups: 1 + rng.IntN(3)}}
		if g.Method = []router.Method{router.DeepSeekV3, router.DeepSeekV3, router.MiniMax2,
			router.DeepSeekV4}[i%4]; !g.Method.GroupLimited() {
			g.Shape.Groups, g.Shape.TopKGroups = 0, 0
		}
		g.Shape.TopKGroups = min(g.Shape.TopKGroups, g.Shape.TopK)
		spread := []float64{0, 0.4, 0.499, 0.5 - 1e-6, 0.5, 0.75, 0.999, 1 - 1e-6, 1, 1.2}[rng.IntN(10)]
		offset := []float64{0, -0.3, -1, -5, 7, -1000, 4096, 3e5, 3e7}[rng.IntN(9)]
		g.Bias = make([]float32, 16)
		for e := range g.Bias {
			g.Bias[e] = float32(offset + spread*float64(rng.IntN(3))/2)
		}
		s, w := writerOf(t, specOf(t, g, 4))
		plan, err := s.plan(5)
		if err != nil {
			t.Fatal(err)
		}
		var ids [2][]int32
		var found [2]Feasibility
		for routed := range 2 {
			if routed == 1 {
				w.fewest = g.Shape.TopK + 1
			} else if w.fewest <= g.Shape.TopK {
				spared++
			}
			ids[routed] = make([]int32, 5*g.Shape.TopK)
			plan.Fill(ids[routed], i%4)
			if found[routed], err = w.reconcile(ids[routed]); err != nil {
				t.Fatal(err)
			}
		}
		moved += found[1].ProjectedRows
		if !slices.Equal(ids[0], ids[1]) || fmt.Sprint(found[0]) != fmt.Sprint(found[1]) {
			t.Fatalf("%v, %s, bias %v: %v %+v without routing, %v %+v with", g.Shape, g.Method, g.Bias, ids[0],
				found[0], ids[1], found[1])
		}
	}
	if spared < 500 || moved < 500 {
		t.Errorf("%d gates decided, %d rows moved: the test proved little", spared, moved)
	}
}
