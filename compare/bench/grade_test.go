package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/launch"
	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/testdata/require"
)

// printed is what a benchmark printed in a file of testdata.
func printed(file string) string {
	return string(require.Value(os.ReadFile("../../testdata/outputs/" + file)))
}

// trtllmReport is what trtllm-bench prints on so many ranks.
func trtllmReport(epSize string) string {
	return strings.Replace(printed("trtllm-bench-c.txt"), "EP Size:                8", "EP Size: "+epSize, 1)
}

const (
	firstLine = "Precomputing perfect router logits for 22 common batch sizes...\n"
	rankLine  = "Precomputing perfect router logits for 22 common batch sizes (ep_rank=0)...\n"
)

// judged is the result of a campaign of six pairs whose perfect launches print the log,
// and whose launches all print the report.
func judged(t *testing.T, spec Spec, log, report string) gain.Result {
	t.Helper()
	attempt := func(text string) view {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, launch.Stdout), []byte(text), 0o644))
		rules := require.Value(spec.custom())
		result := require.Value(metrics.Parse(launch.Stdout, strings.NewReader(text), rules))
		found := require.Value(spec.Treatment.findLines(folder))
		v := reported(&result)
		v.LinesFound, v.Environment = found, map[string]string{}
		return v
	}
	var normal, perfect []view
	for range 6 {
		normal, perfect = append(normal, attempt(report)), append(perfect, attempt(log+report))
		perfect[len(perfect)-1].Environment = spec.Treatment.Perfect
	}
	return gain.Judge(Recorded(campaignOf(spec, normal, perfect)))
}

// Claims that once were exit 0 with "balanced on every rank" and prove nothing, and claims of every rank, which are
// accepted as such and in no other words.
func TestClaims(t *testing.T) {
	hook, servingReport := "moebalance hook: rank %d of 2 routes 48 layers by perfect\n", printed("serving-sglang.txt")
	for name, c := range map[string]struct {
		treatment   string
		spec        Spec
		log, report string
		wants       string // empty: balance is claimed
	}{
		"EP Size: None": {"trtllm", Spec{}, rankLine, trtllmReport("None"), "seen on 1 rank; say --ranks N"},
		"eight lines without a rank": {"trtllm", Spec{}, strings.Repeat(firstLine, 8), trtllmReport("8"),
			"8× are not 8 ranks"},
		"the planner failed": {"trtllm", Spec{Ranks: 1}, rankLine +
			"Warning: Failed to precompute logits for batch size 1: no such method\n",
			trtllmReport("1"), `the engine says "Failed to precompute logits"`},
		"the first planner on expert groups": {"trtllm", Spec{Ranks: 1,
			Command: Command{Normal: []string{"trtllm-bench", "--model", "deepseek-ai/DeepSeek-R1-FP4"}}},
			firstLine, trtllmReport("1"), "ignores the expert groups of deepseek-ai/DeepSeek-R1-FP4"},
		"one rank of four printed it": {"trtllm", Spec{Ranks: 1}, rankLine, trtllmReport("4"), "no evidence of this rank"},
		"both of the hook's ranks":    {"hook", Spec{}, fmt.Sprintf(hook+hook, 0, 1), servingReport, ""},
		"ranks of the lines": {"trtllm", Spec{}, rankLine + strings.Replace(rankLine, "=0", "=1", 1), trtllmReport("2"),
			""},
		"ranks of the command": {"trtllm", Spec{Command: Command{Server: []string{"trtllm-serve", "m", "--tp_size", "4",
			"--ep_size", "2"}}}, strings.Repeat(rankLine+strings.Replace(rankLine, "=0", "=1", 1), 2), servingReport, ""},
		"half of the processes": {"trtllm", Spec{Command: Command{Normal: []string{"trtllm-bench", "--tp=4", "--ep", "2"}}},
			rankLine + strings.Replace(rankLine, "=0", "=1", 1), servingReport, "2× in all, of 4 processes"},
		"a rank of the command is silent": {"trtllm", Spec{Command: Command{Normal: []string{"trtllm-bench", "--ep=2"}}},
			rankLine, servingReport, "no evidence of this rank"},
		"ranks of srun --label": {"trtllm", Spec{}, "0: " + firstLine + "1: " + firstLine, trtllmReport("2"), ""},
	} {
		c.spec.Treatment = require.Value(ParseTreatment(c.treatment))
		r, balance := judged(t, c.spec, c.log, c.report), gain.Claimed
		if c.wants != "" {
			balance = gain.None
		}
		if r.Balance != balance || (r.Verdict == gain.Invalid) != (c.wants != "") || !strings.Contains(because(r), c.wants) ||
			c.wants == "" && proofOf(r).Args["why"] != "claimed" {
			t.Errorf("%s: %s, balance %s, %q; want %s with %q", name, r.Verdict, r.Balance, because(r), balance, c.wants)
		}
		warned := slices.ContainsFunc(r.Checks, func(k gain.Check) bool { return k.Name == "launcher" })
		if spawns := c.spec.Command.engine() != nil; warned != (spawns && c.wants != "") { // proved ranks saw the switch
			t.Errorf("%s: a warning of spawned ranks: %t", name, warned)
		}
	}
}

func TestRandomRoutingIsChance(t *testing.T) {
	for name, want := range map[string]bool{"vllm": true, "trtllm": false, "sglang": false,
		"env:SGLANG_SIMULATE_UNIFORM_EXPERTS=1": true} {
		if treatment := require.Value(ParseTreatment(name)); treatment.Chance() != want {
			t.Errorf("%s: chance %t", name, !want)
		}
	}
	random, _ := ParseTreatment("vllm")
	if r := gain.Judge(Recorded(&Campaign{Spec: Spec{Treatment: random}})); r.Called(gain.Perfect) != gain.ChanceArm {
		t.Errorf("random routing is called %s", r.Called(gain.Perfect))
	}
}

// proof is the check of the proof.
func proofOf(r gain.Result) gain.Check {
	return r.Checks[slices.IndexFunc(r.Checks, func(c gain.Check) bool { return c.Name == gain.CheckProof })]
}

// because is what failed checks found.
func because(r gain.Result) string { return fmt.Sprint(r.Failed()) }
