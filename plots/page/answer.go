package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// answer is the program's one sentence, by the strongest evidence there is: what, how
// sure, where, and what to do; and the next steps.
func (p *program) answer() (text string, next []string) {
	campaigns, compared := p.of(isCampaign), p.of(isCompared)
	switch {
	case len(campaigns) > 0:
		for i, in := range campaigns {
			what, do := p.verdict(in.Campaign)
			for _, caveat := range slices.Backward(in.Campaign.Caveats) {
				what = strings.ToUpper(caveat[:1]) + caveat[1:] + ". " + what
			}
			if i == len(campaigns)-1 && in.Campaign.Verdict != gain.Invalid && !unfinished(in.Campaign) {
				what += p.place()
			}
			text, next = strings.TrimSpace(text+" "+what+"."), append(next, do)
		}
	case len(compared) > 0:
		text = predicted(compared[0].Compared) + p.place() + "."
	case len(p.arms) > 0:
		text = p.ofTraces()
	case len(p.of(isCounts)) > 0:
		for _, headline := range p.headlines(isCounts) {
			text = strings.TrimPrefix(text+"; "+brief(headline), "; ")
		}
		text += ". Counts do not tell what this costs in speed."
	default:
		text = brief(p.Inputs[0].Headline) + "."
	}
	if len(campaigns) == 0 {
		next = append(next, "Measure the gain: 'moebalance bench' runs your benchmark command with the learned and the balanced router, in 6 pairs or more.")
	}
	return text, append(next, p.afterTraces()...)
}

// brief is the first line of a headline, which answers; the others are facts.
func brief(headline string) string {
	first, _, _ := strings.Cut(headline, "\n")
	return first
}

// headlines are those of the inputs of a kind, with their names where there are several.
func (p *program) headlines(kind func(source.Item) bool) (out []string) {
	inputs := p.of(kind)
	for _, in := range inputs {
		text := in.Headline
		if len(inputs) > 1 && in.Trace == nil { // whose headline names the arm
			text = in.Name + ": " + text
		}
		out = append(out, text)
	}
	return out
}

// verdict is the answer of a campaign, without a stop, and what to do about it.
func (p *program) verdict(c *source.Campaign) (what, do string) {
	g, change := c.Gain, changeSentence(c)
	pairs, practical := c.PairsToDecide()
	threshold := quantity.Percent(router.Number(c.Threshold))
	switch {
	case unfinished(c):
		return fmt.Sprintf("No answer yet (%s): so far, %s", state(c), change), fmt.Sprintf("Finish the campaign before using its gain: moebalance bench --resume %s", c.Campaign.Folder)
	case c.Verdict == gain.Invalid:
		return "No answer: the campaign is invalid, so its gain decides nothing (" + strings.Join(c.Reasons, "; ") + ")", "Mend what the failed checks name (" + strings.Join(checked(c, gain.Fail), ", ") + ") and repeat the campaign."
	case !g.Estimate.Defined() || !g.Low.Defined():
		return "No answer yet: " + change, fmt.Sprintf("Run more pairs: %d are too few for an interval.", g.N)
	case c.Verdict == gain.Inconclusive && practical:
		return "Inconclusive: " + change, fmt.Sprintf("Run a new campaign with more pairs: %s should decide whether the gain is above %s (have %d). 'bench --until-decided' stops as soon as it is decided.", pairs, threshold, g.N)
	case c.Verdict == gain.Inconclusive:
		return "Inconclusive: " + change, fmt.Sprintf("%s would be needed to decide whether the gain is above %s. Reduce the spread between launches (%s on the log scale) or decide by cost.", pairs, threshold, quantity.Percent(g.LogSD))
	case isBuilds(c):
		return fmt.Sprintf("%s is %s: %s", called(c, gain.Perfect), c.Verdict, change), fmt.Sprintf("To see where the time went, compare traces of both with 'moebalance compare --arms %s,%s'.", called(c, gain.Normal), called(c, gain.Perfect))
	case c.Chance:
		return "Not decided: " + change, "Measure against balanced routing, too: random routing is even only on average, so its gain is not that of balance."
	case c.Verdict == gain.Significant:
		follows, do := p.placement(c)
		if c.Share != nil {
			change += "; " + c.Share.Sentence()
		}
		return strings.ToUpper(change[:1]) + change[1:] + ": " + follows, do
	case g.High < 0:
		return "Leave the routing alone: " + change, "At small batches, balanced routing activates more experts than real traffic does: compare the active experts of the arms."
	}
	return "Look elsewhere for speed: " + change, fmt.Sprintf("Even balance wins at most %s, below the threshold of %s: profile other phases.", quantity.Change(g.High), threshold)
}

