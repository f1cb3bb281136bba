package proof

import (
	"strings"
	"testing"

	"github.com/moebalance/moebalance/compare/bench/metrics"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/router"
)

// What a launch shows of its routing, by its counts, else by what its ranks acknowledged, or what its command says.
func TestWhatALaunchShows(t *testing.T) {
	counted := func(ranks, experts, layers int, overRanks, overExperts router.Number) *LoadProof {
		p := &LoadProof{Ranks: ranks, Experts: experts, RankMaxOverMean: overRanks, RankFloor: 1,
			ExpertMaxOverMean: overExperts, ExpertFloor: 1, Slots: map[int]int64{}}
		for layer := range layers {
			p.Slots[layer] = 100
		}
		return p
	}
	even, whole, placed := counted(4, 8, 2, 1, 1), counted(4, 8, 2, 1.04, 1.04), counted(4, 8, 2, 1, 1)
	placed.Placed = true
	few, nan := counted(4, 8, 2, 1.5, 4), router.Undefined()
	few.RankFloor, few.ExpertFloor = 1.5, 4
	beside := Rules{Counts: []*LoadProof{even}}
	said := func(perfect bool, ranks int, loads ...router.Number) Launch { // over ranks and experts, by layer
		p := metrics.Proof{Claimed: true, Perfect: perfect, Ranks: ranks}
		for ; len(loads) > 0; loads = loads[2:] {
			p.Layers = append(p.Layers, metrics.LayerBalance{RankMaxOverMean: loads[0], ExpertMaxOverMean: loads[1]})
		}
		return Launch{Ranks: ranks, Report: p}
	}
	const normal, perfect = gain.Normal, gain.Perfect
	for what, k := range map[string]struct {
		rules Rules
		arm   gain.Arm
		l     Launch
		shows gain.Arm
		says  string
	}{
		"a switch that says nothing":    {Rules{Said: "X=1"}, perfect, Launch{}, balanced, "started with X=1"},
		"without it":                    {Rules{Said: "X=1"}, normal, Launch{}, unbalanced, "started without X=1"},
		"nothing":                       {Rules{}, perfect, Launch{}, unproved, "--proof or --counts"},
		"a rank that did not answer":    {Rules{Within: true}, perfect, Launch{Ranks: 2, Answered: 1, Router: "perfect"}, unproved, "1 rank"},
		"all ranks answered":            {Rules{Within: true}, perfect, Launch{Ranks: 2, Answered: 2, Router: "perfect"}, balanced, ""},
		"none of unknown many did":      {Rules{Within: true}, perfect, Launch{Router: "perfect"}, unproved, "0 ranks"},
		"even counts":                   {beside, perfect, Launch{Ranks: 4, Counted: whole}, balanced, ""},
		"even as few tokens allow":      {Rules{}, perfect, Launch{Counted: few}, balanced, ""},
		"even ranks alone":              {Rules{}, perfect, Launch{Counted: counted(4, 8, 2, 1.04, 3)}, unbalanced, ""},
		"even experts, unknown ranks":   {Rules{}, perfect, Launch{Counted: counted(4, 8, 2, nan, 1.04)}, balanced, ""},
		"no load at all":                {Rules{}, normal, Launch{Counted: counted(4, 8, 2, nan, nan)}, unproved, "no load"},
		"the normal arm, even":          {Rules{}, normal, Launch{Counted: whole}, balanced, ""},
		"counts of two ranks":           {Rules{}, perfect, Launch{Ranks: 4, Counted: counted(2, 8, 2, 1, 1)}, unproved, "2 of 4 ranks"},
		"of two ranks beside four":      {beside, perfect, Launch{Counted: counted(2, 8, 2, 1, 1)}, unproved, "2 of 4 ranks"},
		"of ranks that are not known":   {beside, perfect, Launch{Ranks: 4, Counted: counted(0, 8, 2, 1, 1)}, balanced, ""},
		"counts of other experts":       {beside, perfect, Launch{Counted: counted(4, 6, 2, 1, 1)}, unproved, "6 experts, another"},
		"of experts that are not known": {beside, perfect, Launch{Counted: counted(4, 0, 2, 1, 1)}, balanced, ""},
		"counts of fewer layers":        {beside, perfect, Launch{Counted: counted(4, 8, 1, 1, 1)}, unproved, "1 layer, another"},
		"of layers that are not known":  {beside, perfect, Launch{Counted: counted(4, 8, 0, 1, 1)}, balanced, ""},
		"counts that are in doubt":      {beside, perfect, Launch{Counted: even, Doubt: "stale"}, unproved, "stale"},
		"uneven under TensorRT-LLM":     {Rules{Treatment: "trtllm"}, perfect, Launch{Counted: counted(4, 8, 2, 2, 2)}, unbalanced, "run_moe"},
		"uneven under another engine":   {Rules{}, perfect, Launch{Counted: counted(4, 8, 2, 2, 2)}, unbalanced, ""},
		"placed in the counts":          {Rules{}, perfect, Launch{Placement: "--eplb", Counted: placed}, balanced, ""},
		"uneven, as it should be":       {Rules{Treatment: "trtllm"}, normal, Launch{Counted: counted(4, 8, 2, 2, 2)}, unbalanced, ""},
		"random routing":                {Rules{Chance: true}, perfect, Launch{Counted: counted(4, 8, 2, 1, 2)}, balanced, ""},
		"learned routing beside it":     {Rules{Chance: true}, normal, Launch{Counted: counted(4, 8, 2, 1, 2)}, unbalanced, ""},
		"experts placed by the command": {Rules{}, perfect, Launch{Placement: "--eplb", Counted: even}, unproved, "load of ranks is unknown"},
		"perfect without loads":         {Rules{}, perfect, said(true, 1), balanced, "no loads"},
		"perfect by its word only":      {Rules{}, perfect, said(true, 2, 1, 1, 1.4, 1.6), unproved, "contradicted"},
		"a switch that was not seen":    {Rules{}, perfect, said(false, 2, 1.4, 1.6), unbalanced, "all 2 ranks"},
		"normal but balanced":           {Rules{}, normal, said(false, 2, 1, 1), balanced, "contradicted"},
		"normal without loads":          {Rules{}, normal, said(false, 2), unbalanced, ""},
		"normal told to be perfect":     {Rules{}, normal, said(true, 2, 1, 1), balanced, ""},
		"perfect, uneven experts only":  {Rules{}, perfect, said(true, 1, nan, 1.6), unproved, ""},
		"normal, even experts only":     {Rules{}, normal, said(false, 1, nan, 1), balanced, ""},
		"and uneven":                    {Rules{}, normal, Launch{Placement: "--eplb", Counted: counted(4, 8, 2, 1, 2)}, unbalanced, ""},
	} {
		if r := k.rules.of(k.arm, k.l)[0]; r.shows != k.shows || !strings.Contains(r.evidence, k.says) ||
			strings.Contains(r.evidence, "NaN") ||
			strings.Contains(r.evidence, "run_moe") != (k.says == "run_moe") {
			t.Errorf("%s: %q: %s, want %q", what, r.shows, r.evidence, k.shows)
		}
	}
}
