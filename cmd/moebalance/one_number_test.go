package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// One effect has one number: over all captures at hand, the gain, the loss per step, the step time and
// the worst layer are the same in the sentence, the numbers, the reasons, the tables and the fields of JSON.
func TestOneEffectHasOneNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("every capture; the verbs have tests of their own")
	}
	t.Chdir("../..")
	list, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for block := range strings.SplitSeq("\n"+string(list), "\n$ ") {
		command, _, _ := strings.Cut(block, "\n")
		args := strings.Fields(command)
		if len(args) < 2 || !atHand(args) {
			continue
		}
		check := map[string]func(*testing.T, []string, string, answer.Answer) bool{"trace": checkTraceNumbers,
			"compare": checkGainNumbers}[args[1]]
		if check == nil {
			continue
		}
		out, _, _ := invoke(t.Context(), append(args[1:], "--format", "json")...)
		var result struct {
			Answer answer.Answer `json:"answer"`
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		t.Run(command, func(t *testing.T) {
			if check(t, args[1:], out, result.Answer) {
				checked[args[1]]++
			}
		})
	}
	if checked["trace"] < 10 || checked["compare"] < 6 {
		t.Errorf("checked %v", checked)
	}
}

// checkTraceNumbers reports whether the answer of a trace has a gain, and holds it against the rest.
func checkTraceNumbers(t *testing.T, args []string, out string, a answer.Answer) bool {
	var trace nsys.Trace
	if err := json.Unmarshal([]byte(out), &trace); err != nil {
		t.Fatal(err)
	}
	b := trace.Bound
	evenly := numberOf(a, "gain of even ranks")
	if !evenly.Defined() {
		evenly = numberOf(a, "gain of even ranks at most")
	}
	if !evenly.Defined() {
		return false
	}
	same(t, "gain", evenly, b.Gain, b.LossNS/(b.StepNS-b.LossNS))
	instead := strings.Contains(a.Line, "; late launches stall the ranks ") || strings.HasSuffix(a.Line, " its noise allows.")
	if b.Gain >= 0.0005 && !instead && !strings.Contains(a.Line, "would gain about "+quantity.Percent(b.Gain)) {
		t.Errorf("%q does not say %s", a.Line, quantity.Percent(b.Gain))
	}
	if !strings.Contains(a.Basis, " of "+quantity.Duration(b.StepNS)) {
		t.Errorf("%q does not say the step time %s", a.Basis, quantity.Duration(b.StepNS))
	}
	column := "experts_loss_ns"
	if b.Of == imbalance.OfGEMM {
		column = "gemm_loss_ns"
	}
	losses := router.Number(0)
	for _, row := range csvTable(t, args, "stragglers") {
		losses += cell(t, row[column])
	}
	if n := numberOf(a, "loss per step"); n.Defined() {
		same(t, "loss per step", n, b.LossNS, losses)
	}
	var loss router.Number
	for _, r := range trace.Imbalance {
		if r.Level != router.LevelRank || r.Quantity != imbalance.Time {
			continue
		}
		loss += r.Imbalance * r.MeanNS
		same(t, "imbalance", r.Imbalance, r.MaxOverMean-1)
		for _, s := range trace.Stragglers {
			own := map[imbalance.Of]router.Number{imbalance.OfGEMM: s.GEMMLossNS, imbalance.OfPhase: s.ExpertsLossNS}[r.Of]
			if s.Layer == r.Layer && s.Steps == r.Steps {
				same(t, fmt.Sprintf("loss of layer %d", r.Layer), own, r.Imbalance*r.MeanNS)
			}
		}
	}
	same(t, "loss, imbalance × mean", b.LossNS, loss)
	worst, layer := router.Undefined(), ""
	for _, row := range csvTable(t, args, "imbalance") {
		if m := cell(t, row["max_over_mean"]); row["level"] == "rank" && row["quantity"] == "time" && !(m <= worst) {
			worst, layer = m, row["layer"]
		}
	}
	for _, n := range a.Numbers {
		if in, ok := strings.CutPrefix(n.Label, "worst imbalance ("); ok {
			same(t, n.Label, n.Value, worst-1)
			if in != "layer "+layer+")" && in != "all layers)" {
				t.Errorf("%s, but the table says %s", n.Label, layer)
			}
			if a.Verdict == answer.Uneven && layer != "" && !strings.Contains(a.Line+strings.Join(a.Reasons, ""), "ayer "+layer) &&
				!strings.Contains(a.Line, "all layers") {
				t.Errorf("%q is not about the worst layer, %s", a.Line, layer)
			}
		}
	}
	return true
}

