package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/diff"
	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/plots"
	"github.com/moebalance/moebalance/router"
)

// where answers whether time goes to compute or to communication, and which
// layers lose most to their slowest rank.
func (p Page) where() (section, error) {
	s := section{ID: "where", Title: "Compute or communication?"}
	if len(p.arms) == 0 {
		for _, c := range p.compared {
			s.addComparison(c)
		}
		return s, nil
	}
	phases := plots.PhaseTimes(p.arms...)
	s.Answer = p.whereSentence(phases)
	if err := s.addFigure(plots.PhaseStacks(phases)); err != nil {
		return s, err
	}
	s.addList(p.lopsided())
	byPhase := phaseTable(phases)
	byPhase.Folded = len(p.compared) > 0 // the comparison has these rows and more
	s.addTable(byPhase)
	for _, c := range p.compared {
		s.addComparison(c)
	}
	if err := s.addFigure(plots.BarChart(plots.LayerLosses(p.arms...))); err != nil {
		return s, err
	}
	if p.ranks() > 1 {
		if err := s.addFigure(plots.StepLines(plots.StepTimes(p.arms...))); err != nil {
			return s, err
		}
	}
	s.addTable(p.lossTable())
	s.addTable(p.kernelTable())
	return s, nil
}

func (s *section) addComparison(c diff.Comparison) {
	s.addTable(phaseChanges(c))
	s.addTable(rankSpeeds(c))
	s.addTable(lossChanges(c))
}

// phaseTable is the figure's numbers as means over ranks, without what no arm
// has.
func phaseTable(spec plots.StackSpec) table {
	t := table{Caption: fmt.Sprintf("Time %s by phase, mean over %s (observed)", spec.Per, spec.Over()), Columns: text("phase")}
	means := spec.Means()
	for _, m := range means {
		t.Columns = append(t.Columns, numeric(m.Name)...)
	}
	line := func(name string, of func(plots.Means) float64) {
		cells, some := row(name), false
		for _, m := range means {
			ns := of(m)
			some = some || ns > 0
			cells = append(cells, row(plots.Duration(ns))...)
		}
		if some {
			t.Rows = append(t.Rows, cells)
		}
	}
	for i, phase := range spec.Phases {
		line(phase, func(m plots.Means) float64 { return m.Work[i] })
	}
	line("collectives", func(m plots.Means) float64 { return m.Collective })
	line("of which waiting for the last rank", func(m plots.Means) float64 { return m.Wait })
	return t
}

// whereSentence says what each arm loses to its slowest ranks, or, where no arm
// has ranks to wait for, what the phases show. Time hidden in graphs is neither.
func (p Page) whereSentence(phases plots.StackSpec) string {
	var out []string
	for _, a := range p.arms {
		if hidesGraphs(a.Trace) {
			out = append(out, fmt.Sprintf("Not known for %s: whole CUDA graphs hide the kernels inside them, and only what ran outside is shown.", a.Name))
		} else if lost, mean := imbalance.TotalLoss(a.Stragglers()); lost.Defined() {
			out = append(out, fmt.Sprintf("%s loses %s per step to its slowest ranks, %s of the mean rank's compute time.", a.Name, duration(lost), share(lost/mean)))
		}
	}
	if len(out) == 0 {
		return phases.Alt
	}
	return strings.Join(out, " ")
}

// lopsidedShare is the part of the collective time in one step, of at least
// three, that names an arm: the step then holds more than all others together.
const lopsidedShare = 0.5

// lopsided names the arms of which one step holds most of the collective time,
// as when ranks start a capture at different moments.
func (p Page) lopsided() (out []string) {
	for _, a := range p.arms {
		total, bySteps := int64(0), map[router.Whole]int64{}
		counted := a.Trace.Times(nil).StepsOf(imbalance.Counts)
		for _, c := range a.Trace.Cells {
			if c.Step.Defined() && slices.Contains(counted, int(c.Step)) {
				total += c.CollectiveNS
				bySteps[c.Step] += c.CollectiveNS
			}
		}
		for _, step := range slices.Sorted(maps.Keys(bySteps)) {
			if part := router.Number(bySteps[step]) / router.Number(total); len(bySteps) > 2 && part > lopsidedShare {
				out = append(out, fmt.Sprintf("Step %d alone holds %s of the collective time of %s: ranks that reach a capture at different moments wait once for each other, and no routing changes that.", step, share(part), a.Name))
			}
		}
	}
	return out
}

func (p Page) lossTable() table {
	t := table{
		Caption: "Straggler loss by layer, per step, over all ranks of each arm (observed compute, collectives left out)", Folded: true,
		Columns: append(text("arm"), numeric("layer", "loss", "mean rank", "slowest rank", "worst rank", "slowest in steps", "of")...),
	}
	for _, a := range p.arms {
		sorted := slices.Clone(a.Stragglers())
		slices.SortStableFunc(sorted, func(a, b imbalance.Straggler) int { return cmp.Compare(b.LossNS, a.LossNS) })
		for _, l := range sorted {
			t.Rows = append(t.Rows, row(a.Name, l.Layer, duration(l.LossNS), duration(l.MeanNS), duration(l.MaxNS), l.WorstRank, l.WorstSteps, l.Steps))
		}
	}
	return t
}

// kernelTable lists each arm's kernels with the most time.
func (p Page) kernelTable() table {
	t := table{
		Caption: "The kernels with the most time (observed, all ranks)", Folded: true,
		Columns: slices.Concat(text("arm", "phase"), numeric("total", "share", "instances", "median"), text("kernel")),
	}
	for _, a := range p.arms {
		sorted := slices.Clone(a.Trace.Kernels)
		slices.SortStableFunc(sorted, func(a, b nsys.KernelStat) int {
			return cmp.Or(cmp.Compare(b.TotalNS, a.TotalNS), cmp.Compare(a.Name, b.Name))
		})
		for _, k := range sorted[:min(len(sorted), shownRows)] {
			of := router.Number(float64(k.TotalNS) / float64(a.Trace.Coverage.GPUNS))
			t.Rows = append(t.Rows, row(a.Name, string(k.Phase), duration(router.Number(k.TotalNS)), share(of), k.Instances, duration(k.MedianNS), shorten(k.Name, 90)))
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
