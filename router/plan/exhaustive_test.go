//go:build exhaustive

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// Every real shape but one is at the floors for every number of tokens.
func TestEveryNumberOfTokens(t *testing.T) {
	list := realShapes(t, router.DEP)
	if len(list) != 78 {
		t.Fatalf("%d shapes, want 78", len(list))
	}
	for _, p := range list {
		proof := Prove(p)
		want := Proof{Rows: proof.Rows, Period: proof.Period, Level: true, Valid: true}
		if p.Shape.TopK == 6 && p.Layout.Ranks() == 4 { // DeepSeek-V2: 6 slots in 3 groups
			want.Copy, want.Active = Misses{Tokens: 14, Worst: 1}, Misses{Tokens: 1, Worst: 8}
		}
		if proof != want || proof.Period == 0 || proof.Rows%proof.Period != 0 {
			t.Errorf("%v on %d ranks: %+v, want %+v", p.Shape, p.Layout.Ranks(), proof, want)
		}
	}
}

// With one source ranks are one slot above the floor where tokens send two slots to
// each of few groups, and there alone.
func TestEveryNumberOfTokensTEP(t *testing.T) {
	missed := map[string]int{}
	for _, p := range realShapes(t, router.TEP) {
		proof := Prove(p)
		if proof.Optimal() {
			continue
		}
		missed[fmt.Sprintf("%d experts, %d ranks", p.Shape.Experts, p.Layout.Ranks())]++
		if !proof.Valid || !proof.Level || proof.Rank.Worst != 1 || proof.Copy.Tokens+proof.Active.Tokens > 0 {
			t.Errorf("%v on %d ranks: %+v", p.Shape, p.Layout.Ranks(), proof)
		}
	}
	want := map[string]int{"256 experts, 8 ranks": 1, "160 experts, 2 ranks": 1, "160 experts, 4 ranks": 1,
		"160 experts, 8 ranks": 1}
	if fmt.Sprint(missed) != fmt.Sprint(want) {
		t.Errorf("missed %v, want %v", missed, want)
	}
}

// Where the plans are at the floors of ranks, copies and active experts, and by how many
// percent they miss those of ranks and of experts elsewhere: 128 experts, top-8, 16 ranks.
func TestPeersAgainstTheFloor(t *testing.T) {
	for name, want := range map[string]string{
		"sglang-gen1":  "8–63: 3 of 56, 100 % 100 %; 64–256: 13 of 193, 11 % 23 %",
		"sglang-gen2":  "8–63: 56 of 56, 0 % 0 %; 64–256: 193 of 193, 0 % 0 %",
		"sglang-gen3":  "8–63: 3 of 56, 0 % 12 %; 64–256: 13 of 193, 0 % 2 %",
		"vllm-uniform": "8–63: 0 of 56, 19 % 138 %; 64–256: 0 of 193, 8 % 35 %",
		"trtllm-gen2":  "8–63: 3 of 56, 0 % 100 %; 64–256: 13 of 193, 0 % 21 %",
		"diagonal":     "8–63: 56 of 56, 0 % 0 %; 64–256: 193 of 193, 0 % 0 %",
	} {
		var have []string
		for _, span := range [][2]int{{8, 63}, {64, 256}} {
			floor, ranks, experts := 0, 0., 0.
			for tokens := span[0]; tokens <= span[1]; tokens++ {
				c := certify(t, name, problem(t, 128, 8, 0, 0, 16, router.DEP, tokens), Options{})
				ranks = max(ranks, float64(c.Rank.MaxOverMean/c.Rank.FloorOverMean)-1)
				experts = max(experts, float64(c.Expert.MaxOverMean/c.Expert.FloorOverMean)-1)
				if c.Rank.Excess+c.Copy.Excess == 0 && c.ActiveExperts == c.ActiveExpertsIdeal {
					floor++
				}
			}
			have = append(have, fmt.Sprintf("%d–%d: %d of %d, %.0f %% %.0f %%", span[0], span[1], floor,
				span[1]-span[0]+1, 100*ranks, 100*experts))
		}
		if have := strings.Join(have, "; "); have != want {
			t.Errorf("%s: %s, want %s", name, have, want)
		}
	}
}
