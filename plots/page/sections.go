package page

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/answer"
	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/gain"
	"github.com/moebalance/moebalance/compare/source"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// gain shows what the balanced router won in each pair of launches, and what traces allow.
func (p *program) gain() section {
	s := section{ID: "gain", Title: "How much does balance gain?", Short: "Gain", tableGroup: "gain"}
	for i, in := range p.of(isCampaign) {
		c := in.Campaign
		s.keyed(key(in.answer))
		if isBuilds(c) {
			s.Title = "Which build is faster?"
		}
		if c.Verdict.Refused() { // whose gain nobody should remember
			s.Answer = "Unknown: the campaign is " + string(c.Verdict)
			continue
		}
		spec := gainSpec(c)
		if i > 0 {
			spec.Name = fmt.Sprintf("%s-%d", spec.Name, i+1)
		}
		if c.Dose != nil {
			s.addFigure(plots.DoseResponse(c.Dose, answer.CostOfLoad(c.Dose, answer.AtPoint(c.Result))))
		}
		if len(c.Points) > 0 {
			s.addFigure(plots.GainCurve(curveSpec(spec, c)))
		} else {
			s.addFigure(plots.PairedGain(spec))
		}
	}
	for _, in := range p.of(isCompared) {
		s.keyed(number(in.answer, "gain"))
	}
	s.Answer = cmp.Or(strings.Join(p.lines(isCampaign), "\n"), s.Answer)
	return s
}

// curveSpec is the figure of a campaign at several loads.
func curveSpec(s plots.GainSpec, c *source.Campaign) plots.CurveSpec {
	unit := "complete pair"
	if c.Design == gain.WithinLaunch {
		unit = "launch"
	}
	s.Caption = fmt.Sprintf(
		"Measured at %s, %s each; %s. The intervals hold together at %s. Values between the points are interpolated.",
		quantity.Count(len(c.Points), "point"), quantity.Count(c.Gain.N, unit), metricLabel(c.Metric),
		quantity.Confidence(c.SimultaneousConfidence))
	known := slices.DeleteFunc(slices.Clone(c.Points), func(p gain.PointGain) bool { return !p.Gain.Estimate.Defined() })
	if n := len(known) - 1; n > 0 && c.Campaign.Left == 0 {
		at := func(p gain.PointGain) string {
			return fmt.Sprintf("%s at %s", quantity.Change(p.Gain.Estimate), loadOf(p))
		}
		s.Title = fmt.Sprintf("Gain: %s, %s", at(known[0]), at(known[n]))
	}
	return plots.CurveSpec{Name: s.Name, Title: s.Title, Caption: s.Caption, Points: c.Points, Crossover: c.Crossover,
		Threshold: c.Threshold}
}

// loadOf names a point: 8 tokens, but batch size 8.
func loadOf(p gain.PointGain) string {
	if strings.HasSuffix(p.Name, "s") {
		return quantity.Plain(p.Value) + " " + p.Name
	}
	return p.Name + " " + quantity.Plain(p.Value)
}

func gainSpec(c *source.Campaign) plots.GainSpec {
	s := plots.GainSpec{Name: "gain", Unit: "pair", Gain: c.Gain, Threshold: c.Threshold,
		Pairs: slices.DeleteFunc(slices.Clone(c.Pairs), func(p gain.Pair) bool { return p.Arm != "" })}
	measured := quantity.Count(c.Gain.N, "complete pair") + " of launches"
	launches := slices.DeleteFunc(slices.Clone(c.Launches), func(l gain.LaunchGain) bool { return l.Arm != "" })
	switch {
	case len(launches) == 1: // whose blocks are what is known of its noise
		s.Unit, s.Pairs = "block", nil
		for i, b := range launches[0].Blocks {
			s.Pairs = append(s.Pairs, gain.Pair{Pair: i, Gain: b.Gain, Status: gain.PairComplete})
		}
		measured = "one launch, with a widened interval"
	case len(launches) > 0:
		s.Unit, measured = "launch", quantity.Count(c.Gain.N, "launch")+", both arms in each"
	}
	s.Caption = fmt.Sprintf("Gain of %s over %s; %s; %s.", c.Called(gain.Perfect).Label(), c.Called(gain.Normal).Label(),
		measured, metricLabel(c.Metric))
	s.Title = gains(s.Pairs, s.Unit)
	if c.Campaign.Left > 0 { // the figure may be shown without its page
		s.Title = fmt.Sprintf("No verdict: unfinished, %s left", quantity.Count(c.Campaign.Left, "launch"))
	}
	return s
}

