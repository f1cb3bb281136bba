package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// next says what to do with the answers, each with the number it rests on.
func (p Page) next() section {
	s := section{ID: "next", Title: "What to do next"}
	var steps []string
	for _, in := range p.campaigns() {
		steps = append(steps, p.afterVerdict(in.Campaign))
	}
	if len(p.campaigns()) == 0 {
		steps = append(steps, "Measure the ceiling: imbalance of load or time alone does not say how much throughput balance would win. Run 'moebalance bench' on your benchmark command with at least 6 pairs.")
	}
	steps = append(steps, p.afterTraces()...)
	s.addList(steps)
	return s
}

func (p Page) afterVerdict(c *source.Campaign) string {
	g := c.Gain
	switch {
	case unfinished(c):
		return fmt.Sprintf("Finish the campaign before using its gain (%s): moebalance bench --resume %s.", state(c), c.Campaign.Folder)
	case c.Verdict == gain.Invalid:
		return "Fix the campaign before using its gain: " + strings.Join(c.Reasons, "; ") + "."
	case c.Verdict == gain.Inconclusive && !g.Low.Defined():
		return fmt.Sprintf("Run more pairs: %d are too few for an interval.", g.N)
	case c.Verdict == gain.Inconclusive && c.PairsNeeded.Defined():
		return fmt.Sprintf("Run more pairs: about %s in all (%s to %s, as the spread is known) should decide whether the gain is above %s (have %d). Resume the campaign; its launches are kept.", quantity.Digits4(c.PairsNeeded), quantity.Digits4(c.PairsNeededLow), quantity.Digits4(c.PairsNeededHigh), quantity.Percent(router.Number(c.Threshold)), g.N)
	case c.Verdict == gain.Inconclusive:
		return fmt.Sprintf("The gain is near the threshold of %s: no practical number of pairs would decide it. Reduce the spread between launches (%s on the log scale) or decide by cost.", quantity.Percent(router.Number(c.Threshold)), quantity.Percent(g.LogSD))
	case len(c.Arms) == 2:
		return fmt.Sprintf("%s is %s: to see where the time went, compare traces of both with 'moebalance compare --arms %s,%s'.", c.Called(gain.Perfect), c.Verdict, c.Called(gain.Normal), c.Called(gain.Perfect))
	case c.Chance:
		return "Measure against balanced routing, too: random routing is even only on average, so its gain is not that of perfect balance."
	case c.Verdict == gain.Significant:
		text := fmt.Sprintf("Worth of balance: perfect balance wins about %s of throughput (%s to %s with %s confidence), of which a real balancer reaches only a part.", quantity.Change(g.Estimate), quantity.Change(g.Low), quantity.Change(g.High), quantity.Confidence(g.Confidence))
		if c.Share != nil && c.Share.Estimate.Defined() {
			text += fmt.Sprintf(" %s reaches %s of it.", c.Share.Arm, quantity.Percent(c.Share.Estimate))
		}
		return text + p.afterPlacement(c.Threshold)
	case g.High < 0:
		return fmt.Sprintf("Leave the routing alone: perfect routing is slower here (%s). At small batches it activates more experts than real traffic does: compare the active experts of the arms.", quantity.Change(g.Estimate))
	}
	return fmt.Sprintf("Look elsewhere for speed: even perfect balance wins at most %s, below the threshold of %s.", quantity.Change(g.High), quantity.Percent(router.Number(c.Threshold)))
}

// afterPlacement advises to place experts where that alone can win more than the threshold.
func (p Page) afterPlacement(threshold float64) string {
	i := slices.IndexFunc(p.compared, func(c diff.Comparison) bool { return c.Split.Known() })
	if i < 0 {
		return " Traces of both arms show how much of it a placement of experts can reach: run 'moebalance compare' on them."
	}
	s := p.compared[i].Split
	if s.Placement.GainBound > router.Number(threshold) {
		return fmt.Sprintf(" By the traces, %s: place the experts with 'moebalance place', then measure again.", s.PlacementSentence())
	}
	return fmt.Sprintf(" By the traces, %s, which is below the threshold of %s: do not expect it from placing experts.", s.PlacementSentence(), quantity.Percent(threshold))
}

func (p Page) afterTraces() (steps []string) {
	if len(p.arms) == 0 {
		return []string{"Trace both arms to see where the time goes: run 'moebalance profile' and give the exports to this report."}
	}
	var hidden, thin, unloaded []string
	for _, a := range p.arms {
		if hidesGraphs(a.Trace) {
			hidden = append(hidden, a.Name)
		} else if !(a.Trace.Coverage.LayerShare >= lowCoverage) {
			thin = append(thin, fmt.Sprintf("%s (%s)", a.Name, quantity.Percent(a.Trace.Coverage.LayerShare)))
		}
		if !a.PerStep.HasLoad() {
			unloaded = append(unloaded, a.Name)
		}
		if w := a.Trace.Waits; len(w) > 0 && a.Name != string(gain.Perfect) {
			steps = append(steps, fmt.Sprintf("Start where ranks of %s wait longest, %s.", a.Name, w[0].Sentence(fmt.Sprintf("layer %d", w[0].Layer))))
		} else if s, ok := worstLayer(a.Trace); ok && a.Name != string(gain.Perfect) {
			steps = append(steps, fmt.Sprintf("Start with layer %d of %s: it loses most to its slowest rank, %s per step, with rank %d the slowest in %d of %s.", s.Layer, a.Name, quantity.Duration(s.LossNS), s.WorstRank, s.WorstSteps, quantity.Count(s.Steps, "step")))
		}
	}
	if len(hidden) > 0 {
		steps = append(steps, "Capture again with --cuda-graph-trace=node: kernels inside CUDA graphs are not traced in "+strings.Join(hidden, " and ")+".")
	}
	if len(thin) > 0 {
		steps = append(steps, "Capture again with NVTX ranges for layers and phases: little GPU time is attributed to layers in "+strings.Join(thin, " and ")+".")
	}
	if len(unloaded) > 0 {
		steps = append(steps, "Record expert statistics in the same steps as the trace: without load, it is unknown whether time follows routing in "+strings.Join(unloaded, " and ")+".")
	}
	if len(p.arms) == 1 {
		steps = append(steps, "Trace the other arm, too: the difference between the arms shows which phases balance would shorten.")
	}
	return steps
}

// hidesGraphs reports an export that recorded CUDA graphs whole.
func hidesGraphs(t *nsys.Trace) bool {
	return slices.ContainsFunc(t.Exports, func(e nsys.Export) bool { return e.GraphMode == "graph" })
}

// worstLayer is the layer with the largest straggler loss, the first on a tie.
func worstLayer(t *nsys.Trace) (worst imbalance.Straggler, ok bool) {
	for _, s := range t.Stragglers {
		if s.LossNS > 0 && s.Layer.Defined() && (!ok || s.LossNS > worst.LossNS) {
			worst, ok = s, true
		}
	}
	return worst, ok
}
