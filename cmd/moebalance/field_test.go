package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/kernel"
	"github.com/moebalance/moebalance/compare/stats"
	"github.com/moebalance/moebalance/compare/trace"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/testdata/require"
)

const (
	fieldFolder  = "testdata/field/results/"
	fieldResults = "../../" + fieldFolder
)

func fieldFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(fieldResults + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	return files
}

// signed is a fraction as the READMEs write it.
func signed(x float64) string { return strings.Replace(fmt.Sprintf("%+.1f %%", 100*x), "-", "−", 1) }

// inText asks for a sentence of a section, wherever its lines break.
func inText(t *testing.T, file, heading, words string) {
	t.Helper()
	content := get(file)
	_, section, _ := strings.Cut(string(content), heading)
	section, _, _ = strings.Cut(section, "\n## ")
	if !strings.Contains(strings.ReplaceAll(section, "\n", " "), words) {
		t.Errorf("%s, %s: want %q", file, heading, words)
	}
}

type fieldImbalance struct {
	Imbalance []struct {
		Layer       int     `json:"layer"`
		Level       string  `json:"level"`
		MaxOverMean float64 `json:"max_over_mean"`
	} `json:"imbalance"`
	Coverage struct {
		LayerShare float64 `json:"layer_share"`
	} `json:"coverage"`
}

// rankLayers is max/mean over ranks by layer.
func (f fieldImbalance) rankLayers() map[int]float64 {
	layers := map[int]float64{}
	for _, row := range f.Imbalance {
		if row.Level == "rank" {
			layers[row.Layer] = row.MaxOverMean
		}
	}
	return layers
}

// Layers inferred from vLLM's own traces have the max/mean of Σ max / Σ mean of fused_moe_kernel,
// made by a script outside: over the steps of 8,192 tokens of a PyTorch trace, and over the whole
// steps of a full batch under nsys, compiled and captured in CUDA graphs.
func TestFieldLayers(t *testing.T) {
	for files, want := range map[string][]float64{
		"vllm-qwen3-normal.rank?.json.gz": {1.2727, 1.2818, 1.2174, 1.2424},
		"vllm-qwen3-normal.nsys.sqlite":   {1.3640, 1.3644, 1.3676, 1.3942},
		"vllm-qwen3-perfect.nsys.sqlite":  {1.0245, 1.0243, 1.0236, 1.0238},
	} {
		var trace fieldImbalance
		ask(t, exitDone, &trace, append([]string{"trace", "--json"}, fieldFiles(t, files)...)...)
		have := trace.rankLayers()
		if trace.Coverage.LayerShare < 0.9 || len(have) != 48 && len(have) != 12 {
			t.Errorf("%s: %.3f of the GPU time is placed in %d layers", files, trace.Coverage.LayerShare, len(have))
		}
		for layer, want := range want {
			if math.Abs(have[layer]-want) > 2e-4 {
				t.Errorf("%s, layer %d: %.4f, want %.4f", files, layer, have[layer], want)
			}
		}
	}
}

