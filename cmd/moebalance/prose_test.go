package main

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

// A campaign's gain is the same wherever the campaign is read.
func TestCampaignHasOneGain(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob("testdata/campaign-*.json")
	for _, path := range paths {
		judged, err := source.ReadCampaign(path)
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
		{"README.md", "## Engines", "prefill **{gain}** ({low} to {high})", []string{fieldResults + "vllm-one-launch-h100/prefill.campaign.json"}},
		{"README.md", "## Engines", "decode {gain} ({low} to {high})", []string{fieldResults + "vllm-one-launch-h100/decode.campaign.json"}},
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
			judged, err := source.ReadCampaign(path)
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
