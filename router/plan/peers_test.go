package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/router"
)

func TestPeersOfSGLang(t *testing.T) {
	// The examples of SGLang's pull request 29718: ranks had the same experts before it.
	p := problem(8, 2, 0, 0, 2, router.DEP, 1)
	for name, want := range map[string][]int32{"sglang-gen1": {0, 4}, "sglang-gen2": {1, 5}} {
		if a, b := fill(name, p, Options{}, 0), fill(name, p, Options{}, 1); !slices.Equal(a, []int32{0, 4}) ||
			!slices.Equal(b, want) {
			t.Errorf("%s: %v and %v, want [0 4] and %v", name, a, b, want)
		}
	}
	// And of 37741: a stride of 32 over blocks of 16 leaves every other rank without a slot.
	p = problem(256, 8, 0, 0, 16, router.TEP, 8)
	for name, want := range map[string]int64{"sglang-gen1": 8, "sglang-gen2": 8, "sglang-gen3": 4} {
		if c := certify(name, p, Options{}); c.Rank.Max != want {
			t.Errorf("%s: ranks have up to %d slots, want %v", name, c.Rank.Max, want)
		}
	}
}

// 10 experts on 4 ranks are refused by what the engines refuse; a plan that is none, by the names of plans.
func TestNewRefuses(t *testing.T) {
	for name, want := range map[string]string{"sglang-gen3": "as the engine does", "trtllm-gen1": "as the reference does",
		"trtllm-gen2": "as the reference does", "best": "diagonal, trtllm-gen1"} {
		if _, err := New(name, problem(10, 2, 0, 0, 4, router.DEP, 4), Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// A seed matters to plans that draw; vLLM's switches know no groups, and its normal one gives a token an expert twice.
func TestSeededPeers(t *testing.T) {
	p := problem(64, 4, 8, 2, 4, router.DEP, 400)
	for _, name := range Peers() {
		a := certify(name, p, Options{Seed: 3})
		same := slices.Equal(fill(name, p, Options{Seed: 3}, 1), fill(name, p, Options{Seed: 4}, 1))
		if drawn := []string{"sglang-uniform", "vllm-uniform", "vllm-normal"}; slices.Contains(drawn, name) == same || strings.HasPrefix(name, "vllm") && (a.Groups != 4 || a.Valid ||
			(a.Duplicates > 0) != (name == "vllm-normal")) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// What others counted of the switches (rank and expert max/mean, active experts):
// 256 experts, top-8, 8 ranks of 8 tokens, 32 ranks of one.
func TestPeersAsCounted(t *testing.T) {
	for name, want := range map[string][2]string{
		"trtllm-gen1": {"1 4 64", "4 32 8"}, "trtllm-gen2": {"1 4 71", "1 8 39"},
		"trtllm-layerwise": {"1 1 256", "1 1 256"}, "sglang-gen3": {"1 4 127", "1 2 249"},
		"atom": {"1 1 256", "1 1 256"}, "torchtitan": {"4 4 64", "32 32 8"}, "diagonal": {"1 1 256", "1 1 256"},
	} {
		for i, of := range [][2]int{{8, 8}, {32, 1}} {
			c := certify(name, problem(256, 8, 0, 0, of[0], router.DEP, of[1]), Options{})
			if have := fmt.Sprint(c.Rank.MaxOverMean, c.Expert.MaxOverMean, c.ActiveExperts); have != want[i] {
				t.Errorf("%s on %d ranks: %s, want %s", name, of[0], have, want[i])
			}
		}
	}
}
