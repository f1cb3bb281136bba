package main

import (
	"html"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router/quantity"
	"github.com/moebalance/moebalance/testdata/require"
)

// The prose of the READMEs says the gains that the program gives.
func TestProseHasTheGains(t *testing.T) {
	for _, said := range []struct {
		file, heading, words, campaign string
	}{
		{"README.md", "## Engines", "prefill **{gain}** ({low} to {high})", fieldResults + "vllm-one-launch-h100/prefill.campaign.json"},
		{"README.md", "## Engines", "decode {gain} ({low} to {high})", fieldResults + "vllm-one-launch-h100/decode.campaign.json"},
		{"testdata/README.md", "## What we measured", "**Campaign** of 6 pairs: {gain}, 95 % interval {+low %} to {+high %}: *{verdict}*",
			fieldResults + "vllm-qwen3-campaign.json"},
		{"README.md", "## Engines", "prefill **{gain}** ({low} to {high})", fieldResults + "vllm-four-h100/campaign.json"},
		{"README.md", "## Engines", "data-parallel attention **{gain}** ({low} to {high})",
			fieldResults + "vllm-four-h100/dep.campaign.json"},
		{"testdata/README.md", "## The gain on four H200s", "**{gain}**, 95 % interval {+low %} to {+high %}, *{verdict}*",
			fixtures + "campaign-deepseek-ep4.json"},
		{"testdata/README.md", "## What we measured", "10 pairs measured {gain} ({+low %} to {+high %})",
			fixtures + "placement/campaign.json"},
	} {
		judged := require.Value(source.ReadCampaign(said.campaign))
		g, bare := judged.Gain, func(text string) string { return strings.TrimSuffix(text, " %") }
		words := strings.NewReplacer("{gain}", quantity.Change(g.Estimate), "{low}", bare(quantity.Percent(g.Low)),
			"{high}", bare(quantity.Percent(g.High)),
			"{+low %}", quantity.Change(g.Low), "{+high %}", quantity.Change(g.High),
			"{verdict}", string(judged.Verdict)).Replace(said.words)
		inText(t, "../../"+said.file, said.heading, words)
	}
}

func plainText(page string) string {
	return strings.ReplaceAll(html.UnescapeString(page), "\u00a0", " ")
}
