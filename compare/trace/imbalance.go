package trace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/router"
)

// Times are the compute times of the trace by step, layer and rank, of the cells that
// take lets in; nil takes all.
func (t *Trace) Times(take func(*Cell) bool) *imbalance.Times {
	if take == nil && t.times != nil {
		return t.times
	}
	var endedEarly []int // matters where no other step was recorded
	ended := func(w router.Warning) bool { return w.Code == EndedEarly }
	for _, e := range t.Exports {
		if t.Steps == "" && len(t.StepTimes) < 2 && slices.ContainsFunc(e.Warnings, ended) {
			endedEarly = append(endedEarly, e.Ranks...)
		}
	}
	return imbalance.New(func(yield func(imbalance.Sample) bool) {
		for i := range t.Cells {
			c := &t.Cells[i]
			if take != nil && !take(c) {
				continue
			}
			s := imbalance.Sample{Rank: c.Rank, Step: c.Step, Layer: c.Layer, Phase: string(c.Phase),
				Experts: c.Phase == PhaseExperts, TotalNS: c.TotalNS, CollectiveNS: c.CollectiveNS, BusyNS: c.BusyNS,
				GEMMNS: c.GEMMNS, GEMMs: c.GEMMs, Kind: c.Kind}
			if !yield(s) {
				return
			}
		}
	}, endedEarly...)
}

// warnMissingRanges warns where the ranges do not give steps or layers.
func (r *reduction) warnMissingRanges() {
	layered := slices.ContainsFunc(r.trace.Cells, func(c Cell) bool { return c.Layer.Defined() })
	r.judged = func(layer router.OptInt) bool { return layer.Defined() || !layered }
	if slices.ContainsFunc(r.ranks, func(p *rankEvents) bool { return len(p.Graphs) > 0 }) {
		return // the ranges may be there, and what ran inside them is hidden
	}
	if !slices.ContainsFunc(r.trace.Cells, func(c Cell) bool { return c.Step.Defined() }) {
		r.warn("no_steps", "")
	}
	switch ranks, overlap := r.otherLayers(); {
	case overlap: // no stages
		r.warn("ranks_differ", "", "why", "shared", "rank", ranks[0], "other", ranks[1])
	case len(ranks) > 0:
		r.warn("other_layers", "", "rank", ranks[1], "other", ranks[0])
	}
	if r.judged(NoID) {
		r.warn("no_layers", "")
	}
}

// otherLayers is the first two ranks that have different layers, nil if none have, and
// whether they have some in common, which stages of a pipeline have not.
func (r *reduction) otherLayers() (ranks []int, overlap bool) {
	layers := map[int]map[router.OptInt]bool{}
	for _, c := range r.trace.Cells {
		if c.Layer.Defined() {
			if layers[c.Rank] == nil {
				layers[c.Rank] = map[router.OptInt]bool{}
			}
			layers[c.Rank][c.Layer] = true
		}
	}
	for _, p := range r.ranks[1:] {
		if first := r.ranks[0].Rank.Rank; !maps.Equal(layers[first], layers[p.Rank.Rank]) {
			for layer := range layers[first] {
				overlap = overlap || layers[p.Rank.Rank][layer]
			}
			return []int{first, p.Rank.Rank}, overlap
		}
	}
	return nil, false
}

