package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/target"
	"github.com/moebalance/moebalance/compare/bench"
	"github.com/moebalance/moebalance/compare/counts"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/logits"
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
	return target.Rules{Expand: filesBehind, Data: nsys.Takes, Whole: records, Store: func(folder string) string {
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