// gains says how many pairs gain, and how much.
func gains(pairs []gain.Pair, unit string) string {
	var all []router.Number
	more := 0
	for _, p := range pairs {
		if p.Status == gain.PairComplete && p.Gain.Defined() {
			if all = append(all, p.Gain); p.Gain > 0 {
				more++
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s gain: %s to %s", more, quantity.Count(len(all), unit), quantity.Change(slices.Min(all)),
		quantity.Change(slices.Max(all)))
}

// metricLabel names a metric with its unit and, where known, how it is computed.
func metricLabel(m gain.Metric) string {
	text := fmt.Sprintf("%s (%s)", m.Name, m.Unit)
	if m.Definition != "" {
		text += ": " + strings.TrimPrefix(m.Definition, m.Name+"/")
	}
	return text
}

// where shows in which phases, layers and steps the time goes.
func (p *program) where() section {
	s := section{ID: "where", Title: "Where does the time go?", Short: "Time", tableGroup: "where"}
	s.Answer = strings.Join(p.lines(isCompared), "\n")
	if len(p.arms) > 0 {
		phases := plots.PhaseTimes(p.arms...)
		if step := p.arms[0].Trace.Bound.StepNS; step.Defined() {
			s.keyed(quantity.Duration(step), "step of "+p.arms[0].Name)
		}
		s.Answer = cmp.Or(s.Answer, phases.Title)
		s.addFigure(plots.PhaseStacks(phases))
		p.addLongSteps(&s)
		s.addFigure(plots.BarChart(plots.LayerLosses(p.arms...)))
		if p.ranks() > 1 {
			s.addFigure(plots.StepLines(plots.StepTimes(p.arms...)))
		}
	}
	for _, in := range p.of(isCompared) {
		if in.Compared.Comparable && len(p.arms) == 0 {
			s.addFigure(plots.PhaseStacks(comparedPhases(in.Compared)))
		}
	}
	return s
}

// comparedPhases sets the mean step of the two sides side by side.
func comparedPhases(c *diff.Comparison) plots.StackSpec {
	names := c.Builds.Names()
	s := plots.StackSpec{
		Name: "compared-phases", Per: "per step",
		Names:   []string{names[0].Label(), names[1].Label()},
		Caption: "Mean over ranks and steps of kernel time by phase, of the steps that the comparison counts.",
	}
	k := plots.Stack{Ranks: []int{0, 1}, Work: make([][]float64, 2), Transfer: make([]float64, 2),
		Wait: []float64{math.NaN(), math.NaN()}, Idle: make([]float64, 2)}
	for _, phase := range c.Phases {
		for side, ns := range []router.Number{phase.NormalNS, phase.PerfectNS} {
			if phase.Collective {
				k.Transfer[side] += ns.Float64()
			} else {
				k.Work[side] = append(k.Work[side], ns.Float64())
			}
		}
		if !phase.Collective {
			s.Phases = append(s.Phases, string(phase.Phase))
		}
	}
	s.Arms = []plots.Stack{k}
	s.Title = fmt.Sprintf("Kernel time per step: %s with %s, %s with %s", quantity.Duration(c.Step.NormalNS), s.Names[0],
		quantity.Duration(c.Step.PerfectNS), s.Names[1])
	return s
}

// longStepShare is the part of the collective time in one step from which on the page
// names the step: it holds more than all others together.
const longStepShare = 0.5

// addLongSteps names the arms of which one step holds most of the collective time.
func (p *program) addLongSteps(s *section) {
	for _, a := range p.arms {
		if step, part := a.PerStep.LongestCollectives(); part > longStepShare {
			s.addText(fmt.Sprintf(
				"Step %d alone holds %s of the collective time of %s. Ranks that enter a capture at different times wait for "+
					"each other once; routing does not change that.", step, quantity.Percent(part), a.Name))
		}
	}
}

// ranks is the number of ranks of the arm that has most.
func (p *program) ranks() (n int) {
	for _, a := range p.arms {
		n = max(n, len(a.Trace.Ranks))
	}
	return n
}

// imbalance shows how uneven ranks, layers and experts are.
func (p *program) imbalance() section {
	s := section{ID: "imbalance", Title: "How uneven are ranks, layers and experts?", Short: "Imbalance",
		tableGroup: "imbalance"}
	s.Answer = strings.Join(append(p.lines(isTrace), p.lines(isCounts)...), "\n")
	for _, in := range slices.Concat(p.of(isTrace), p.of(isCounts)) {
		s.keyed(number(in.answer, "worst"))
	}
	s.addFigure(plots.BarChart(plots.LayerLoads(p.layerLoads()...)))
	s.addFigure(plots.HeatMap(plots.RecordedLoads(p.recorded()...)))
	if len(p.arms) == 0 {
		return s
	}
	if slices.ContainsFunc(p.of(isCompared), func(in Input) bool { return in.Compared.UnequalSteps() }) {
		s.addText("These figures are over each arm's own steps, which hold different numbers of tokens: compare ranks and " +
			"layers within an arm. Comparisons of the arms are over steps with equally many tokens, where there are any.")
	}
	heats := []plots.HeatSpec{plots.ExpertTimes(p.arms...), plots.ExpertLoads(p.arms...)}
	if p.ranks() > 1 {
		for _, spec := range []plots.BarSpec{plots.RankTimes(p.arms...), plots.RankLoads(p.arms...)} {
			s.addFigure(plots.BarChart(spec))
		}
		heats = append([]plots.HeatSpec{plots.RankLayerTimes(p.arms...)}, heats...)
	}
	for _, spec := range heats {
		s.addFigure(plots.HeatMap(spec))
	}
	return s
}

// mostMaps is how many records of expert statistics are drawn expert by expert; of more, the one
// that the page leads with is.
const mostMaps = 3

// recorded lists the loads of expert statistics, those of each phase apart.
func (p *program) recorded() (out []plots.Recorded) {
	inputs := p.of(isCounts)
	if lead := p.lead(); len(inputs) > mostMaps && lead.Counts != nil {
		inputs = []Input{lead}
	}
	for _, in := range inputs {
		at := map[string]int{}
		for _, l := range in.Counts.Loads {
			name := recordName(l.Source, string(l.Phase))
			if _, seen := at[name]; !seen {
				at[name], out = len(out), append(out, plots.Recorded{Name: name, Layers: map[int][]int64{}})
			}
			out[at[name]].Layers[l.Layer] = l.Slots
		}
	}
	if len(out) == 1 {
		out[0].Name = plots.OneTrace
	}
	return out
}

// timeLoad shows whether time follows load.
func (p *program) timeLoad() section {
	s := section{ID: "time-load", Title: "Does time follow load?", Short: "Time and load"}
	if len(p.arms) == 0 {
		return s
	}
	spec := plots.TimeAgainstLoad(p.arms...)
	s.addFigure(plots.Scatter(spec))
	s.Answer = spec.Title
	if len(s.Blocks) == 0 {
		s.Answer = "Unknown: no load is recorded beside the traces. Without it, uneven time may have causes other than " +
			"routing: give the engine's expert counts of the same run (--counts-normal, --counts-perfect)."
	}
	return s
}

// data says whether the data is whole and balance is proved.
func (p *program) data() section {
	s := section{ID: "data", Title: "Is the data complete, and is balance proved?", Short: "Data", tableGroup: "data"}
	var said []string
	for _, in := range p.of(isCampaign) {
		said = append(said, proofSentence(in.Campaign))
	}
	for _, in := range p.of(isCache) {
		said = append(said, in.answer.Line)
	}
	for _, a := range p.arms {
		s.keyed(quantity.Percent(a.Trace.Coverage.LayerShare), "")
		said = append(said, fmt.Sprintf("%s of the GPU time of %s is attributed to layers.",
			quantity.Percent(a.Trace.Coverage.LayerShare), a.Name))
	}
	if len(p.arms) > 0 && len(p.of(isCampaign)) > 0 {
		said = append(said, "Campaign and traces were recorded separately and are assumed to be the same program.")
	}
	s.Answer = strings.Join(said, " ")
	for _, in := range p.Inputs {
		if notes := p.beyondChips(in); len(notes) > 0 {
			s.Answer = cmp.Or(s.Answer, quantity.Count(len(notes), "note")+" on the data.")
			s.Blocks = append(s.Blocks, block{Text: "Notes on " + p.called(in) + ":", Notes: notes})
		}
	}
	return s
}

// beyondChips are the notes on an input that do not stand beside the answer.
func (p *program) beyondChips(in Input) []string {
	return slices.DeleteFunc(slices.Clone(in.Notes), func(note string) bool {
		return slices.ContainsFunc(p.Answer.Caveats, func(c answer.Caveat) bool {
			return strings.HasSuffix(note, c.String())
		})
	})
}

// layerLoads are the loads of the busiest ranks of the record that the page leads with, those of
// each phase apart.
func (p *program) layerLoads() (out []plots.LayerLoad) {
	lead := p.lead()
	if lead.Counts == nil {
		return nil
	}
	at := map[string]int{}
	for _, r := range lead.Counts.Imbalance {
		if r.Level != router.LevelRank {
			continue
		}
		name := recordName(r.Source, r.Phase)
		if _, seen := at[name]; !seen {
			at[name], out = len(out), append(out, plots.LayerLoad{Name: name})
		}
		out[at[name]].Rows = append(out[at[name]].Rows, r.Row)
	}
	if len(out) == 1 {
		out[0].Name = plots.OneTrace
	}
	return out
}

// recordName is a short name of expert statistics of a phase.
func recordName(source, phase string) string {
	return shorten(strings.TrimSpace(filepath.Base(source)+" "+phase), 40)
}

func proofSentence(c *source.Campaign) string {
	grades := map[gain.Grade]int{}
	for _, proof := range c.Proof {
		grades[proof.Grade]++
	}
	switch broken := checked(c, gain.Fail); {
	case len(broken) > 0:
		return fmt.Sprintf("No: the campaign fails its checks (%s), so its gain decides nothing.",
			strings.Join(broken, ", "))
	case isBuilds(c):
		return passed(c) + "; two builds are compared, so there is no balance to prove."
	case len(c.Proof) == 0 || grades[gain.None] > 0:
		return "The routing of the arms is not proved."
	case grades[gain.Claimed] > 0:
		return fmt.Sprintf("%s; balance is claimed (%s), not measured.", passed(c), quantity.Count(grades[gain.Claimed],
			"claim"))
	}
	return fmt.Sprintf("%s, and each arm's routing was measured (%s).", passed(c),
		quantity.Count(len(c.Proof), "proof"))
}

// passed says that no check fails, and which of them warn.
func passed(c *source.Campaign) string {
	if warned := checked(c, gain.Warn); len(warned) > 0 {
		return fmt.Sprintf("No check of the campaign fails (warnings: %s)", strings.Join(warned, ", "))
	}
	return "The campaign passes its checks"
}

// checked names the checks with a status.
func checked(c *source.Campaign, status gain.CheckStatus) (names []string) {
	for _, check := range c.Checks {
		if name := strings.ReplaceAll(check.Name, "_", " "); check.Status == status && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
