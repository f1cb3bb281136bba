package main

import (
	"html"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
)

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
