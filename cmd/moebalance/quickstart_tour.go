package main

import (
	"path/filepath"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/render"
	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/compare/source"
)

// tourStep is one command of the tour, and what it found; steps that only
// prepare have no finding.
type tourStep struct {
	args   []string // DIR in an argument stands for the folder
	result string   // the file in the folder that the command writes its JSON to
	about  string
	found  func(source.Item) string // from that result, in one line
}

// in is the command's arguments for a folder.
func (s tourStep) in(dir string) []string {
	args := make([]string, len(s.args))
	for i, a := range s.args {
		args[i] = strings.ReplaceAll(a, "DIR", filepath.ToSlash(dir))
	}
	return args
}

// tour is the commands in order.
var tour = []tourStep{
	{args: []string{"logits", "generate", "--model", "gpt-oss-120b", "--ep", "8", "--tokens", "1,8,64,256", "--cache", "DIR/cache"}},
	{args: []string{"logits", "generate", "--model", "deepseek-v3", "--ep", "8", "--tokens", "1,8,64,256", "--cache", "DIR/cache"}},
	{
		args:   []string{"logits", "verify", "DIR/cache", "--format", "json", "-o", "DIR/logits.json"},
		result: "logits.json", about: "balanced logits", found: render.TourBalance,
	}, {
		args:   []string{"trace", "DIR/captures/gptoss-ep4-loop/normal.sqlite", "--format", "json", "-o", "DIR/trace.json"},
		result: "trace.json", about: "GPT-OSS-like on 4 H200s", found: render.TourStraggler,
	}, {
		args:   []string{"compare", "DIR/captures/gptoss-ep4-loop/normal.sqlite", "DIR/captures/gptoss-ep4-loop/perfect.sqlite", "--format", "json", "-o", "DIR/gptoss.json"},
		result: "gptoss.json", about: "the same, balanced", found: render.TourDifference,
	}, {
		args:   []string{"compare", "DIR/captures/deepseek-ep4-ranks/normal.*", "DIR/captures/deepseek-ep4-ranks/perfect.*", "--format", "json", "-o", "DIR/deepseek.json"},
		result: "deepseek.json", about: "DeepSeek-V3-like, balanced", found: render.TourDifference,
	}, {
		args:   []string{"bench", "--pairs", "6", "--campaign", "DIR/campaign", "--format", "json", "-o", "DIR/bench.json", "--", "moebalance", "workload"},
		result: "bench.json", about: "workload here, by " + workload.DefaultClock() + " time", found: render.TourGain,
	},
	{args: []string{
		"report", "--title", "Two programs: a campaign of the built-in workload, and traces of a GPT-OSS-like model on H200s",
		"-o", "DIR/report.html", "--png", "DIR/figures", "--svg", "DIR/figures", "DIR/logits.json", "DIR/bench.json", "DIR/captures/gptoss-ep4-loop",
	}},
}