// placement is what follows from a significant gain, and what to do: place experts anew
// unless traces of both arms show that this alone wins less than the threshold, by the
// upper end of its interval.
func (p *program) placement(c *source.Campaign) (follows, do string) {
	says, threshold := "imbalance is significant", c.Threshold
	if len(c.Points) > 0 {
		says = c.Reasons[0] // at which points
	}
	compared := p.of(func(in source.Item) bool { return isCompared(in) && in.Compared.Split.Known() })
	if len(compared) == 0 {
		return says, "Traces of both arms show how much of the gain a placement of experts can reach: run 'moebalance compare' on them."
	}
	s := compared[0].Compared.Split
	wins, high := s.PlacementSentence(), s.Placement.High
	if !high.Defined() {
		return says + ", and " + wins, fmt.Sprintf("By the traces, %s, without an interval: place the experts with 'moebalance place', then measure again.", wins)
	}
	if !(high < router.Number(threshold)) {
		return says + ", and " + wins, fmt.Sprintf("By the traces, %s, up to %s by its interval: place the experts with 'moebalance place', then measure again.", wins, quantity.Change(high))
	}
	return says + ", but " + wins, fmt.Sprintf("By the traces, %s, up to %s by its interval, which is below the threshold of %s: do not expect the gain from placing experts. Its parts are listed below.", wins, quantity.Change(high), quantity.Percent(threshold))
}

// changeSentence is the gain of a campaign with its interval and grade.
func changeSentence(c *source.Campaign) string {
	g := c.Gain
	if !g.Estimate.Defined() {
		return "no complete pair of launches"
	}
	the := "the "
	if isBuilds(c) {
		the = ""
	}
	text := fmt.Sprintf("%s%s changes throughput by %s over %s%s", the, called(c, gain.Perfect), quantity.Change(g.Estimate), the, called(c, gain.Normal))
	for _, point := range c.Points {
		if point.Gain.Estimate == g.Estimate {
			text += fmt.Sprintf(" at %s %g, where it is clearest", point.Name, point.Value)
			break
		}
	}
	about := []string{"no interval"}
	if g.Low.Defined() && g.High.Defined() {
		about[0] = fmt.Sprintf("%s interval %s to %s", quantity.Confidence(g.Confidence), quantity.Change(g.Low), quantity.Change(g.High))
	}
	about = append(about, quantity.Count(g.N, "pair"), "threshold "+quantity.Percent(router.Number(c.Threshold)))
	if !isBuilds(c) {
		about = append(about, map[gain.Grade]string{gain.Measured: "balance measured", gain.Claimed: "balance claimed, not measured", gain.None: "balance not proved"}[cmp.Or(c.Balance, gain.None)])
	}
	text += " (" + strings.Join(about, ", ") + ")"
	if c.Crossover != nil && c.Crossover.Text != "" {
		text += "; " + c.Crossover.Text
	}
	return text
}

// predicted is the answer of the traces of both arms, without a stop.
func predicted(c *diff.Comparison) string {
	r := c.Prediction
	switch {
	case !c.Comparable:
		return "No answer: the traces cannot be compared as two arms: " + strings.Join(c.Reasons, "; ")
	case len(c.Builds) > 0:
		return fmt.Sprintf("Traces of %s and %s: GPU time per step changes by %s", c.Builds[0], c.Builds[1], quantity.Change(c.Step.PerfectNS/c.Step.NormalNS-1))
	case !r.Gain.Defined():
		return "No answer: the traces allow no prediction of the gain"
	case r.LateHosts && r.Gain > 0:
		return fmt.Sprintf("Traces predict that balance wins at most %s%s: ranks wait mostly for late hosts, which balance does not change", quantity.Change(r.Gain), c.ForKinds())
	}
	text := fmt.Sprintf("Traces predict that balance changes throughput by %s%s", quantity.Change(r.Gain), c.ForKinds())
	if r.Low.Defined() {
		text += fmt.Sprintf(" (%s interval %s to %s over the steps of one launch each, which does not hold the variation between launches)", quantity.Confidence(r.Confidence), quantity.Change(r.Low), quantity.Change(r.High))
	}
	return text
}

