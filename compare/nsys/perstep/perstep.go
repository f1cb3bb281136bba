// Package perstep averages a trace over its steps, by rank, layer, phase and expert:
// the numbers that figures and the page show, which compute none themselves.
//
// Times are means over the steps that count (imbalance.New) unless a comment says
// otherwise, in nanoseconds. Load is the mean over the recorded steps, which need not
// be those of the trace, in slots. NaN is unknown, which is not zero: a rank without
// a kernel is unknown, not idle.
package perstep

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
)

// Trace is a trace with its times by step.
type Trace struct {
	Ranks []int // that the trace names or has time of, ascending
	Times *imbalance.Times

	source *nsys.Trace
	at     map[int]int // ranks by number
	steps  []int       // of each rank, whether they count or not
}

// Of adds up the cells of a trace.
func Of(source *nsys.Trace) *Trace {
	t := &Trace{Times: source.Times(nil), source: source, at: map[int]int{}}
	t.Ranks = slices.Clone(t.Times.Ranks)
	for _, r := range source.Ranks {
		t.Ranks = append(t.Ranks, r.Rank)
	}
	for _, e := range source.Experts {
		t.Ranks = append(t.Ranks, e.Rank)
	}
	slices.Sort(t.Ranks)
	t.Ranks = slices.Compact(t.Ranks)
	for i, r := range t.Ranks {
		t.at[r] = i
	}
	seen := make([]map[router.OptInt]bool, len(t.Ranks))
	for _, c := range source.Cells {
		at := t.at[c.Rank]
		if seen[at] == nil {
			seen[at] = map[router.OptInt]bool{}
		}
		if c.Step.Defined() {
			seen[at][c.Step] = true
		}
	}
	for _, s := range seen {
		t.steps = append(t.steps, max(1, len(s)))
	}
	return t
}

// Marked reports whether the capture marks steps; if not, all of it stands as one.
func (t *Trace) Marked() bool { return !t.Times.Unmarked && len(t.Times.Steps) > 0 }

// unknowns is a list of n unknown values.
func unknowns(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }

// add adds to a sum that may still be unknown.
func add(sum *float64, v float64) {
	if math.IsNaN(*sum) {
		*sum = 0
	}
	*sum += v
}

// layerExperts is, by rank, the time of a layer's expert kernels.
func (t *Trace) layerExperts(l *imbalance.Layer) []float64 {
	times := unknowns(len(t.Ranks))
	for i, rank := range l.Ranks {
		sum := 0.0
		for _, step := range l.Experts {
			sum += step[i]
		}
		if sum > 0 {
			times[t.at[rank]] = sum / float64(len(l.Experts))
		}
	}
	return times
}

// ExpertsByRank is the time of each rank's expert kernels, added over layers.
func (t *Trace) ExpertsByRank() []float64 {
	times := unknowns(len(t.Ranks))
	for _, l := range t.Times.Layers {
		for r, ns := range t.layerExperts(l) {
			if !math.IsNaN(ns) {
				add(&times[r], ns)
			}
		}
	}
	return times
}

// ExpertsByLayer is the same by layer; layers without any are missing.
func (t *Trace) ExpertsByLayer() map[int][]float64 {
	byLayer := map[int][]float64{}
	for _, l := range t.Times.Layers {
		if times := t.layerExperts(l); l.Number.Defined() && floats.Count(math.IsNaN, times) < len(times) {
			byLayer[int(l.Number)] = times
		}
	}
	return byLayer
}

// Phases is the time of one rank by phase. Work holds no time in collectives. Wait
// and transfer are the parts of a collective before and after its last rank arrived;
// both are unknown where the ranks' clocks could not be brought together.
type Phases struct {
	Work                        map[nsys.Phase]float64
	Collectives, Wait, Transfer float64
}