// checkGainNumbers reports whether a comparison has a gain, and holds it against its parts and a campaign.
func checkGainNumbers(t *testing.T, args []string, out string, a answer.Answer) bool {
	var c diff.Comparison
	if err := json.Unmarshal([]byte(out), &c); err != nil && c.Kind == "compare" { // not of launches
		t.Fatal(err)
	}
	s, g := c.Split, numberOf(a, "gain")
	if !g.Defined() || c.Kind != "compare" {
		return false
	}
	if m := c.Prediction.Measured; m != nil {
		same(t, "measured gain", g, m.Estimate)
	} else {
		same(t, "predicted gain", g, s.Gain, c.Prediction.Gain)
	}
	if text := quantity.Percent(max(g, -g)); !strings.Contains(a.Line, text) && !strings.HasPrefix(a.Line, "No ") {
		t.Errorf("%q does not say %s", a.Line, text)
	}
	same(t, "step", numberOf(a, "step with balanced routing"), s.PerfectNS)
	rows := csvTable(t, args, "gain")
	var saved, gained router.Number
	for _, row := range rows[:len(rows)-1] {
		saved, gained = saved+cell(t, row["saved_ns"]), gained+cell(t, row["gain"])
		if row["part"] != string(diff.EvenRanks) {
			continue
		}
		part := cell(t, row["saved_ns"])
		if bound := numberOf(a, "gain of even ranks alone"); bound.Defined() {
			step := s.PerfectNS * (1 + s.Gain)
			same(t, "gain of even ranks alone", bound, s.Placement.GainBound, part/(step-part))
		}
	}
	total := rows[len(rows)-1]
	same(t, "saved", saved, cell(t, total["saved_ns"]), s.Gain*s.PerfectNS)
	same(t, "sum of the parts", gained, s.Gain)
	return true
}

// A campaign's gain is the same wherever the campaign is read.
func TestCampaignHasOneGain(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob("testdata/campaign-*.json")
	for _, path := range paths {
		judged, err := source.ReadCampaign(t.Context(), path, gain.DefaultThreshold)
		if err != nil {
			t.Fatal(err)
		}
		want := quantity.Percent(judged.Gain.Estimate)
		capture := strings.NewReplacer("campaign-", "", ".json", "").Replace(path)
		for name, args := range map[string][]string{"page": {"report", path}} {
			out, errs, code := invoke(t.Context(), args...)
			if code != exitDone || !strings.Contains(plainText(out), want) {
				t.Errorf("%s: the %s does not say %s: exit %d, %s", path, name, want, code, errs)
			}
		}
		if _, err := os.Stat(capture); err != nil {
			continue
		}
		predicted, _, _ := invoke(t.Context(), "compare", "--brief", capture)
		together, errs, code := invoke(t.Context(), "report", path, capture)
		if code != exitDone || !strings.Contains(plainText(together), want) {
			t.Errorf("%s with %s: exit %d, %s", path, capture, code, errs)
		}
		if number := regexp.MustCompile(`[\d.]+ %`).FindString(predicted); strings.Contains(plainText(together), "be about "+number+" faster") {
			t.Errorf("%s: the page says both %s, measured, and %s, predicted", path, want, number)
		}
		out, _, _ := invoke(t.Context(), "compare", "--campaign", path, "--brief", capture)
		if !strings.Contains(out, want) {
			t.Errorf("compare --campaign %s: %q, want %s", path, out, want)
		}
		if !strings.Contains(string(readme), want) {
			t.Errorf("testdata/README.md does not say %s of %s", want, path)
		}
	}
}

