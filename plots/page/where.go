package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/compare/nsys/wait"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// where answers whether time goes to compute or to communication, and which
// layers lose most to their slowest rank.
func (p Page) where() section {
	s := section{ID: "where", Title: "Compute or communication?"}
	if len(p.arms) == 0 {
		for _, c := range p.compared {
			s.addComparison(c)
		}
		return s
	}
	phases := plots.PhaseTimes(p.arms...)
	s.Answer = p.lossSentences()
	if s.Answer == "" {
		s.Answer = phases.Alt
	}
	s.addFigure(plots.PhaseStacks(phases))
	s.addList(p.longSteps())
	s.addTable(p.waitTable())
	byPhase := phaseTable(p.arms, phases.Per)
	byPhase.Folded = len(p.compared) > 0 // the comparison has these rows and more
	s.addTable(byPhase)
	for _, c := range p.compared {
		s.addComparison(c)
	}
	s.addFigure(plots.BarChart(plots.LayerLosses(p.arms...)))
	if p.ranks() > 1 {
		s.addFigure(plots.StepLines(plots.StepTimes(p.arms...)))
	}
	s.addTable(p.lossTable())
	s.addTable(p.kernelTable())
	return s
}

func (s *section) addComparison(c diff.Comparison) {
	s.addTable(phaseChanges(c))
	s.addTable(rankSpeeds(c))
	s.addTable(lossChanges(c))
}

// phaseTable is the figure's numbers as means over ranks, without rows of no time.
func phaseTable(arms []plots.Arm, per string) table {
	means, over := plots.MeanPhases(arms)
	t := table{Caption: fmt.Sprintf("Time %s by phase, mean over %s (observed)", per, over), Columns: columns("phase")}
	for _, a := range arms {
		t.Columns = append(t.Columns, column{a.Name, true})
	}
	line := func(name string, of func(perstep.Phases) float64) {
		cells, some := []any{name}, false
		for _, m := range means {
			some = some || of(m) > 0
			cells = append(cells, quantity.Duration(of(m)))
		}
		if some {
			t.add(cells...)
		}
	}
	for _, phase := range nsys.Phases() {
		line(string(phase), func(m perstep.Phases) float64 { return m.Work[phase] })
	}
	line("collectives", func(m perstep.Phases) float64 { return m.Collectives })
	line("of which waiting for the last rank", func(m perstep.Phases) float64 { return m.Wait })
	return t
}

// lossSentences say by how much the slowest ranks of each arm compute longer, and for
// whom its ranks wait; empty where no arm has several ranks. Time hidden in graphs is
// unknown.
func (p Page) lossSentences() string {
	var out []string
	for _, a := range p.arms {
		if hidesGraphs(a.Trace) {
			out = append(out, fmt.Sprintf("Unknown for %s: CUDA graphs were traced as a whole, so only kernels outside them are shown.", a.Name))
		} else if lost, mean := imbalance.TotalLoss(a.Trace.Stragglers); lost.Defined() {
			out = append(out, fmt.Sprintf("Straggler loss of %s is %s per step, %s of the mean rank's compute time.", a.Name, quantity.Duration(lost), quantity.Percent(lost/mean)))
		}
		if w := a.Trace.Waits; len(w) > 0 {
			out = append(out, fmt.Sprintf("Its ranks wait longest in %s.", w[0].Sentence(fmt.Sprintf("layer %d", w[0].Layer))))
		}
	}
	return strings.Join(out, " ")
}

// longStepShare is the part of the collective time in one step from which on the page
// names the step: it holds more than all others together.
const longStepShare = 0.5

// longSteps name the arms of which one step holds most of the collective time.
func (p Page) longSteps() (out []string) {
	for _, a := range p.arms {
		if step, part := a.PerStep.LongestCollectives(); part > longStepShare {
			out = append(out, fmt.Sprintf("Step %d alone holds %s of the collective time of %s. Ranks that enter a capture at different times wait for each other once; routing does not change that.", step, quantity.Percent(part), a.Name))
		}
	}
	return out
}

// waitTable is who waits for whom behind the experts of each layer, and why.
func (p Page) waitTable() table {
	t := table{
		Caption: "Waiting at the collective behind the experts, per step: last − mean arrival of the ranks, and its parts: last − mean rank since their last meeting (95 % interval over steps)",
		Columns: columns("arm", "#layer", "#last rank", "#in steps", "#most expert time", "#wait"),
	}
	for _, part := range (wait.Wait{}).List() {
		t.Columns = append(t.Columns, column{part.Name, true})
	}
	within := func(ns router.Number, i wait.Interval) string {
		if !i.Low.Defined() {
			return quantity.Duration(ns)
		}
		return fmt.Sprintf("%s (%s to %s)", quantity.Duration(ns), quantity.Duration(i.Low), quantity.Duration(i.High))
	}
	for _, a := range p.arms {
		for _, w := range a.Trace.Waits[:min(len(a.Trace.Waits), shownRows)] {
			cells := []any{a.Name, w.Layer, w.LastRank, fmt.Sprintf("%d of %d", w.LastSteps, w.Steps), w.MostExpertRank, within(w.WaitNS, w.Intervals.Wait)}
			for _, part := range w.List() {
				cells = append(cells, within(part.NS, part.Interval))
			}
			t.add(cells...)
		}
	}
	return t
}

func (p Page) lossTable() table {
	t := table{
		Caption: "Straggler loss by layer, per step, over all ranks of each arm (observed compute without collectives)", Folded: true,
		Columns: columns("arm", "#layer", "#loss", "#mean rank", "#slowest rank", "#worst rank", "#slowest in steps", "#of"),
	}
	for _, a := range p.arms {
		sorted := slices.Clone(a.Trace.Stragglers)
		slices.SortStableFunc(sorted, func(a, b imbalance.Straggler) int { return cmp.Compare(b.LossNS, a.LossNS) })
		for _, l := range sorted {
			t.add(a.Name, l.Layer, quantity.Duration(l.LossNS), quantity.Duration(l.MeanNS), quantity.Duration(l.MaxNS), l.WorstRank, l.WorstSteps, l.Steps)
		}
	}
	return t
}

// kernelTable lists each arm's kernels with the most time.
func (p Page) kernelTable() table {
	t := table{
		Caption: "Kernels with the most time (observed, all ranks)", Folded: true,
		Columns: columns("arm", "phase", "#total", "#share", "#instances", "#median", "kernel"),
	}
	for _, a := range p.arms {
		sorted := slices.Clone(a.Trace.Kernels)
		slices.SortStableFunc(sorted, func(a, b nsys.KernelStat) int {
			return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Name, b.Name))
		})
		for _, k := range sorted[:min(len(sorted), shownRows)] {
			of := router.Number(float64(k.TotalNS) / float64(a.Trace.Coverage.GPUNS))
			t.add(a.Name, string(k.Phase), quantity.Duration(router.Number(k.TotalNS)), quantity.Percent(of), k.Instances, quantity.Duration(k.MedianNS), shorten(k.Name, 90))
		}
	}
	return t
}

// shorten keeps the start of a long name.
func shorten(name string, most int) string {
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return name
}
