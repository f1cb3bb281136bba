package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	var all struct {
		SchemaVersion int            `json:"schema_version"`
		Kind          string         `json:"kind"`
		Models        []router.Model `json:"models"`
	}
	ask(t, exitDone, &all, "models", "--format", "json")
	if all.SchemaVersion != 1 || all.Kind != "models" || len(all.Models) != len(router.Models()) {
		t.Errorf("%+v", all)
	}
	ask(t, exitDone, &all, "models", "--format", "json", fixtures+"../router/presets/qwen3-next.json")
	if len(all.Models) != 1 || all.Models[0].Experts != 512 || !strings.HasSuffix(all.Models[0].Source,
		"qwen3-next.json") {
		t.Errorf("%+v", all.Models)
	}
	file := filepath.Join(t.TempDir(), "models.csv")
	ask(t, exitDone, nil, "models", "--format", "csv", "-o", file)
	text, err := os.ReadFile(file)
	rows, bad := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || bad != nil || len(rows) != 1+len(router.Models()) || rows[0][2] != "top_k" {
		t.Errorf("%v, %v, %v", rows, err, bad)
	}
}

// Experts that do not divide over the ranks lead to a placement with copies, which place takes.
func TestCountsLeadToAPlacementThatDivides(t *testing.T) {
	if out := captured(t, []string{"counts", "--ep", "5", gptossNormal}); !strings.Contains(out,
		"place --ep 5 --judge OTHER_COUNTS --redundant 3 "+gptossNormal) {
		t.Error(out)
	}
	if out := captured(t, []string{"counts", gptossNormal, gptossPerfect}); !strings.Contains(out,
		"--judge OTHER_COUNTS "+gptossNormal+"\n") { // nothing is learned from perfect routing
		t.Error(out)
	}
	if out := captured(t, []string{"counts", "--threshold", "5%", "--axes", "layers,ranks,experts",
		fixtures + "counts/loads_c.npy"}); !strings.Contains(out,
		"place --ep 2 --judge OTHER_COUNTS --axes layers,ranks,experts") || strings.Contains(out, "trace --counts") {
		t.Error(out) // trace takes no axes
	}
	captured(t, []string{"place", "--ep", "5", "--judge", gptossPerfect, "--redundant", "3", gptossNormal})
}
