package plan

import (
	"testing"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

// A span keeps the case that is furthest from its floor, above it or below, the first of equal ones. It holds for
// every number of tokens where the plan is one table that ends level.
func TestSpan(t *testing.T) {
	even, uneven := problem(8, 2, 0, 0, 4, router.DEP, 1), problem(2, 1, 0, 0, 2, router.DEP, 1)
	uneven.Layout = require.Value(router.Placed(2, [][]int32{{0, 1}, {0}}))
	for name, p := range map[string]Problem{"even": even, "uneven": uneven} {
		s := Span{}
		for i, of := range [][2]router.Number{{1.5, 1}, {1.2, 1}, {3, 2}, {8, 4}, {4, 2}} { // off by 1.5, 1.2, 1.5, 2, 2
			s.Add(Case{Name: "diagonal", TokensPerRank: i + 1, Certificate: &Certificate{Valid: i != 1, Optimal: i == 2,
				Rank: Level{MaxOverMean: of[0], FloorOverMean: of[1]}, Expert: Level{MaxOverMean: of[1], FloorOverMean: of[0]},
				ActiveExperts: 4, ActiveExpertsIdeal: 4 + i%3}}, p)
		}
		if s.Rank.TokensPerRank != 4 || s.Expert.TokensPerRank != 4 || s.Active.TokensPerRank != 3 || s.Invalid != 1 ||
			len(s.AtFloors) != 1 || s.Counted != 5 || (s.Every != nil) != (name == "even") {
			t.Errorf("%s: %+v, rank %+v, expert %+v, active %+v", name, s, s.Rank, s.Expert, s.Active)
		}
	}
}

// TensorRT-LLM's second plan searches groups for DeepSeekV3's method, and where a shape alone is known for one with groups.
func TestPlannerOfTheSecondGeneration(t *testing.T) {
	grouped, flat := problem(16, 4, 4, 2, 4, router.DEP, 3), problem(16, 4, 0, 0, 4, router.DEP, 3)
	for _, k := range []struct {
		p      Problem
		method router.Method
		name   string
	}{{grouped, "", "trtllm-gen2-grouped/1"}, {flat, "", "trtllm-gen2/1"}, {grouped, router.MiniMax2, "trtllm-gen2/1"},
		{flat, router.DeepSeekV3, "trtllm-gen2-grouped/1"}} {
		if made := require.Value(New("trtllm-gen2", k.p, Options{Method: k.method})); made.Name != k.name {
			t.Errorf("%s on %+v: %s, want %s", k.method, k.p.Shape, made.Name, k.name)
		}
	}
}
