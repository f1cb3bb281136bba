package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/cmd/internal/workload"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/plots/page"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// tourStep is one command of the tour, and what it found; steps that only
// prepare have no finding.
type tourStep struct {
	args   []string // DIR in an argument stands for the folder
	result string   // the file in the folder that the command writes its JSON to
	about  string
	found  func(page.Input) string // from that result, in one line
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
		result: "logits.json", about: "balanced logits", found: foundBalance,
	}, {
		args:   []string{"trace", "DIR/captures/gptoss-ep4-loop/normal.sqlite", "--format", "json", "-o", "DIR/trace.json"},
		result: "trace.json", about: "GPT-OSS-like on 4 H200s", found: foundStraggler,
	}, {
		args:   []string{"compare", "DIR/captures/gptoss-ep4-loop/normal.sqlite", "DIR/captures/gptoss-ep4-loop/perfect.sqlite", "--format", "json", "-o", "DIR/gptoss.json"},
		result: "gptoss.json", about: "the same, balanced", found: foundDifference,
	}, {
		args:   []string{"compare", "DIR/captures/deepseek-ep4-ranks/normal.*", "DIR/captures/deepseek-ep4-ranks/perfect.*", "--format", "json", "-o", "DIR/deepseek.json"},
		result: "deepseek.json", about: "DeepSeek-V3-like, balanced", found: foundDifference,
	}, {
		args:   []string{"bench", "--pairs", "6", "--campaign", "DIR/campaign", "--format", "json", "-o", "DIR/bench.json", "--", "moebalance", "workload"},
		result: "bench.json", about: "workload here, by " + workload.DefaultClock() + " time", found: foundGain,
	},
	{args: []string{
		"report", "--title", "Two programs: a campaign of the built-in workload, and traces of a GPT-OSS-like model on H200s",
		"-o", "DIR/report.html", "--png", "DIR/figures", "--svg", "DIR/figures", "DIR/logits.json", "DIR/bench.json", "DIR/captures/gptoss-ep4-loop",
	}},
}

func foundBalance(in page.Input) string {
	var models []string
	for _, b := range in.Cache.Balance {
		if !slices.Contains(models, b.Model) {
			models = append(models, b.Model)
		}
	}
	return fmt.Sprintf("at the floor over ranks and experts for %d of %s of %s", in.Cache.AtFloor(), quantity.Count(len(in.Cache.Balance), "batch size"), strings.Join(models, " and "))
}

// foundStraggler names the layer with the largest imbalance of time over ranks.
func foundStraggler(in page.Input) string {
	worst := imbalance.Row{Imbalance: router.Undefined()}
	for _, i := range in.Trace.Imbalance {
		if i.Level == router.LevelRank && i.Quantity == imbalance.Time && !(i.Imbalance <= worst.Imbalance) {
			worst = i
		}
	}
	loss, _ := imbalance.TotalLoss(in.Trace.Stragglers)
	return fmt.Sprintf("layer %d waits for rank %d, whose expert compute takes %s longer than the mean; straggler loss over all layers %s per step",
		worst.Layer, worst.Worst, quantity.Percent(worst.Imbalance), quantity.Duration(loss))
}

// foundDifference leads with the expert work of the slowest rank, which is what
// balance changes: of the step's GPU time a part is waiting.
func foundDifference(in page.Input) string {
	c := in.Compared
	slowest := [2]router.Number{router.Undefined(), router.Undefined()}
	for _, p := range c.Phases {
		if p.Phase == nsys.PhaseExperts && !p.Collective {
			slowest = [2]router.Number{p.NormalSlowestNS, p.PerfectSlowestNS}
		}
	}
	return fmt.Sprintf("expert compute of the slowest rank %s to %s per step (%s), straggler loss %s to %s",
		quantity.Duration(slowest[0]), quantity.Duration(slowest[1]), quantity.Change(slowest[1]/slowest[0]-1),
		quantity.Duration(c.Ceiling.StragglerLoss.NormalNS), quantity.Duration(c.Ceiling.StragglerLoss.PerfectNS))
}

func foundGain(in page.Input) string {
	c := in.Campaign
	return fmt.Sprintf("balanced routing changes throughput by %s (%s to %s, %s confidence, %s): %s",
		quantity.Change(c.Gain.Estimate), quantity.Change(c.Gain.Low), quantity.Change(c.Gain.High), quantity.Percent(c.Gain.Confidence), quantity.Count(c.Gain.N, "pair"), c.Verdict)
}
