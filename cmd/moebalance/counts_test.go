package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/router"
)

const fixtures = "../../testdata/"

// countsAnswer is what programs rely on in the JSON of counts.
type countsAnswer struct {
	Imbalance []struct {
		Layer       int
		Level       string
		MaxOverMean float64  `json:"max_over_mean"`
		NullP95     *float64 `json:"null_p95"`
		Worst       int
	}
	Summary []struct {
		MaxOverMean float64 `json:"max_over_mean"`
	}
}

// The gate asks about ranks, and from the floor.
func TestCountsGate(t *testing.T) {
	normal, perfect := fixtures+"deepseek-ep4-ranks/counts-normal", fixtures+"deepseek-ep4-ranks/counts-perfect"
	stderr := ask(t, exitGate, nil, "counts", "--fail-above", "0.5", normal)
	if !strings.Contains(stderr, "layer 0 is 84.7 % above its floor, limit 50 %") {
		t.Error(stderr)
	}
	ask(t, exitDone, nil, "counts", "--fail-above", "0.85", normal)
	ask(t, exitDone, nil, "counts", "--fail-above", "0", perfect)
	if stderr := ask(t, exitInconclusive, nil, "counts", "--fail-above", "0.5",
		fixtures+"counts/sglang.csv"); !strings.Contains(stderr, "give --ep") {
		t.Error(stderr)
	}
	ask(t, exitGate, nil, "counts", "--fail-above", "0.5", "--ep", "2", fixtures+"counts/sglang.csv")
}

func TestModelsVerb(t *testing.T) {
	var all, one struct{ Models []router.Model }
	ask(t, exitDone, &all, "models", "--json")
	ask(t, exitDone, &one, "models", "--json", fixtures+"../router/presets/qwen3-next.json")
	if len(all.Models) != len(router.Models()) || len(one.Models) != 1 || one.Models[0].Experts != 512 ||
		filepath.Base(one.Models[0].Source) != "qwen3-next.json" {
		t.Errorf("%+v, %+v", all, one)
	}
}

// Next steps keep what was given: the files, and flags that the next verb takes. Experts that do not divide over the
// ranks lead to a placement with copies, which place takes; nothing is learned from perfect routing.
func TestNextStepsKeepWhatWasGiven(t *testing.T) {
	const deep = fixtures + "deepseek-ep4-ranks"
	running := filepath.Join(t.TempDir(), "running.yaml")
	row := "[" + strings.Repeat("100,", 31) + "9000]"
	rising := put(t, filepath.Join(t.TempDir(), "r.json"), "["+row+","+row+","+row+"]")
	ask(t, exitDone, nil, "place", "--write-trtllm", running, gptossNormal)
	for next, given := range map[string][]string{
		"place --ep 5 --judge OTHER_COUNTS --redundant 3 " + gptossNormal:     {"counts", "--ep", "5", gptossNormal},
		"--judge OTHER_COUNTS " + gptossNormal + "\n":                         {"counts", gptossNormal, gptossPerfect},
		"place --ep 4 " + fixtures + "placement/stats " + gptossNormal + "\n": {"counts", fixtures + "placement/stats", gptossNormal},
		"place --ep 4 --judge OTHER_COUNTS --axes layers,ranks,experts": {"counts", "--ep", "4", "--axes",
			"layers,ranks,experts", fixtures + "counts/loads_c.npy"},
		"trace --counts " + deep + "/counts-normal --model deepseek-v3 EXPORTS": {"counts", "--model", "deepseek-v3",
			deep + "/counts-normal"},
		"--judge OTHER_COUNTS --model deepseek-v3 " + deep + "/counts-normal": {"compare", "--campaign", fixtures +
			"campaign-deepseek-ep4.json", "--step-tokens", "4096", "--model", "deepseek-v3", "--counts-normal",
			deep + "/counts-normal", deep},
		"below the 30 % threshold.": {"compare", "--threshold", "30%", fixtures + "hf-qwen3-ep4"},
		"counts --ep 4 --model gpt-oss-20b --placement " + launch.Quote([]string{running}) + " LATER_COUNTS": {"place", "--ep", "4", "--model",
			"gpt-oss-20b", "--from", running, "--threshold", "1000%", "--judge", rising, gptossNormal},
	} {
		if out := captured(t, given); !strings.Contains(out, next) || strings.Contains(out, "trace --counts "+fixtures+
			"counts/loads_c.npy") { // trace takes no axes
			t.Errorf("%v: want %q in\n%s", given, next, out)
		}
	}
	ask(t, exitDone, nil, "place", "--ep", "5", "--judge", gptossPerfect, "--redundant", "3", gptossNormal)
}