// imbalance fills Imbalance and Overall: per layer the time of the ranks
// in the phase experts, the time of the experts that have ranges of their own, and
// the recorded load.
func (r *reduction) imbalance() {
	times := r.trace.Times(nil)
	r.times, r.trace.times = times, times
	r.trace.Warnings = append(r.trace.Warnings, times.Warnings()...)
	r.placedExperts(times)
	r.stepTimes()
	r.judgeKinds()
	r.trace.Bound = times.Bound(times.StepNS(r.trace.WallTimes()))
	inferred := r.inferred(times.StepsOf(imbalance.Counts))
	for _, layer := range times.Judged() {
		if row, ok := layer.Row(r.options.Threshold); ok {
			if inferred {
				row.Basis = imbalance.Inferred
			}
			r.trace.Imbalance = append(r.trace.Imbalance, row)
		}
	}
	if r.trace.Doubt().Code == FusedExperts {
		r.withoutTimes()
	}
	r.expertImbalance(times.StepsOf(imbalance.Counts))
	r.trace.Imbalance = append(r.trace.Imbalance, r.options.Recorded.Imbalance...)
	slices.SortStableFunc(r.trace.Imbalance, func(a, b imbalance.Row) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(b.Level, a.Level), cmp.Compare(b.Quantity, a.Quantity))
	})
	for _, level := range []string{router.LevelRank, router.LevelExpert} {
		for _, quantity := range []string{imbalance.Time, imbalance.Load} {
			if s := imbalance.Summarize(r.trace.Imbalance, level, quantity); s.Layers > 0 {
				r.trace.Overall = append(r.trace.Overall, s)
			}
		}
	}
}

// withoutTimes takes back what rests on how long the experts of a rank took.
func (r *reduction) withoutTimes() {
	none := router.Undefined()
	r.trace.Imbalance = r.trace.Imbalance[:0]
	b := &r.trace.Bound
	b.Gain, b.Low, b.High, b.LossNS = none, none, none, none
	for i := range r.trace.StepKinds {
		r.trace.StepKinds[i].Time = imbalance.Summarize(nil, router.LevelRank, imbalance.Time)
	}
}

// expertTime is the time of one expert in one step of one layer, over all ranks.
type expertTime struct {
	location
	ns int64
}

// sumExperts lists the experts that own kernels, by layer, step and expert.
func (r *reduction) sumExperts() {
	ns := map[location]int64{}
	for g := range r.groups() {
		if g.at.Expert != NoID && g.ns > 0 && r.judged(router.OptInt(g.at.Layer)) {
			ns[location{Step: g.at.Step, Layer: g.at.Layer, Expert: g.at.Expert}] += g.ns
		}
	}
	for at, sum := range ns {
		r.expertTimes = append(r.expertTimes, expertTime{at, sum})
	}
	slices.SortFunc(r.expertTimes, func(a, b expertTime) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Expert, b.Expert))
	})
}

// expertImbalance is over the experts of expertParts, in the steps given.
func (r *reduction) expertImbalance(steps []int) {
	list := r.expertTimes
	if len(list) == 0 {
		return
	}
	experts := r.expertParts()
	times := make([]float64, len(experts))
	for len(list) > 0 {
		layer := list[0].Layer
		m := imbalance.NewLayerMean(router.OptInt(layer), router.LevelExpert, imbalance.Time, imbalance.Observed)
		for len(list) > 0 && list[0].Layer == layer {
			step := list[0].Step
			clear(times)
			for ; len(list) > 0 && list[0].Layer == layer && list[0].Step == step; list = list[1:] {
				at, _ := slices.BinarySearch(experts, int(list[0].Expert))
				times[at] += float64(list[0].ns)
			}
			if _, counts := slices.BinarySearch(steps, int(step)); counts {
				m.AddTime(times)
			}
		}
		if row := m.Row(r.options.Threshold, imbalance.NoNull(), experts); row.Steps > 0 {
			r.trace.Imbalance = append(r.trace.Imbalance, row)
		}
	}
}

// expertParts are the experts among which times are compared, in order: those that the recorded layout puts on
// the ranks, and without one those that own kernels and, where all ranks are there, the numbers between. One that
// never ran had no time.
func (r *reduction) expertParts() []int {
	held := r.options.Recorded.held(r.rankNumbers())
	all := len(held) == 0 && int(r.trace.World) <= len(r.ranks)
	for _, e := range r.expertTimes {
		held[int(e.Expert)] = true
	}
	experts := slices.Sorted(maps.Keys(held))
	if first, last := experts[0], experts[len(experts)-1]; all && last-first < maxParts {
		experts = experts[:0]
		for e := first; e <= last; e++ {
			experts = append(experts, e)
		}
	}
	return experts
}

// maxParts bounds the experts of a layer, far above any model.
const maxParts = 1 << 16