// fieldLines are the lines of a file of results.
func fieldLines[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	content := get(fieldResults + name)
	for line := range strings.Lines(string(content)) {
		var m T
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

type fieldPlaced struct {
	Placements []struct {
		Judged     float64 `json:"judged_max_over_mean"`
		Contiguous float64 `json:"baseline_max_over_mean"`
		Time       struct {
			Estimate, Low, High float64
			Of                  string
		} `json:"predicted_time_change"`
		Gains []struct{ Estimate, Low, High float64 } `json:"predicted_gains"`
	} `json:"placements"`
}

// placedRun is a measurement of placement.py.
type placedRun struct {
	Launch, Repetition int
	Arm                string
	Seconds            float64
	Load               float64 `json:"rank_max_over_mean"`
}

// measuredGain is the mean counted load of an arm and its gain over contiguous experts in the same
// repetition, with Student's t interval at 95 %: over repetitions, or over the means of launches.
func measuredGain(rows []placedRun, arm string, overLaunches bool) (load float64, gain [3]float64) {
	contiguous, logs := map[[2]int]float64{}, map[int][]float64{}
	var loads, all []float64
	for _, r := range rows {
		if r.Arm == "contiguous" {
			contiguous[[2]int{r.Launch, r.Repetition}] = r.Seconds
		}
	}
	for _, r := range rows {
		if base := contiguous[[2]int{r.Launch, r.Repetition}]; r.Arm == arm && base > 0 {
			logs[r.Launch], loads = append(logs[r.Launch], math.Log(base/r.Seconds)), append(loads, r.Load)
		}
	}
	for _, l := range logs {
		if overLaunches {
			l = []float64{stat.Mean(l, nil)}
		}
		all = append(all, l...)
	}
	i := stats.PairedT(all, 0.95)
	return stat.Mean(loads, nil), [3]float64{math.Expm1(i.Estimate), math.Expm1(i.Low), math.Expm1(i.High)}
}

const lmsys = "../../../shared/captures/third-party/lmsys/"

// vLLM moved its experts as 'place' and EPLB said, which had learned from the counts of other
// workloads: the loads that the hook counted then are the predicted ones, and the gain predicted
// from a trace of contiguous experts, and from a campaign's curve, lies in the measured interval.
func TestFieldPlacement(t *testing.T) {
	const two, four = fieldResults + "vllm-qwen3-contiguous.", fieldResults + "vllm-four-h100/"
	trace := func(prefix string) []string {
		return []string{"--trace", prefix + "rank?.json.gz", "--counts", prefix + "counts.json"}
	}
	for _, c := range []struct {
		runs, learned, judged, ep string
		arms                      map[string]string // by plan
		times                     [][]string        // what times are predicted from
		overLaunches              bool
	}{
		{"vllm-qwen3-placement.jsonl", "prefill_in1024", "", "2", map[string]string{"": "placed"},
			[][]string{trace(two)}, true},
		{"vllm-two-h200-placement.jsonl", "prefill_in512 prefill_in1024 prefill_in2000out100", "prefill_in4096", "2",
			map[string]string{"robust": "placed", "eplb": "eplb"}, nil, true},
		{"vllm-four-h100/placement.jsonl", "decode_in1000out1000 decode_in2000out100", "prefill_in4096", "4",
			map[string]string{"robust": "placed", "eplb": "eplb-decode"},
			[][]string{trace(four + "contiguous."), {"--campaign", four + "campaign.json"}}, false},
	} {
		rows := fieldLines[placedRun](t, c.runs)
		if load, gain := measuredGain(rows, "perfect", c.overLaunches); math.Abs(load-1) > 1e-3 || gain[1] < 0 {
			t.Errorf("%s: balanced logits have max/mean %.4f and gain %v", c.runs, load, gain)
		}
		if _, err := os.Stat(lmsys); err != nil {
			continue // the counts that the placements were learned from are not here
		}
		args := []string{"place", "--ep", c.ep, "--redundant", "0", "--judge", two + "counts.json"}
		for _, name := range strings.Fields(c.learned) {
			args = append(args, folded(t, lmsys+name+".json", 128, 48))
		}
		if c.judged != "" {
			args = append(args, "--judge", folded(t, lmsys+c.judged+".json", 128, 48))
		}
		for plan, arm := range c.arms {
			load, gain := measuredGain(rows, arm, c.overLaunches)
			if len(c.times) == 0 {
				c.times = [][]string{nil}
			}
			for _, times := range c.times {
				all := append(slices.Clone(args), times...)
				if plan != "" {
					all = append(all, "--plan", plan)
				}
				var place fieldPlaced
				ask(t, exitDone, &place, append(all, "--json")...)
				of := place.Placements[0]
				if math.Abs(of.Judged-load) > 5e-4 {
					t.Errorf("%s, %s: predicted max/mean %.4f, counted %.4f", c.runs, arm, of.Judged, load)
				}
				predicted := 1/(1+of.Time.Estimate) - 1
				if len(of.Gains) > 1 { // of decode, then of prefill
					predicted = of.Gains[1].Estimate
				}
				if times != nil && (predicted < gain[1] || predicted > gain[2]) {
					t.Errorf("%s, %s by %v: predicted %v, measured %v", c.runs, arm, times, predicted, gain)
				}
				switch {
				case arm == "placed" && times != nil && c.ep == "2":
					inText(t, "../../testdata/README.md", "## What we measured", fmt.Sprintf("predicts %s step time, a gain of %s",
						signed(of.Time.Estimate), signed(predicted)))
				case arm == "placed" && times != nil && times[0] == "--trace":
					inText(t, "../../README.md", "## Engines", fmt.Sprintf("by a placement %s, predicted %s", signed(gain[0]),
						signed(predicted)))
				}
			}
		}
	}
}

// folded are counts of a model with more experts, neighbors added, as by testdata/field/fold.py.
func folded(t *testing.T, path string, experts, layers int) string {
	t.Helper()
	content := get(path)
	var counts struct {
		Rows [][]float64 `json:"logical_count"`
	}
	require.NoError(t, json.Unmarshal([]byte(content), &counts))
	counts.Rows = slices.DeleteFunc(counts.Rows, func(row []float64) bool { return floats.Sum(row) == 0 })[:layers]
	for i, row := range counts.Rows {
		small := make([]float64, experts)
		for e, n := range row {
			small[e*experts/len(row)] += n
		}
		counts.Rows[i] = small
	}
	out := require.Value(json.Marshal(counts))
	file := filepath.Join(t.TempDir(), "folded.json")
	require.NoError(t, os.WriteFile(file, out, 0o644))
	return file
}

type comparedKinds struct {
	Split struct{ Low, High *float64 } `json:"gain_split"`
	Kinds []struct {
		Gain    float64 `json:"predicted_gain"`
		Experts struct {
			Normal  float64 `json:"normal_ns"`
			Perfect float64 `json:"perfect_ns"`
		} `json:"experts_slowest"`
	}
}

func fieldComparison(t *testing.T, files ...string) (c comparedKinds) {
	t.Helper()
	ask(t, exitDone, &c, append([]string{"compare", "--json"}, files...)...)
	return c
}

// Steps with as many tokens in both arms are compared one by one, by kinds: of prefill, the
// steps 2 to 4 of 8,192 tokens, and 0; of decode, 6 to 8. The ms of fused_moe_kernel on the
// slowest rank of each layer, added over layers, were made by a script outside.
func TestFieldCompare(t *testing.T) {
	c := fieldComparison(t, fieldFiles(t, "vllm-qwen3-[np]*.rank?.json.gz")...)
	if p := c.Split; p.Low == nil || *p.Low > 0 || *p.High < 0.09 {
		t.Errorf("prediction %+v: want an interval from what late launches leave to what launches in time would gain", p)
	}
	want := [][2]float64{{40.814, 32.111}, {18.456, 16.311}, {6.217, 7.385}}
	if len(c.Kinds) < len(want) {
		t.Fatalf("%d kinds of steps", len(c.Kinds))
	}
	for i, want := range want {
		if e := c.Kinds[i].Experts; math.Abs(e.Normal/1e6-want[0]) > 0.005 || math.Abs(e.Perfect/1e6-want[1]) > 0.005 {
			t.Errorf("kind %d: %+v, want %v ms", i, e, want)
		}
	}
	placed := fieldComparison(t, "--trust-arms", fieldResults+"vllm-qwen3-contiguous.rank?.json.gz",
		fieldResults+"vllm-qwen3-balanced.rank?.json.gz")
	inText(t, "../../testdata/README.md", "## What we measured", fmt.Sprintf("predicts %s for prefill and %s for decode steps",
		signed(c.Kinds[0].Gain), signed(c.Kinds[2].Gain)))
	inText(t, "../../testdata/README.md", "## What we measured", "`compare` predicts "+signed(placed.Kinds[0].Gain))
	// Under nsys, work outside the experts of decode steps differs by 2 % and more: no prediction.
	c = fieldComparison(t, fieldResults+"vllm-qwen3-normal.nsys.sqlite", fieldResults+"vllm-qwen3-perfect.nsys.sqlite")
	if len(c.Kinds) != 3 || c.Kinds[1].Gain != 0 || math.Abs(c.Kinds[0].Experts.Normal/1e6-82.656) > 0.005 ||
		math.Abs(c.Kinds[0].Experts.Perfect/1e6-59.056) > 0.005 {
		t.Errorf("%+v: want 82.656 and 59.056 ms of expert time of the slowest ranks in prefill steps", c.Kinds)
	}
}

// Of quantized models, the prediction from captures holds the gain of steps of 8,192 tokens that their
// launch had without a profiler, and trace places the kernels of quantization.
func TestFieldQuantized(t *testing.T) {
	for model, placed := range map[string]string{"mxfp4-marlin": "_count dispatch",
		"fp8-triton":   "_count dispatch; per_token_group_quant_8bit_kernel dispatch; silu_and_mul_per_block_quant_kernel experts",
		"fp8-deepgemm": "_silu_mul_per_token_group_quant_fp8_colmajor experts; deep_gemm::transpose_fp32 dispatch"} {
		seconds := map[string]float64{}
		for _, run := range fieldLines[struct {
			Case, Arm string
			Seconds   map[string][]float64 `json:"seconds_per_step"`
		}](t, "vllm-two-h200-quantized/"+model+"/segments.jsonl") {
			if run.Case == "healthy" {
				seconds[run.Arm] = stat.Mean(run.Seconds["8192"], nil)
			}
		}
		folder := fieldResults + "vllm-two-h200-quantized/" + model + "/"
		gain, p := seconds["normal"]/seconds["perfect"]-1, fieldComparison(t, folder+"normal", folder+"perfect").Split
		if p.Low == nil || gain < *p.Low || gain > *p.High || *p.High-*p.Low > 0.08 {
			t.Errorf("%s: predicted %+v, measured %.3f", model, p, gain)
		}
		var traced trace.Trace
		ask(t, exitDone, &traced, "trace", "--json", folder+"normal")
		unknown, phases := router.Number(0), ""
		for _, k := range traced.Kernels {
			unknown += router.Number(k.UnknownNS) / router.Number(traced.Coverage.GPUNS)
			if name, _ := kernel.Parts(k.Name); k.Placed != trace.PhaseOther {
				phases += name + " " + string(k.Placed) + "\n"
			}
		}
		lacks := func(part string) bool { return !strings.Contains(phases, part) }
		if unknown > 0.02 || slices.ContainsFunc(strings.Split(placed, "; "), lacks) {
			t.Errorf("%s: not all of %q in\n%s; %.3f of the time is unknown", model, placed, phases, unknown)
		}
	}
}

// Layers with experts and steps of models whose layers are unlike are the engine's own.
func TestFieldStructures(t *testing.T) {
	const folder = "vllm-one-h200-structures/"
	for _, truth := range fieldLines[struct {
		Name         string
		ExpertLayers int `json:"expert_layers"`
		Drafts       int `json:"draft_passes"`
		Tokens       []int
	}](t, folder+"truth.jsonl") {
		var trace struct {
			Structure struct{ Layers, Steps int }
		}
		ask(t, exitDone, &trace, "trace", "--json", fieldResults+folder+truth.Name+".json.gz")
		if s := trace.Structure; s.Layers != truth.ExpertLayers+truth.Drafts || s.Steps != len(truth.Tokens) {
			t.Errorf("%s: %+v, want %d+%d layers in %d steps", truth.Name, s, truth.ExpertLayers, truth.Drafts,
				len(truth.Tokens))
		}
	}
}

// Ranks of data-parallel engines that are hot in turn, and that leave long collectives 30 µs apart, are one group with
// layers; the time of prefill's expert GEMMs is the one that a script outside found.
func TestFieldTwoRanks(t *testing.T) {
	const folder = "vllm-two-h200-structures/"
	for _, truth := range fieldLines[struct {
		Name          string
		Layers, Steps int
		MaxOverMean   float64 `json:"max_over_mean"`
	}](t, folder+"truth.jsonl") {
		var have trace.Trace
		ask(t, exitDone, &have, "trace", "--json", fieldResults+folder+truth.Name+".rank?.json.gz")
		if s := have.Structure; int(s.Layers) != truth.Layers || int(s.Steps) != truth.Steps || len(have.Overall) != 1 ||
			math.Abs(have.Overall[0].MaxOverMean.Float64()-truth.MaxOverMean) > 1e-4 {
			t.Errorf("%s: %+v, %+v", truth.Name, s, have.Overall)
		}
	}
}
