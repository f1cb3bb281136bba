package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/stats"
)

const fieldResults = "../../testdata/field/results/"

// fieldJSON is the JSON that a verb prints of files of the field test.
func fieldJSON(t *testing.T, into any, words ...string) {
	t.Helper()
	out, errs, code := invoke(t.Context(), append(words, "--format", "json")...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", words, code, errs)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatal(err)
	}
}

func fieldFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(fieldResults + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s: %v", pattern, err)
	}
	return files
}

// signed is a fraction as README writes it.
func signed(x float64) string {
	return strings.Replace(fmt.Sprintf("%+.1f %%", 100*x), "-", "−", 1)
}

// inReadme asks for a sentence of the section on what was measured.
func inReadme(t *testing.T, words string) {
	t.Helper()
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "## What we measured")
	section, _, _ = strings.Cut(section, "\n## ")
	if !strings.Contains(section, words) {
		t.Errorf("README, What we measured: want %q", words)
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

// Times of vLLM's own trace follow the load that the hook counted in the same
// pass. The values of single layers are sums of fused_moe_kernel per rank,
// layer and step, made by a script outside.
func TestFieldTraceFollowsCounts(t *testing.T) {
	var trace, counts fieldImbalance
	fieldJSON(t, &trace, append([]string{"trace"}, fieldFiles(t, "vllm-qwen3-normal.rank?.json.gz")...)...)
	fieldJSON(t, &counts, "counts", "--ep", "2", fieldResults+"vllm-qwen3-normal.counts.json")
	if trace.Coverage.LayerShare < 0.9 {
		t.Errorf("%.3f of the GPU time is placed in layers", trace.Coverage.LayerShare)
	}
	inReadme(t, fmt.Sprintf("%.1f %% of the GPU time placed in 48 inferred layers", 100*trace.Coverage.LayerShare))
	time, load := make([]float64, 48), make([]float64, 48)
	for _, row := range trace.Imbalance {
		if row.Level == "rank" {
			time[row.Layer] = row.MaxOverMean
		}
	}
	for _, row := range counts.Imbalance {
		if row.Level == "rank" {
			load[row.Layer] = row.MaxOverMean
		}
	}
	for layer, want := range map[int]float64{0: 1.2255, 1: 1.2355, 2: 1.1888, 3: 1.1963} {
		if got := time[layer]; got < want-0.001 || got > want+0.001 {
			t.Errorf("layer %d: %.4f, want %.4f", layer, got, want)
		}
	}
	if slices.Max(load)-slices.Min(load) < 0.1 {
		t.Fatal("the counted loads hardly differ")
	}
	if r := stat.Correlation(time, load, nil); r < 0.9 {
		t.Errorf("correlation %.3f of time with load", r)
	} else {
		inReadme(t, fmt.Sprintf("correlation %.3f", r))
	}
}

// At decode, balanced routing reads the weights of more experts.
func TestFieldActiveExperts(t *testing.T) {
	active := func(arm string) float64 {
		var counts struct {
			Imbalance []struct {
				Level  string `json:"level"`
				Active int    `json:"active"`
			} `json:"imbalance"`
		}
		fieldJSON(t, &counts, "counts", "--ep", "2", fieldResults+"vllm-qwen3-"+arm+".decode.counts.json")
		var of []float64
		for _, row := range counts.Imbalance {
			if row.Level == "expert" {
				of = append(of, float64(row.Active))
			}
		}
		return stat.Mean(of, nil)
	}
	inReadme(t, fmt.Sprintf("%.0f experts a layer instead of %.0f", active("perfect"), active("normal")))
}

// README says of the campaign what its result says.
func TestFieldCampaign(t *testing.T) {
	content, err := os.ReadFile(fieldResults + "vllm-qwen3-campaign.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Gain    struct{ Estimate, Low, High float64 }
		Verdict string
		Balance string
		Proof   []struct{ Arm, Grade string }
	}
	if err := json.Unmarshal(content, &c); err != nil {
		t.Fatal(err)
	}
	inReadme(t, fmt.Sprintf("%s, 95 %% interval %s to %s: *%s*", signed(c.Gain.Estimate), signed(c.Gain.Low), signed(c.Gain.High), c.Verdict))
	if c.Balance != "measured" || len(c.Proof) != 4 {
		t.Errorf("balance %q, %d proofs", c.Balance, len(c.Proof))
	}
}

func TestFieldDose(t *testing.T) {
	file, err := os.Open(fieldResults + "vllm-qwen3-dose.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seconds := map[string][]float64{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var m struct {
			Tokens  int     `json:"tokens_per_step"`
			Router  string  `json:"router"`
			Seconds float64 `json:"seconds_per_step"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		router := strings.TrimSuffix(m.Router, ":gen2.safetensors")
		key := fmt.Sprint(m.Tokens, router)
		seconds[key] = append(seconds[key], m.Seconds)
	}
	gain := func(tokens int, router string) string {
		of, perfect := stats.Median(seconds[fmt.Sprint(tokens, router)]), stats.Median(seconds[fmt.Sprint(tokens, "perfect")])
		return signed(of/perfect - 1)
	}
	for _, tokens := range []int{8, 64, 256} {
		inReadme(t, fmt.Sprintf("| %d (decode) | %s | %s | %s |", tokens, gain(tokens, "target:1.2"), gain(tokens, "target:1.5"), gain(tokens, "target:1.8")))
	}
	if got := gain(8, "file"); got != "−0.4 %" {
		t.Errorf("second-generation plan at 8 tokens: %s", got)
	}
}

func TestFieldRows(t *testing.T) {
	checkRows(t, "transformers-cpu.jsonl", 1440)
	checkRows(t, "vllm-cpu.jsonl", 14368)
}

func checkRows(t *testing.T, file string, want int) {
	t.Helper()
	content, err := os.ReadFile(fieldResults + file)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(content)) {
		var m struct {
			Compared int `json:"rows_compared"`
			Wrong    int `json:"rows_wrong"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m.Wrong != 0 {
			t.Error(line)
		}
		rows += m.Compared
	}
	if rows != want {
		t.Errorf("%s: %d rows, want %d", file, rows, want)
	}
}

// Traces of vLLM record no arm: report takes their names, as compare does.
func TestFieldReport(t *testing.T) {
	words := append([]string{"report"}, fieldFiles(t, "vllm-qwen3-*.rank?.json.gz")...)
	page, errs, code := invoke(t.Context(), words...)
	if code != 0 || !strings.Contains(page, "the learned arm is accepted as labeled") || !strings.Contains(page, "the balanced arm is accepted as labeled") ||
		!strings.Contains(page, "which hold different numbers of tokens") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Steps with as many tokens in both arms are compared one by one. The sums of
// fused_moe_kernel, slowest rank of each of 48 layers, were made by a script outside, in
// ms: normal 18.456, 40.706, 40.887, 40.851 and perfect 16.311, 32.082, 32.105, 32.145;
// decode normal 6.219, 6.214, 6.219 and perfect 7.397, 7.383, 7.375.
func TestFieldCompare(t *testing.T) {
	var c struct {
		Prediction struct {
			Paired    bool
			Low, High *float64
		}
		Kinds []struct {
			Gain    float64 `json:"predicted_gain"`
			Experts struct {
				Normal  float64 `json:"normal_ns"`
				Perfect float64 `json:"perfect_ns"`
			} `json:"experts_slowest"`
		}
	}
	fieldJSON(t, &c, append([]string{"compare"}, fieldFiles(t, "vllm-qwen3-*.rank?.json.gz")...)...)
	if !c.Prediction.Paired || c.Prediction.Low == nil || *c.Prediction.Low < 0 || *c.Prediction.High > 0.1 {
		t.Errorf("prediction %+v: want paired steps, and an interval within 0 to 10 %%", c.Prediction)
	}
	want := [][2]float64{{35.225, 28.161}, {6.217, 7.385}}
	if len(c.Kinds) != len(want) {
		t.Fatalf("%d kinds of steps", len(c.Kinds))
	}
	inReadme(t, fmt.Sprintf("%s for prefill and %s for decode steps", signed(c.Kinds[0].Gain), signed(c.Kinds[1].Gain)))
	for i, k := range c.Kinds {
		for j, ns := range []float64{k.Experts.Normal, k.Experts.Perfect} {
			if d := ns/1e6 - want[i][j]; d < -0.005 || d > 0.005 {
				t.Errorf("kind %d, arm %d: %.3f ms, want %.3f", i, j, ns/1e6, want[i][j])
			}
		}
	}
}
