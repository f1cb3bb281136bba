package main

import (
	"cmp"
	"compress/gzip"
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

	"github.com/moebalance/moebalance/compare/source"
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

// signed is a fraction as testdata/README.md writes it.
func signed(x float64) string {
	return strings.Replace(fmt.Sprintf("%+.1f %%", 100*x), "-", "−", 1)
}

// inMeasured asks for a sentence of the section on what was measured.
func inMeasured(t *testing.T, words string) {
	t.Helper()
	inText(t, "../../testdata/README.md", "## What we measured", words)
}

// inText asks for a sentence of a section, wherever its lines break.
func inText(t *testing.T, file, heading, words string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
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

// Times of vLLM's own trace follow the load that the hook counted in the same
// pass. The values of single layers are Σ max / Σ mean of fused_moe_kernel over the
// steps of 8,192 tokens, made by a script outside.
func TestFieldTraceFollowsCounts(t *testing.T) {
	var trace, counts fieldImbalance
	fieldJSON(t, &trace, append([]string{"trace"}, fieldFiles(t, "vllm-qwen3-normal.rank?.json.gz")...)...)
	fieldJSON(t, &counts, "counts", "--ep", "2", fieldResults+"vllm-qwen3-normal.counts.json")
	if trace.Coverage.LayerShare < 0.9 {
		t.Errorf("%.3f of the GPU time is placed in layers", trace.Coverage.LayerShare)
	}
	inMeasured(t, fmt.Sprintf("%.1f %% of the GPU time placed in 48 inferred layers", 100*trace.Coverage.LayerShare))
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
	for layer, want := range map[int]float64{0: 1.2727, 1: 1.2818, 2: 1.2174, 3: 1.2424} {
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
		inMeasured(t, fmt.Sprintf("correlation %.3f", r))
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
	inMeasured(t, fmt.Sprintf("%.0f experts a layer instead of %.0f", active("perfect"), active("normal")))
}

// testdata/README.md says of the campaign what its result says.
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
		Pairs   []map[string]any
	}
	if err := json.Unmarshal(content, &c); err != nil {
		t.Fatal(err)
	}
	slow := []string{} // launches by more than a tenth
	for _, arm := range []string{"normal", "perfect"} {
		var values []float64
		for _, p := range c.Pairs {
			values = append(values, p[arm].(float64))
		}
		for _, v := range values {
			if below := 1 - v/stats.Median(values); below > 0.1 {
				slow = append(slow, fmt.Sprintf("%.0f %%", 100*below))
			}
		}
	}
	if inMeasured(t, "launches were "+strings.Join(slow, " and ")+" slower than their arm's median"); len(slow) != 2 ||
		len(c.Pairs) != 6 {
		t.Errorf("%d pairs, %v slower", len(c.Pairs), slow)
	}
	inMeasured(t, fmt.Sprintf("%s, 95 %% interval %s to %s: *%s*", signed(c.Gain.Estimate), signed(c.Gain.Low),
		signed(c.Gain.High), c.Verdict))
	if c.Balance != "measured" || len(c.Proof) != 4 {
		t.Errorf("balance %q, %d proofs", c.Balance, len(c.Proof))
	}
}

// The table has each number of tokens from the file in which repetitions differ less. What
// the second launch gave at decode stands beside its file.
func TestFieldDose(t *testing.T) {
	launch := func(name string) map[string][]float64 {
		seconds := map[string][]float64{}
		for _, m := range fieldLines[struct {
			Tokens  int     `json:"tokens_per_step"`
			Router  string  `json:"router"`
			Seconds float64 `json:"seconds_per_step"`
		}](t, name) {
			key := fmt.Sprint(m.Tokens, strings.TrimSuffix(m.Router, ":gen2.safetensors"))
			seconds[key] = append(seconds[key], m.Seconds)
		}
		return seconds
	}
	first, second := launch("vllm-qwen3-dose.jsonl"), launch("vllm-qwen3-dose-prefill.jsonl")
	gain := func(of map[string][]float64, tokens int, router string) string {
		return strings.TrimSuffix(
			signed(stats.Median(of[fmt.Sprint(tokens, router)])/stats.Median(of[fmt.Sprint(tokens, "perfect")])-1),
			" %")
	}
	gains := func(of map[string][]float64, tokens int, between string) string {
		return gain(of, tokens, "target:1.2") + between + gain(of, tokens, "target:1.5") + between +
			gain(of, tokens, "target:1.8")
	}
	differ := func(of map[string][]float64, tokens ...int) string {
		most := 0.0
		for _, n := range tokens {
			for _, router := range []string{"perfect", "target:1.2", "target:1.5", "target:1.8", "file"} {
				if v := of[fmt.Sprint(n, router)]; len(v) > 0 {
					most = max(most, slices.Max(v)/slices.Min(v)-1)
				}
			}
		}
		return fmt.Sprintf("%.0f %%", 100*most)
	}
	for tokens, name := range map[int]string{8: "8 (decode)", 64: "64 (decode)", 256: "256 (decode)",
		8192: "8,192 (prefill)", 16384: "16,384 (prefill)"} {
		of := first
		if tokens > 256 {
			of = second
		}
		inMeasured(t, fmt.Sprintf("| %s | %s |", name, gains(of, tokens, " | ")))
	}
	inMeasured(t, fmt.Sprintf("up to %s at 8 and 64 tokens, %s at 256, %s at 8,192, %s", differ(first, 8, 64),
		differ(first, 256), differ(second, 8192), differ(second, 16384)))
	if got := gain(first, 8, "file"); got != "−0.4" {
		t.Errorf("second-generation plan at 8 tokens: %s %%", got)
	}
	inText(t, "../../testdata/field/README.md", "## Results",
		fmt.Sprintf("gains at 1.2, 1.5 and 1.8 are %s %% at 64 tokens and %s %% at 256, where repetitions differ by up to %s and %s",
			gains(second, 64, ", "), gains(second, 256, ", "), differ(second, 64), differ(second, 256)))
	inText(t, "../../testdata/field/README.md", "## Results", "by up to "+differ(second, 2048)+" apart at 2,048")
}

// fieldLines are the lines of a file of results.
func fieldLines[T any](t *testing.T, name string) (all []T) {
	t.Helper()
	content, err := os.ReadFile(fieldResults + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var m T
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
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

// vLLM moved its experts as 'place' said, which had learned from the counts of another
// workload: the loads that the hook counted then are the predicted ones, and the gain
// that was predicted from a trace of contiguous experts lies within the measured one's
// interval, over the mean log ratios of three launches.
func TestFieldPlacement(t *testing.T) {
	content, err := os.ReadFile(fieldResults + "vllm-qwen3-place.json")
	if err != nil {
		t.Fatal(err)
	}
	var place fieldPlaced
	if err := json.Unmarshal(content, &place); err != nil {
		t.Fatal(err)
	}
	predicted := place.Placements[0]
	rows := fieldLines[placedRun](t, "vllm-qwen3-placement.jsonl")
	load := loadByArm(rows)
	for arm, want := range map[string]float64{"contiguous": predicted.Contiguous, "placed": predicted.Judged,
		"perfect": 1} {
		if got := stat.Mean(load[arm], nil); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: counted max/mean %.4f, want %.4f", arm, got, want)
		}
	}
	gain, low, high := gainOver(rows, "placed")
	want := 1/(1+predicted.Time.Estimate) - 1
	if want < low || want > high || predicted.Time.Of != "step time" {
		t.Errorf("predicted %v of %s, measured %v to %v", want, predicted.Time.Of, low, high)
	}
	inMeasured(t, fmt.Sprintf("%s (95 %% interval %s to %s)", signed(gain), signed(low), signed(high)))
	perfect, low, high := gainOver(rows, "perfect")
	c := fieldComparison(t, fieldResults+"vllm-qwen3-contiguous.rank?.json.gz",
		fieldResults+"vllm-qwen3-balanced.rank?.json.gz")
	if got := c.Prediction.Gain; got < low || got > high {
		t.Errorf("balanced logits: predicted %v, measured %v to %v", got, low, high)
	}
	inMeasured(t, fmt.Sprintf("%.3f instead of %.3f", predicted.Judged, predicted.Contiguous))
	inMeasured(t, fmt.Sprintf("predicts %s step time, a gain of %s", signed(predicted.Time.Estimate), signed(want)))
	inMeasured(t, fmt.Sprintf("balanced logits: %s (%s to %s), where `compare` predicts %s", signed(perfect), signed(low),
		signed(high), signed(c.Prediction.Gain)))

	learned := "../../../shared/captures/third-party/lmsys/prefill_in1024.json"
	if _, err := os.Stat(learned); err != nil {
		t.Skip("the counts that the placement was learned from are not here")
	}
	var again fieldPlaced
	fieldJSON(t, &again, "place", folded(t, learned, 128, 48), "--judge",
		fieldResults+"vllm-qwen3-contiguous.counts.json", "--ep", "2", "--redundant", "0",
		"--trace", fieldResults+"vllm-qwen3-contiguous.rank?.json.gz", "--counts",
		fieldResults+"vllm-qwen3-contiguous.counts.json")
	if got := again.Placements[0]; math.Abs(got.Time.Estimate-predicted.Time.Estimate) > 1e-9 ||
		got.Judged != predicted.Judged {
		t.Errorf("%+v, want %+v", got, predicted)
	}
}

// placedRun is a measurement of placement.py.
type placedRun struct {
	Launch, Repetition int
	Arm                string
	Seconds            float64
	Load               float64 `json:"rank_max_over_mean"`
}

// loadByArm are the counted loads of each arm.
func loadByArm(rows []placedRun) map[string][]float64 {
	load := map[string][]float64{}
	for _, r := range rows {
		load[r.Arm] = append(load[r.Arm], r.Load)
	}
	return load
}

// gainOver is the gain of an arm over contiguous experts in the same repetition: a t interval over
// the mean log ratios of three launches.
func gainOver(rows []placedRun, arm string) (gain, low, high float64) {
	contiguous, launches := map[[2]int]float64{}, make([][]float64, 3)
	for _, r := range rows {
		if r.Arm == "contiguous" {
			contiguous[[2]int{r.Launch, r.Repetition}] = r.Seconds
		}
	}
	for _, r := range rows {
		if r.Arm == arm {
			launches[r.Launch] = append(launches[r.Launch],
				math.Log(contiguous[[2]int{r.Launch, r.Repetition}]/r.Seconds))
		}
	}
	var means []float64
	for _, l := range launches {
		means = append(means, stat.Mean(l, nil))
	}
	i := stats.PairedT(means, 0.95)
	return math.Expm1(i.Estimate), math.Expm1(i.Low), math.Expm1(i.High)
}

// Two plans learned from three kinds of traffic and judged on a fourth, which vLLM's EPLB moved within
// one launch: the README gives what was counted and measured.
func TestFieldTwoPlacements(t *testing.T) {
	rows := fieldLines[placedRun](t, "vllm-two-h200-placement.jsonl")
	load := loadByArm(rows)
	for arm, name := range map[string]string{"placed": "`place`", "eplb": "EPLB", "perfect": "contiguous, balanced logits"} {
		gain, low, high := gainOver(rows, arm)
		inText(t, "../../testdata/field/README.md", "## Results", fmt.Sprintf("| %s | %.3f | **%s** (%.1f to %.1f) |",
			name, stat.Mean(load[arm], nil), signed(gain), 100*low, 100*high))
	}
	if got := stat.Mean(load["contiguous"], nil); math.Abs(got-1.2828) > 2e-4 {
		t.Errorf("contiguous: counted max/mean %.4f", got)
	}
	learned := "../../../shared/captures/third-party/lmsys/prefill_"
	if _, err := os.Stat(learned + "in512.json"); err != nil {
		t.Skip("the counts that the placements were learned from are not here")
	}
	for plan, arm := range map[string]string{"robust": "placed", "eplb": "eplb"} {
		var again fieldPlaced
		fieldJSON(t, &again, "place", folded(t, learned+"in512.json", 128, 48), folded(t, learned+"in1024.json", 128, 48),
			folded(t, learned+"in2000out100.json", 128, 48), "--judge", folded(t, learned+"in4096.json", 128, 48),
			"--ep", "2", "--redundant", "0", "--plan", plan)
		if got := again.Placements[0].Judged; math.Abs(got-stat.Mean(load[arm], nil)) > 5e-4 {
			t.Errorf("%s: predicted max/mean %.4f, counted %.4f", plan, got, stat.Mean(load[arm], nil))
		}
	}
}

// Two plans learned from decoding and judged on prefill, which vLLM's EPLB moved over four ranks: what is predicted
// from a trace of contiguous experts, and from a campaign's curve, lies in the measured interval of either.
func TestFieldFourPlacements(t *testing.T) {
	const folder = fieldResults + "vllm-four-h100/"
	rows := fieldLines[placedRun](t, "vllm-four-h100/placement.jsonl")
	load, measured := loadByArm(rows), map[string][3]float64{}
	row := map[string]string{}
	for arm, name := range map[string]string{"placed": "`place`", "eplb-decode": "EPLB", "perfect": "contiguous, balanced logits"} {
		g := gainOverRepetitions(rows, "contiguous", arm)
		measured[arm] = g
		row[arm] = fmt.Sprintf("| %s | %.3f | %s (%.1f to %.1f) |", name, stat.Mean(load[arm], nil), signed(g[0]), 100*g[1], 100*g[2])
		inText(t, "../../testdata/field/README.md", "## Results", row[arm])
	}
	over := gainOverRepetitions(rows, "eplb-decode", "placed")
	inText(t, "../../testdata/field/README.md", "## Results", fmt.Sprintf("`place` over EPLB is %s (%s to %s): not shown",
		signed(over[0]), strings.TrimSuffix(signed(over[1]), " %"), strings.TrimSuffix(signed(over[2]), " %")))
	learned := "../../../shared/captures/third-party/lmsys/"
	if _, err := os.Stat(learned + "decode_in1000out1000.json"); err != nil {
		t.Skip("the counts that the placements were learned from are not here")
	}
	for plan, arm := range map[string]string{"robust": "placed", "eplb": "eplb-decode"} {
		args := []string{"place", folded(t, learned+"decode_in1000out1000.json", 128, 48),
			folded(t, learned+"decode_in2000out100.json", 128, 48), "--judge", folded(t, learned+"prefill_in4096.json", 128, 48),
			"--ep", "4", "--redundant", "0", "--plan", plan}
		var traced, curved fieldPlaced
		fieldJSON(t, &traced, append(args, "--trace", folder+"contiguous.rank?.json.gz", "--counts", folder+"contiguous.counts.json")...)
		fieldJSON(t, &curved, append(args, "--campaign", folder+"campaign.json")...)
		of := traced.Placements[0]
		if math.Abs(of.Judged-stat.Mean(load[arm], nil)) > 5e-4 || math.Abs(of.Contiguous-stat.Mean(load["contiguous"], nil)) > 1e-3 {
			t.Errorf("%s: predicted max/mean %.4f of %.4f, counted %.4f", plan, of.Judged, of.Contiguous, stat.Mean(load[arm], nil))
		}
		curve := curved.Placements[0].Gains[1]
		for i, predicted := range [][3]float64{
			{1/(1+of.Time.Estimate) - 1, 1/(1+of.Time.High) - 1, 1/(1+of.Time.Low) - 1},
			{curve.Estimate, curve.Low, curve.High},
		} {
			if m := measured[arm]; predicted[0] < m[1] || predicted[0] > m[2] {
				t.Errorf("%s: predicted %v, measured %v", plan, predicted, m)
			}
			row[arm] += fmt.Sprintf(" %s (%.1f to %.1f) |", signed(predicted[0]), 100*predicted[1], 100*predicted[2])
			if plan == "robust" && i == 0 {
				inText(t, "../../README.md", "## Engines", fmt.Sprintf("by a placement %s, predicted %s", signed(measured[arm][0]),
					signed(predicted[0])))
			}
		}
		inText(t, "../../testdata/field/README.md", "## Results", row[arm])
	}
}

// DeepSeek-V3's width over four H100s: tables for both types of its gate's logits, every balanced layer at the floor.
func TestFieldWidth(t *testing.T) {
	layers, seconds := 0, map[string][]float64{}
	for i, m := range fieldLines[struct {
		Tables  []map[string]int
		Router  string
		Tokens  int     `json:"tokens_per_step"`
		Seconds float64 `json:"seconds_per_step"`
		Layers  int     `json:"layers_of_steps"`
		AtFloor int     `json:"at_the_floor"`
	}](t, "vllm-four-h100/width.jsonl") {
		switch {
		case i == 0:
			if len(m.Tables) != 4 {
				t.Errorf("tables of %d ranks, want 4", len(m.Tables))
			}
			for _, of := range m.Tables {
				if len(of) != 2 || of["torch.float32"] == 0 || of["torch.bfloat16"] == 0 {
					t.Errorf("tables: %v", m.Tables)
				}
			}
		case m.Seconds > 0 && m.Tokens == 8192:
			seconds[m.Router] = append(seconds[m.Router], 1e3*m.Seconds)
		case m.Router == "perfect":
			layers += m.AtFloor
			if m.AtFloor != m.Layers {
				t.Errorf("%+v: want every layer at the floor", m)
			}
		case m.AtFloor > 0:
			t.Errorf("%+v: want none at the floor", m)
		}
	}
	thousands := fmt.Sprintf("%d,%03d", layers/1000, layers%1000)
	inText(t, "../../README.md", "## Engines", "DeepSeek-V3's width: all "+thousands+" balanced layers at the floor")
	inText(t, "../../testdata/field/README.md", "## Results", "All "+thousands+" layers of balanced steps, of 8, 64 and 8,192 tokens, are at the floor")
	inText(t, "../../testdata/field/README.md", "## Results", fmt.Sprintf("at 8,192 tokens target:1.5 takes %.1f ms a step, balance %.1f ms",
		stat.Mean(seconds["target:1.5"], nil), stat.Mean(seconds["perfect"], nil)))
}

// gainOverRepetitions is of the log ratios of the repetitions, with Student's t interval at 95 %.
func gainOverRepetitions(rows []placedRun, from, to string) [3]float64 {
	var logs []float64
	for _, a := range rows {
		for _, b := range rows {
			if a.Arm == from && b.Arm == to && a.Launch == b.Launch && a.Repetition == b.Repetition {
				logs = append(logs, math.Log(a.Seconds/b.Seconds))
			}
		}
	}
	i := stats.PairedT(logs, 0.95)
	return [3]float64{math.Expm1(i.Estimate), math.Expm1(i.Low), math.Expm1(i.High)}
}

// folded are counts of a model with more experts, neighbors added, as by testdata/field/fold.py.
func folded(t *testing.T, path string, experts, layers int) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var counts struct {
		Rows [][]float64 `json:"logical_count"`
	}
	if err := json.Unmarshal(content, &counts); err != nil {
		t.Fatal(err)
	}
	counts.Rows = slices.DeleteFunc(counts.Rows, func(row []float64) bool { return floats.Sum(row) == 0 })[:layers]
	for i, row := range counts.Rows {
		small := make([]float64, experts)
		for e, n := range row {
			small[e*experts/len(row)] += n
		}
		counts.Rows[i] = small
	}
	out, err := json.Marshal(counts)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "folded.json")
	if err := os.WriteFile(file, out, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFieldRows(t *testing.T) {
	checkRows(t, "transformers-cpu.jsonl", 1440)
	checkRows(t, "vllm-cpu.jsonl", 14368)
	checkRows(t, "sglang-cpu.jsonl", 26880)
	checkRows(t, "sglang-ep-h100.jsonl", 21749760)
	checkRows(t, "transformers-gpu.jsonl", 294912)
}

func checkRows(t *testing.T, file string, want int) {
	t.Helper()
	rows := 0
	for _, m := range fieldLines[struct {
		Compared int `json:"rows_compared"`
		Wrong    int `json:"rows_wrong"`
	}](t, file) {
		if m.Wrong != 0 {
			t.Errorf("%+v", m)
		}
		rows += m.Compared
	}
	if rows != want {
		t.Errorf("%s: %d rows, want %d", file, rows, want)
	}
}

// Servers on a CPU that switched routers lost no request, and the READMEs sum up what each recorded.
func TestFieldSegments(t *testing.T) {
	var requests, balanced, learned int
	for _, m := range fieldLines[struct {
		Passed    bool
		Requests  int
		Lost      int `json:"requests_lost"`
		Balanced  int `json:"balanced_rows"`
		OffFloor  int `json:"balanced_rows_off_floor"`
		Learned   int `json:"learned_slots"`
		Elsewhere int `json:"learned_slots_elsewhere"`
	}](t, "segments-cpu.jsonl") {
		requests, balanced, learned = requests+m.Requests, balanced+m.Balanced, learned+m.Learned
		if !m.Passed || m.Lost+m.OffFloor+m.Elsewhere > 0 {
			t.Errorf("%+v", m)
		}
	}
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	inText(t, "../../README.md", "## Engines",
		fmt.Sprintf("no request of %s lost, all %s balanced layers at the floor", thousands(requests), thousands(balanced)))
	inMeasured(t, fmt.Sprintf("none of %s requests lost, all %s layers of balanced steps at the floor", thousands(requests),
		thousands(balanced)))
	if learned != 1216000 {
		t.Errorf("%d slots of learned steps", learned)
	}
}

// Traces of vLLM record no arm: report takes their names, as compare does.
func TestFieldReport(t *testing.T) {
	words := append([]string{"report"}, fieldFiles(t, "vllm-qwen3-[np]*.rank?.json.gz")...)
	page, errs, code := invoke(t.Context(), words...)
	if code != 0 || !strings.Contains(page, "the normal arm is accepted as labeled") ||
		!strings.Contains(page, "the perfect arm is accepted as labeled") ||
		!strings.Contains(page, "which hold different numbers of tokens") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A pair under nsys: vLLM compiled and captured in CUDA graphs, routers of rank max/mean
// 1.5 and 1. The sums of fused_moe_kernel over steps 2 and 3, the whole ones of a full
// batch, were made by a script outside.
func TestFieldNsys(t *testing.T) {
	for arm, want := range map[string][]float64{"normal": {1.3640, 1.3644, 1.3676, 1.3942},
		"perfect": {1.0245, 1.0243, 1.0236, 1.0238}} {
		var trace fieldImbalance
		fieldJSON(t, &trace, "trace", fieldResults+"vllm-qwen3-"+arm+".nsys.sqlite")
		if trace.Coverage.LayerShare < 0.95 {
			t.Errorf("%s: %.3f of the GPU time is placed in layers", arm, trace.Coverage.LayerShare)
		}
		for _, row := range trace.Imbalance {
			if row.Level == "rank" && row.Layer < len(want) && math.Abs(row.MaxOverMean-want[row.Layer]) > 1e-4 {
				t.Errorf("%s, layer %d: %.4f, want %.4f", arm, row.Layer, row.MaxOverMean, want[row.Layer])
			}
		}
	}
	c := fieldComparison(t, fieldResults+"vllm-qwen3-normal.nsys.sqlite", fieldResults+"vllm-qwen3-perfect.nsys.sqlite")
	if len(c.Kinds) != 2 || math.Abs(c.Kinds[0].Experts.Normal/1e6-82.656) > 0.005 ||
		math.Abs(c.Kinds[0].Experts.Perfect/1e6-59.056) > 0.005 {
		t.Errorf("%+v: want 82.656 and 59.056 ms of expert time of the slowest ranks in prefill steps", c.Kinds)
	}
}

type comparedKinds struct {
	Prediction struct {
		Gain      float64
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

func fieldComparison(t *testing.T, files ...string) (c comparedKinds) {
	t.Helper()
	fieldJSON(t, &c, append([]string{"compare"}, files...)...)
	return c
}

// fieldExperts sums fused_moe_kernel in vLLM's own traces of an arm: ms of the slowest rank of
// each of 48 layers with two kernels each, added over layers, by step.
func fieldExperts(t *testing.T, arm string) (ms []float64) {
	t.Helper()
	var ranks [2][]float64 // ms by kernel, in order of time
	for r := range ranks {
		file, err := os.Open(fmt.Sprintf("%svllm-qwen3-%s.rank%d.json.gz", fieldResults, arm, r))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		in, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		type event struct {
			Cat, Name string
			TS, Dur   float64
		}
		var trace struct{ TraceEvents []event }
		if err := json.NewDecoder(in).Decode(&trace); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(trace.TraceEvents, func(a, b event) int { return cmp.Compare(a.TS, b.TS) })
		for _, e := range trace.TraceEvents {
			if e.Cat == "kernel" && e.Name == "fused_moe_kernel" {
				ranks[r] = append(ranks[r], e.Dur/1e3)
			}
		}
	}
	for i := 0; i+1 < len(ranks[0]); i += 2 {
		if i%96 == 0 {
			ms = append(ms, 0)
		}
		ms[i/96] += max(ranks[0][i]+ranks[0][i+1], ranks[1][i]+ranks[1][i+1])
	}
	return ms
}

// Steps with as many tokens in both arms are compared one by one, by kinds: of prefill, the
// steps 2 to 4 of 8,192 tokens, and 0; of decode, 6 to 8.
func TestFieldCompare(t *testing.T) {
	c := fieldComparison(t, fieldFiles(t, "vllm-qwen3-[np]*.rank?.json.gz")...)
	if !c.Prediction.Paired || c.Prediction.Low == nil || *c.Prediction.Low < 0.05 || *c.Prediction.High > 0.06 {
		t.Errorf("prediction %+v: want paired steps, and an interval within 5 to 6 %%, since the size of a step is no spread", c.Prediction)
	}
	normal, perfect := fieldExperts(t, "normal"), fieldExperts(t, "perfect")
	if len(c.Kinds) < 3 || len(normal) != 13 || len(perfect) != 13 {
		t.Fatalf("%d kinds of steps, %d and %d steps", len(c.Kinds), len(normal), len(perfect))
	}
	inMeasured(t, fmt.Sprintf("%s for prefill and %s for decode steps", signed(c.Kinds[0].Gain), signed(c.Kinds[2].Gain)))
	inMeasured(t, fmt.Sprintf(
		"expert time of the slowest rank %.1f ms with the learned load, %.1f ms balanced. **Decode** of 32 requests: %.1f ms and %.1f ms",
		stat.Mean(normal[2:5], nil), stat.Mean(perfect[2:5], nil), stat.Mean(normal[6:9], nil),
		stat.Mean(perfect[6:9], nil)))
	for i, k := range c.Kinds[:3] {
		for arm, ms := range [][]float64{normal, perfect} {
			want := stat.Mean([][]float64{ms[2:5], ms[:1], ms[6:9]}[i], nil)
			if got := []float64{k.Experts.Normal, k.Experts.Perfect}[arm] / 1e6; math.Abs(got-want) > 0.005 {
				t.Errorf("kind %d, arm %d: %.3f ms, want %.3f", i, arm, got, want)
			}
		}
	}
}

// Captures over four H100s with tensor- and data-parallel attention, with the hook's ranges and without: what they
// predict is what the README says, and but for prefill of the former lies in the campaign's interval.
func TestFieldFourCaptures(t *testing.T) {
	const folder = fieldResults + "vllm-four-h100/"
	for _, c := range []struct {
		captures []string
		campaign string
		row      string
		beside   bool // prefill is predicted lower than what the campaign's interval holds
		says     string
	}{
		{fieldFiles(t, "vllm-four-h100/rank?.json.gz"), "campaign.json", "| tensor-parallel attention, with ranges |", true,
			"prefill **%s** (%.1f to %.1f), predicted %s"},
		{fieldFiles(t, "vllm-four-h100/[np]*.rank?.json.gz"), "campaign.json", "| the same without |", true, ""},
		{fieldFiles(t, "vllm-four-h100/dep.rank?.json.gz"), "dep.campaign.json", "| data-parallel attention, with ranges |", false,
			"data-parallel attention **%s** (%.1f to %.1f), predicted %s"},
	} {
		compared := fieldComparison(t, c.captures...)
		judged, err := source.ReadCampaign(folder + c.campaign)
		if err != nil {
			t.Fatal(err)
		}
		for i, kind := range compared.Kinds[:2] { // points are of decode, then of prefill
			m := judged.Points[1-i].Gain
			if low, want := kind.Gain < float64(m.Low), c.beside && i == 0; low != want || kind.Gain > float64(m.High) {
				t.Errorf("%s kind %d: predicted %v, measured %v to %v", c.row, i, kind.Gain, m.Low, m.High)
			}
		}
		if m := judged.Gain; c.says != "" {
			inText(t, "../../README.md", "## Engines", fmt.Sprintf(c.says, signed(float64(m.Estimate)), 100*m.Low, 100*m.High,
				signed(compared.Kinds[0].Gain)))
		}
		inText(t, "../../testdata/field/README.md", "## Results", fmt.Sprintf("%s %s (%.1f to %.1f) | %s |", c.row,
			signed(compared.Kinds[0].Gain), 100**compared.Prediction.Low, 100**compared.Prediction.High, signed(compared.Kinds[1].Gain)))
	}
}

// A trace of a launch that holds both arms names the command that sets them beside each other.
func TestTraceOfBothArmsNamesCompare(t *testing.T) {
	files, err := filepath.Glob(fieldResults + "vllm-two-h100/rank?.json.gz")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	out, errs, code := invoke(t.Context(), append([]string{"trace"}, files...)...)
	if want := "Next: moebalance compare '"; code != exitDone || !strings.Contains(out, want) {
		t.Errorf("exit %d, %s, want %s in\n%s", code, errs, want, out)
	}
}

// A comparison of such a launch says so, and never that each arm had one of its own.
func TestCompareOfOneLaunchSaysSo(t *testing.T) {
	out, errs, code := invoke(t.Context(), "compare", "--notes", fieldResults+"vllm-two-h100")
	if code != exitDone || !strings.Contains(out, "both arms in one launch") ||
		strings.Contains(out, "one launch of each arm") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
}
