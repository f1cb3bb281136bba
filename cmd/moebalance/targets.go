package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
	"github.com/moebalance/moebalance/logits/hook"
)

// The stores of this tool.
const (
	campaignStore = "campaign"
	cacheStore    = "cache of logits"
	exportStore   = "cache of exports"
)

// targetRules is what outputs must leave alone besides the inputs.
func targetRules() target.Rules {
	exports := reportConverter().Cache
	records := func(folder string) bool { return len(counts.Files(folder)) > 0 }
	return target.Rules{Expand: filesBehind, Ours: marks.Match, Known: source.Knows, Whole: records,
		Store: func(folder string) string {
			switch {
			case bench.IsCampaign(folder):
				return campaignStore
			case logits.IsCache(folder):
				return cacheStore
			case folder == exports:
				return exportStore
			}
			return ""
		}}
}

// marks are how what we write begins: results, pages, figures, the hook, placements as one line of
// JSON without blanks or as our YAML, and data sets.
var marks = regexp.MustCompile(
	`(?s)^(?:\{\n  "schema_version": \d+,\n  "kind": "|<!DOCTYPE html>.{0,500}<meta name="generator" content="moebalance"/>|` +
		`.PNG\r\n.{0,60}Software\x00moebalance|\{"physical_to_logical_map":\[\[|\{"initial_global_assignments":\{"|` +
		hook.Mark + `|num_slots: \d+\ninitial_global_assignments:\n  \d+: \[|\{"task_id":0,"input_ids":\[\d)`)

// filesBehind lists the files that a verb reads where it is given a folder, or the
// index of a sharded checkpoint.
func filesBehind(path string) []string {
	if strings.HasSuffix(path, ".index.json") && isFile(path) {
		shards, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.safetensors"))
		return shards
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil
	}
	recorded := counts.Files(path)
	files, err := source.FolderFiles(path, nil)
	if err == nil && (len(recorded) == 0 || nsys.Takes(files[0])) {
		recorded = append(recorded, files...)
	}
	return recorded
}