// Phases is the time of each rank by phase; nil work for a rank without any.
func (t *Trace) Phases() []Phases {
	byRank := make([]Phases, len(t.Ranks))
	for i := range byRank {
		byRank[i] = Phases{nil, math.NaN(), math.NaN(), math.NaN()}
	}
	counted := map[router.OptInt]bool{}
	for _, s := range t.Times.StepsOf(imbalance.Counts) {
		counted[router.OptInt(s)] = true
	}
	n := float64(len(counted))
	for _, c := range t.source.Cells {
		p := &byRank[t.at[c.Rank]]
		if !counted[c.Step] {
			continue
		}
		if p.Work == nil {
			p.Work, p.Collectives = map[nsys.Phase]float64{}, 0
		}
		phase := c.Phase
		if !slices.Contains(nsys.Phases(), phase) {
			phase = nsys.PhaseUnknown
		}
		p.Work[phase] += float64(c.TotalNS-c.CollectiveNS) / n
		p.Collectives += float64(c.CollectiveNS) / n
	}
	split := map[int]bool{}
	for _, c := range t.source.Collectives {
		if r, ok := t.at[c.Rank]; ok && byRank[r].Work != nil {
			if p := &byRank[r]; !split[r] {
				split[r], p.Wait, p.Transfer = true, 0, 0
			}
			byRank[r].Wait += c.CountedWaitNS.Float64() / n // NaN stays NaN
			byRank[r].Transfer += c.CountedTransferNS.Float64() / n
		}
	}
	return byRank
}

// LongestCollectives is the step that counts with the most time in collectives, and
// its share of that of all of them; undefined for fewer than three steps.
func (t *Trace) LongestCollectives() (step router.OptInt, share router.Number) {
	byStep, total := map[router.OptInt]int64{}, int64(0)
	for _, s := range t.Times.Steps {
		if s.Excluded == imbalance.Counts && s.Number.Defined() {
			byStep[s.Number] = 0
		}
	}
	for _, c := range t.source.Cells {
		if _, counts := byStep[c.Step]; counts {
			byStep[c.Step] += c.CollectiveNS
			total += c.CollectiveNS
		}
	}
	if len(byStep) < 3 || total <= 0 {
		return router.NoID, router.Undefined()
	}
	step = slices.MinFunc(slices.Collect(maps.Keys(byStep)), func(a, b router.OptInt) int {
		return cmp.Or(cmp.Compare(byStep[b], byStep[a]), cmp.Compare(a, b))
	})
	return step, router.Number(byStep[step]) / router.Number(total)
}

// MeanPhases is the mean over ranks of the times by phase, of each trace, and the
// ranks it is over: those that every trace has, so that a rank of which one arm has
// no trace does not pass for a difference between the arms.
func MeanPhases(traces ...*Trace) (means []Phases, ranks []int) {
	traced := map[int]int{}
	all := make([][]Phases, len(traces))
	for i, t := range traces {
		all[i] = t.Phases()
		for r, p := range all[i] {
			if p.Work != nil {
				traced[t.Ranks[r]]++
			}
		}
	}
	maps.DeleteFunc(traced, func(_, n int) bool { return n < len(traces) })
	ranks = slices.Sorted(maps.Keys(traced))
	for i, t := range traces {
		mean := Phases{Work: map[nsys.Phase]float64{}}
		for _, rank := range ranks {
			p, n := all[i][t.at[rank]], float64(len(ranks))
			for phase, ns := range p.Work {
				mean.Work[phase] += ns / n
			}
			mean.Collectives += p.Collectives / n
			mean.Wait += p.Wait / n
			mean.Transfer += p.Transfer / n
		}
		means = append(means, mean)
	}
	return means, ranks
}

// Expert is one expert on one rank. Its time is the mean over all steps of the rank.
type Expert struct {
	Rank, Expert int
	Layer        router.OptInt
	TimeNS       float64
	Slots        float64
}

// Experts are those of the trace, in its order.
func (t *Trace) Experts() []Expert {
	steps := t.recordedSteps()
	experts := make([]Expert, len(t.source.Experts))
	for i, e := range t.source.Experts {
		experts[i] = Expert{e.Rank, e.Expert, e.Layer, float64(e.TotalNS) / float64(t.steps[t.at[e.Rank]]), math.NaN()}
		if e.Known && steps[e.Layer] > 0 {
			experts[i].Slots = float64(e.Slots) / steps[e.Layer]
		}
	}
	return experts
}

// recordedSteps are the steps over which each layer's slots were counted. A layer is
// missing where no load is recorded.
func (t *Trace) recordedSteps() map[router.OptInt]float64 {
	steps := map[router.OptInt]float64{}
	for _, s := range t.source.Imbalance {
		if s.Level == router.LevelExpert && s.Quantity == imbalance.Load {
			steps[s.Layer] = float64(s.Steps)
		}
	}
	return steps
}

