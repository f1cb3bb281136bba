package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// realShapes are the shapes of models that are served, each on all powers of two up to 128
// ranks that divide its experts.
func realShapes(t testing.TB, mode router.Mode) (list []Problem) {
	for _, s := range []router.Shape{
		{Experts: 32, TopK: 4},                            // GPT-OSS 20B
		{Experts: 128, TopK: 4},                           // GPT-OSS 120B
		{Experts: 256, TopK: 8, Groups: 8, TopKGroups: 4}, // DeepSeek-V3
		{Experts: 160, TopK: 6, Groups: 8, TopKGroups: 3}, // DeepSeek-V2
		{Experts: 384, TopK: 8},                           // Kimi-K2
		{Experts: 128, TopK: 8},                           // Qwen3-30B
		{Experts: 512, TopK: 10},                          // Qwen3-Next
		{Experts: 160, TopK: 8},                           // GLM-4.5
		{Experts: 8, TopK: 2},                             // Mixtral
		{Experts: 256, TopK: 8},                           // MiniMax-M2
		{Experts: 128, TopK: 1},                           // Llama-4 Maverick
	} {
		for ranks := 1; ranks <= 128; ranks *= 2 {
			if s.Experts%ranks == 0 {
				list = append(list, problem(s.Experts, s.TopK, s.Groups, s.TopKGroups, ranks, mode, 1))
			}
		}
	}
	return list
}

// Eight experts, top-2, four ranks of two, by hand. Source s sends token t to ranks
// s + 2t and s + 2t + 1. In the first step rank 0 gets source 0 and, from its second
// slot, source 3; the first to choose takes the second expert, where the next lap
// begins. In the second step source 1 chooses first.
func TestTableByHand(t *testing.T) {
	table := newTable(problem(8, 2, 0, 0, 4, router.DEP, 2))
	for source, want := range [][]int32{{1, 3, 5, 7}, {2, 5, 6, 0}, {4, 7, 1, 2}, {6, 0, 3, 4}} {
		got := make([]int32, 4)
		if table.fill(got, source, 0); !slices.Equal(got, want) || table.rows != 256 {
			t.Errorf("source %d: %v of %d rows, want %v of 256", source, got, table.rows, want)
		}
	}
}

// Flat shapes of every kind have a plan, at the floors with equally many tokens: ranks may
// hold unequally many experts, as long as each holds a token's share.
func TestFlatProperty(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		experts := 1 + random.IntN(70)
		ranks := 1 + random.IntN(experts)
		share := experts / ranks
		p := problem(experts, 1+random.IntN(experts), 0, 0, ranks, router.DEP, random.IntN(20))
		if c := certify("diagonal", p, Options{}); !c.Valid || !c.Optimal && p.Shape.TopK <= share*ranks {
			t.Fatalf("%v on %d ranks, tokens %d: %+v", p.Shape, ranks, p.Tokens[0], c)
		}
	}
}

// Shapes that are served are at the floors for every number of tokens, but for what is pinned: the
// exhaustive test has all 78.
func TestRealShapes(t *testing.T) {
	for i, p := range realShapes(t, router.DEP) {
		if i%9 == 0 || p.Shape.TopK == 6 && p.Layout.Ranks() == 4 {
			atFloors(t, p)
		}
	}
}

// atFloors proves a plan, and wants it at all floors but DeepSeek-V2's on 4 ranks: 6 slots in 3 groups.
func atFloors(t *testing.T, p Problem) {
	proof := prove(p)
	want := Proof{Rows: proof.Rows, Period: proof.Period, Level: true, Valid: true}
	if p.Shape.TopK == 6 && p.Layout.Ranks() == 4 {
		want.Copy, want.Active = Misses{Tokens: 14, Worst: 1}, Misses{Tokens: 1, Worst: 8}
	}
	if proof != want || proof.Period == 0 || proof.Rows%proof.Period != 0 {
		t.Errorf("%v on %d ranks: %+v, want %+v", p.Shape, p.Layout.Ranks(), proof, want)
	}
}

// Of one source's slots a diagonal would send the third of each token to group 0 for ever: 2 of 3 slots.
func TestNoDrift(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		if proof := prove(problem(8, 3, 2, 2, ranks, router.TEP, 0)); proof.Rank.Worst+proof.Copy.Worst > 1 {
			t.Errorf("%d ranks: %+v", ranks, proof)
		}
	}
}

// A table of rows is optimal if it is at all floors, level at its end, without an expert twice, and
// in few enough groups: 4 experts in 2 groups on 2 ranks, top-2 in one group, one source.
func TestProofByHand(t *testing.T) {
	p := problem(4, 2, 2, 1, 2, router.TEP, 0)
	for name, c := range map[string]struct {
		rows         [][]int32
		valid, level bool
	}{
		"one group, then the other": {[][]int32{{0, 1}, {2, 3}}, true, true},
		"not level":                 {[][]int32{{0, 1}}, true, false},
		"too many groups":           {[][]int32{{0, 2}, {1, 3}}, false, true},
		"an expert twice":           {[][]int32{{0, 0}, {1, 1}, {2, 2}, {3, 3}}, false, true},
	} {
		proof := ProveRows(p, len(c.rows), 0, func(_, token int) []int32 { return c.rows[token] })
		if proof.Valid != c.valid || proof.Level != c.level || proof.Optimal() && !c.valid {
			t.Errorf("%s: %+v", name, proof)
		}
	}
	flat := problem(4, 2, 0, 0, 2, router.TEP, 0)
	for name, c := range map[string]struct {
		rows    [][]int32
		optimal bool
	}{"level": {[][]int32{{0, 2}, {1, 3}}, true}, "not level": {[][]int32{{0, 2}}, false},
		"busy rank": {[][]int32{{0, 1}, {2, 3}}, false}, "few experts": {[][]int32{{0, 2}, {0, 2}, {1, 3}, {1, 3}}, false}} {
		proof := ProveRows(flat, len(c.rows), 0, func(_, token int) []int32 { return c.rows[token] })
		if proof.Optimal() != c.optimal {
			t.Errorf("%s: %+v", name, proof)
		}
	}
}
