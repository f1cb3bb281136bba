package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

// hand deals cards as SGLang's own comment tells: to the ranks in turn, each of which puts
// them on its experts in turn; source r begins r ranks and r experts later, a layer one card.
func hand(p Problem, source int) (ids []int32) {
	ranks := p.Layout.Ranks()
	next, perRank := make([]int, ranks), p.Shape.Experts/ranks
	at := 0
	card := func() int32 {
		e := at*perRank + next[at]
		next[at] = (next[at] + 1) % perRank
		at = (at + 1) % ranks
		return int32(e)
	}
	for range p.Layer + source {
		card()
	}
	for r := range next {
		next[r] = (next[r] + source) % perRank
	}
	for range p.Tokens[source] * p.Shape.TopK {
		ids = append(ids, card())
	}
	return ids
}

func TestPeersOfSGLang(t *testing.T) {
	for _, p := range []Problem{
		problem(t, 256, 8, 0, 0, 8, router.DEP, 70), problem(t, 128, 4, 0, 0, 4, router.DEP, 9),
		problem(t, 60, 4, 0, 0, 6, router.DEP, 33), problem(t, 8, 2, 0, 0, 8, router.DEP, 5),
	} {
		for p.Layer = range 3 {
			for rank := range p.Tokens {
				if have := fill(t, "sglang-gen3", p, Options{}, rank); !slices.Equal(have, hand(p, rank)) {
					t.Errorf("%v, layer %d, rank %d: %v, want %v", p.Shape, p.Layer, rank, have[:8], hand(p, rank)[:8])
				}
			}
		}
		p.Mode, p.Layer = router.TEP, 0 // all hold the same tokens
		if have := fill(t, "sglang-gen3", p, Options{}, 3); !slices.Equal(have, hand(p, 0)) {
			t.Errorf("%v, tep: %v, want %v", p.Shape, have[:8], hand(p, 0)[:8])
		}
	}
	// The examples of SGLang's pull request 29718: ranks had the same experts before it.
	p := problem(t, 8, 2, 0, 0, 2, router.DEP, 1)
	for name, want := range map[string][]int32{"sglang-gen1": {0, 4}, "sglang-gen2": {1, 5}} {
		if a, b := fill(t, name, p, Options{}, 0), fill(t, name, p, Options{}, 1); !slices.Equal(a, []int32{0, 4}) ||
			!slices.Equal(b, want) {
			t.Errorf("%s: %v and %v, want [0 4] and %v", name, a, b, want)
		}
	}
	// And of 37741: a stride of 32 over blocks of 16 leaves every other rank without a slot.
	p = problem(t, 256, 8, 0, 0, 16, router.TEP, 8)
	for name, want := range map[string][2]int64{"sglang-gen1": {8, 0}, "sglang-gen2": {8, 0}, "sglang-gen3": {4, 4}} {
		if c := certify(t, name, p, Options{}); [2]int64{c.Rank.Max, c.Rank.Min} != want {
			t.Errorf("%s: ranks have %d to %d slots, want %v", name, c.Rank.Min, c.Rank.Max, want)
		}
	}
	if _, err := New("sglang-gen3", problem(t, 10, 2, 0, 0, 4, router.DEP, 4), Options{}); err == nil {
		t.Error("sglang-gen3 took 10 experts on 4 ranks, which SGLang refuses")
	}
}

// Experts are as likely as a standard normal number lies where σ takes it to their share:
// between the logits of e/E and (e+1)/E.
func TestPeersOfVLLM(t *testing.T) {
	p := problem(t, 64, 4, 8, 2, 4, router.DEP, 8000)
	below := func(share float64) float64 { return math.Erfc(-math.Log(share/(1-share))/math.Sqrt2) / 2 }
	for name, chance := range map[string]func(e int) float64{
		"vllm-uniform": func(int) float64 { return 1. / 64 },
		"vllm-normal":  func(e int) float64 { return below(float64(e+1)/64) - below(float64(e)/64) },
	} {
		load := router.NewLoad(64)
		for rank := range 4 {
			load.Add(fill(t, name, p, Options{Seed: 3}, rank))
		}
		for e, n := range load.PerExpert {
			want := chance(e) * 4 * 4 * 8000
			if math.Abs(float64(n)-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("%s: expert %d has %d slots, want about %.0f", name, e, n, want)
			}
		}
		c := certify(t, name, p, Options{Seed: 3})
		if c.Groups != 4 || c.Valid || (c.Duplicates > 0) != (name == "vllm-normal") {
			t.Errorf("%s: %d groups, %d duplicates", name, c.Groups, c.Duplicates)
		}
	}
	for _, name := range Peers() {
		if a, b := certify(t, name, p, Options{Seed: 3}), certify(t, name, p, Options{Seed: 4}); Seeded(name) == (a.
			Expert == b.Expert) {
			t.Errorf("%s: a seed that is said to matter does not, or the other way", name)
		}
	}
}

// Where the plans are at the floors of ranks, copies and active experts, and by how many
// percent they miss those of ranks and of experts elsewhere: 128 experts, top-8, 16 ranks.
func TestPeersAgainstTheFloor(t *testing.T) {
	if testing.Short() {
		t.Skip("long under the race detector")
	}
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
