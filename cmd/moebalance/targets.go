package main

import (
	"regexp"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/logits/hook"
	"github.com/moebalance/moebalance/plots"
)

// The stores of this tool.
const (
	campaignStore = "campaign"
	cacheStore    = "cache of logits"
)

// targetRules is what outputs must leave alone besides the inputs.
func targetRules() target.Rules {
	records := func(folder string) bool { return len(counts.Files(folder)) > 0 }
	return target.Rules{Expand: source.Behind, Whole: records, Ours: marks.Match, Known: source.Knows,
		Store: func(folder string) string {
			switch {
			case bench.IsCampaign(folder):
				return campaignStore
			case logits.IsCache(folder):
				return cacheStore
			}
			return ""
		}}
}

// marks are how what we write begins: results, pages, figures, the hook, placements as one line of
// JSON without blanks or as our YAML, and data sets.
var marks = regexp.MustCompile(
	`(?s)^(?:\{\n  "schema_version": \d+,\n  "kind": "|` +
		`<!DOCTYPE html>.{0,500}<meta name="generator" content="moebalance"/>|` +
		regexp.QuoteMeta(plots.Mark) +
		`|.PNG\r\n.{0,60}Software\x00moebalance|\{"physical_to_logical_map":\[\[|\{"initial_global_assignments":\{"|` +
		hook.Mark + `|num_slots: \d+\ninitial_global_assignments:\n  \d+: \[|\{"task_id":0,"input_ids":\[\d)`)