// The prose of the READMEs says the gains that the program gives.
func TestProseHasTheGains(t *testing.T) {
	for _, said := range []struct {
		file, heading, words string
		args                 []string
	}{
		{"README.md", "## Engines", "prefill **{gain}** ({low} to {high})", []string{"--metric",
			"prefill:tok/s:higher=$.prefill", fieldResults + "vllm-one-launch-h100"}},
		{"README.md", "## Engines", "decode {gain} ({low} to {high})", []string{"--metric",
			"decode:tok/s:higher=$.decode", fieldResults + "vllm-one-launch-h100"}},
		{"testdata/README.md", "## What we measured", "**Campaign** of 6 pairs: {gain}, 95 % interval {+low %} to {+high %}: *{verdict}*",
			[]string{fieldResults + "vllm-qwen3-campaign.json"}},
		{"README.md", "## Engines", "prefill **{gain}** ({low} to {high})", []string{fieldResults + "vllm-four-h100/campaign.json"}},
		{"README.md", "## Engines", "data-parallel attention **{gain}** ({low} to {high})",
			[]string{fieldResults + "vllm-four-h100/dep.campaign.json"}},
		{"testdata/README.md", "## The gain on four H200s", "**{gain}**, 95 % interval {+low %} to {+high %}, *{verdict}*",
			[]string{fixtures + "campaign-deepseek-ep4.json"}},
		{"testdata/README.md", "## What we measured", "10 pairs measured {gain} ({+low %} to {+high %})",
			[]string{fixtures + "placement/campaign.json"}},
	} {
		var result gain.Result
		if path := said.args[len(said.args)-1]; strings.HasSuffix(path, ".json") {
			judged, err := source.ReadCampaign(t.Context(), path, gain.DefaultThreshold)
			if err != nil {
				t.Fatal(err)
			}
			result = judged.Result
		} else {
			ask(t, exitDone, &result, append([]string{"compare", "--format", "json"}, said.args...)...)
		}
		g, bare := result.Gain, func(text string) string { return strings.TrimSuffix(text, " %") }
		words := strings.NewReplacer("{gain}", quantity.Change(g.Estimate), "{low}", bare(quantity.Percent(g.Low)),
			"{high}", bare(quantity.Percent(g.High)),
			"{+low %}", quantity.Change(g.Low), "{+high %}", quantity.Change(g.High),
			"{verdict}", string(result.Verdict)).Replace(said.words)
		inText(t, "../../"+said.file, said.heading, words)
	}
}

func plainText(page string) string {
	return strings.ReplaceAll(html.UnescapeString(page), "\u00a0", " ")
}

// numberOf is a number of an answer, undefined where it has none.
func numberOf(a answer.Answer, label string) router.Number {
	for _, n := range a.Numbers {
		if n.Label == label {
			return n.Value
		}
	}
	return router.Undefined()
}

func same(t *testing.T, what string, number router.Number, others ...router.Number) {
	t.Helper()
	for _, other := range others {
		if !(math.Abs(float64(number-other)) <= 1e-9*math.Abs(float64(number))+1e-15) {
			t.Errorf("%s is %v, and %v", what, number, other)
		}
	}
}

// csvTable is a table of what a command prints, by the keys of its columns.
func csvTable(t *testing.T, args []string, name string) (rows []map[string]string) {
	t.Helper()
	out, errs, _ := invoke(t.Context(), append(args, "--format", "csv", "--table", name)...)
	records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(records) == 0 {
		t.Fatalf("%v: %v, %s", args, err, errs)
	}
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, value := range record {
			row[records[0][i]] = value
		}
		rows = append(rows, row)
	}
	return rows
}

func cell(t *testing.T, text string) router.Number {
	t.Helper()
	if text == "" {
		return router.Undefined()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return router.Number(v)
}