// place names the layer and rank with the largest imbalance of expert time of the arm
// that answers: the learned router, or the only one. It begins with a semicolon.
func (p *program) place() string {
	if len(p.arms) == 0 || len(p.arms) > 1 && p.arms[0].Name != plots.Learned || p.arms[0].Name == plots.Balanced {
		return ""
	}
	t := p.arms[0].Trace
	if doubt := t.Doubt(); doubt != "" {
		return "; where the time goes is uncertain: " + doubt
	}
	row, ok := worstLayer(t)
	if !ok {
		return ""
	}
	text := fmt.Sprintf("; expert time is most uneven in layer %d, where rank %d takes %s longer than the mean rank", row.Layer, row.Worst, quantity.Percent(row.Imbalance))
	if w := t.Waits; len(w) > 0 && w[0].WaitNS > 0 {
		text += fmt.Sprintf("; ranks wait longest in %s", w[0].Sentence(fmt.Sprintf("layer %d", w[0].Layer)))
	}
	return text
}

// worstLayer is the row of the layer with the largest imbalance of expert time over ranks.
func worstLayer(t *nsys.Trace) (imbalance.Row, bool) {
	o, ok := t.RankTime()
	i := slices.IndexFunc(t.Imbalance, func(r imbalance.Row) bool {
		return r.Level == router.LevelRank && r.Quantity == imbalance.Time && r.Layer == o.WorstLayer && r.MaxOverMean == o.WorstMaxOverMean
	})
	if !ok || i < 0 || !o.WorstLayer.Defined() {
		return imbalance.Row{}, false
	}
	return t.Imbalance[i], true
}

// ofTraces is the answer of traces that are no pair of arms.
func (p *program) ofTraces() string {
	if place := p.place(); place != "" {
		text := strings.ToUpper(place[2:3]) + place[3:]
		if b := p.arms[0].Trace.Bound; p.arms[0].Trace.Doubt() == "" && b.Gain.Defined() {
			text = fmt.Sprintf("Evening out ranks wins about %s (inferred from one arm, without an interval)%s", quantity.Change(b.Gain), place)
		}
		return text + "."
	}
	return brief(p.of(isTrace)[0].Headline) + "."
}

func (p *program) afterTraces() (steps []string) {
	if len(p.arms) == 0 {
		return []string{"Trace both arms to see where the time goes: run 'moebalance profile' and give the exports to this report."}
	}
	for _, a := range p.arms {
		switch {
		case hidesGraphs(a.Trace):
			steps = append(steps, fmt.Sprintf("Capture the %s again with --cuda-graph-trace=node: kernels inside CUDA graphs are not traced.", a.Name))
		case !(a.Trace.Coverage.LayerShare >= lowCoverage):
			steps = append(steps, fmt.Sprintf("Capture the %s again with NVTX ranges for layers and phases: %s of its GPU time is attributed to layers.", a.Name, quantity.Percent(a.Trace.Coverage.LayerShare)))
		}
		if !a.PerStep.HasLoad() {
			steps = append(steps, fmt.Sprintf("Record expert statistics in the same steps as the trace of the %s: without load, it is unknown whether time follows routing.", a.Name))
		}
	}
	if len(p.arms) == 1 {
		steps = append(steps, "Trace the other arm, too: the difference between the arms shows which phases balance would shorten.")
	}
	return steps
}

// lowCoverage is the share of GPU time in layers below which the answers per
// layer rest on too little of the capture.
const lowCoverage = 0.5

// called is the name of an arm for people.
func called(c *source.Campaign, arm gain.Arm) string {
	switch name := c.Called(arm); name {
	case gain.Normal:
		return plots.Learned
	case gain.Perfect:
		return plots.Balanced
	case gain.ChanceArm:
		return "random router"
	default:
		return string(name)
	}
}

func isBuilds(c *source.Campaign) bool { return len(c.Arms) == 2 }

func unfinished(c *source.Campaign) bool { return c.Campaign.Left > 0 }

// state says how far an unfinished campaign has come.
func state(c *source.Campaign) string {
	of := "of"
	if len(c.Campaign.Looks) > 0 {
		of = "of at most"
	}
	return fmt.Sprintf("unfinished, %d %s %s", c.Gain.N, of, quantity.Count(c.Campaign.Pairs, "pair"))
}