// Load is the slots of each rank, added over layers, and its floor: the least that
// the busiest rank can hold when the slots of the ranks that are known are spread
// over these as whole slots, layer by layer: Σ over layers of ⌈slots/ranks⌉.
func (t *Trace) Load() (slots []float64, floor float64) {
	slots, floor = unknowns(len(t.Ranks)), math.NaN()
	layers := map[router.OptInt]int64{}
	for i, e := range t.Experts() {
		if !math.IsNaN(e.Slots) {
			add(&slots[t.at[e.Rank]], e.Slots)
			layers[e.Layer] += int64(t.source.Experts[i].Slots)
		}
	}
	n, steps := len(slots)-floats.Count(math.IsNaN, slots), t.recordedSteps()
	for _, layer := range slices.Sorted(maps.Keys(layers)) {
		if f := router.Floor(layers[layer], n); f.Defined() {
			add(&floor, f.Float64()*float64(layers[layer])/float64(n)/steps[layer])
		}
	}
	return slots, floor
}

// Points are time against load, one point for each layer and expert or rank.
type Points struct {
	Slots, TimeNS []float64
	// Windows says that each recorded step adds up an unknown number of forward
	// passes, so that no time per slot follows.
	Windows bool
	Fit     Fit
}

// Fit is the least-squares line of time over load. All are unknown unless there are
// three points of which neither the loads nor the times are all the same.
type Fit struct {
	SlopeNS     float64 // per slot
	InterceptNS float64 // at no slots
	R2          float64 // share of the variance of time that load explains, in [0, 1]
}

// ObservedByExpert reports that every expert with a recorded load has kernels of its
// own. Allocated times follow load by construction and prove nothing.
func (t *Trace) ObservedByExpert() bool {
	return !slices.ContainsFunc(t.source.Experts, func(e nsys.ExpertStat) bool {
		return e.Known &&
			e.Basis != imbalance.Observed
	})
}

// Inferred reports that the layers of the steps that count were found from the repetition of
// kernels, in part at least.
func (t *Trace) Inferred() bool {
	s := t.source.Structure
	return s != nil && s.Layers > 0 && (!s.Beside || imbalance.BasisOf(t.source.Imbalance) == imbalance.Inferred)
}

// TimeAgainstLoad has a point for each expert, or else for each rank. A rank and
// layer whose load is known only in part, or that has no expert kernel, is left out.
func (t *Trace) TimeAgainstLoad(byExpert bool) Points {
	p := Points{Windows: slices.ContainsFunc(t.source.Warnings,
		func(w router.Warning) bool { return w.Code == "counts_window" })}
	note := func(slots, ns float64) {
		if !math.IsNaN(slots) && !math.IsNaN(ns) {
			p.Slots, p.TimeNS = append(p.Slots, slots), append(p.TimeNS, ns)
		}
	}
	if byExpert {
		for _, e := range t.Experts() {
			note(e.Slots, e.TimeNS)
		}
	} else {
		slots, times := map[int]map[int]float64{}, t.ExpertsByLayer() // by layer
		for _, e := range t.Experts() {
			if slots[int(e.Layer)] == nil {
				slots[int(e.Layer)] = map[int]float64{}
			}
			slots[int(e.Layer)][e.Rank] += e.Slots // NaN stays NaN
		}
		for _, layer := range slices.Sorted(maps.Keys(slots)) {
			for r, rank := range t.Ranks {
				if load, ok := slots[layer][rank]; ok && times[layer] != nil {
					note(load, times[layer][r])
				}
			}
		}
	}
	p.Fit = fit(p.Slots, p.TimeNS)
	return p
}

func fit(slots, times []float64) Fit {
	f := Fit{math.NaN(), math.NaN(), math.NaN()}
	if len(slots) < 3 || stat.Variance(slots, nil) == 0 || stat.Variance(times, nil) == 0 {
		return f
	}
	f.InterceptNS, f.SlopeNS = stat.LinearRegression(slots, times, nil, false)
	f.R2 = stat.RSquared(slots, times, nil, f.InterceptNS, f.SlopeNS)
	return f
}
