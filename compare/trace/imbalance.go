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
	times := imbalance.New(func(yield func(*Cell) bool) {
		for i := range t.Cells {
			if c := &t.Cells[i]; (take == nil || take(c)) && !yield(c) {
				return
			}
		}
	})
	if take == nil {
		t.times = times
	}
	return times
}

// warnMissingRanges warns where the ranges do not give steps or layers, or ranks have different layers.
func (r *reduction) warnMissingRanges() {
	if r.trace.Hidden.Launches > 0 {
		return // the ranges may be there, and what ran inside them is hidden
	}
	if r.times.Unmarked || len(r.times.Steps) == 0 {
		r.warn("no_steps", "")
	}
	if !r.layered {
		r.warn("no_layers", "")
		return
	}
	for _, l := range r.times.Judged() {
		for _, rank := range r.times.Ranks {
			if !slices.Contains(l.Ranks, rank) {
				r.warn(ranksDiffer, "", "rank", l.Ranks[0], "other", rank)
				return
			}
		}
	}
}

// imbalance fills Imbalance and Overall: per layer the time of the ranks
// in the phase experts, the time of the experts that have ranges of their own, and
// the recorded load.
func (r *reduction) imbalance() {
	r.trace.Warnings = append(r.trace.Warnings, r.times.Warnings()...)
	r.placedExperts()
	r.stepTimes()
	r.trace.Bound = r.times.Bound(r.times.StepNS(r.trace.WallTimes()))
	if r.fused = r.trace.Doubt().Code == FusedExperts; r.fused {
		r.trace.Bound.LossNS = router.Undefined()
	}
	r.judgeKinds()
	rows := r.rows(r.times)
	if r.inferred() {
		for i := range rows {
			rows[i].Basis = imbalance.Inferred
		}
	}
	r.trace.Imbalance = append(r.trace.Imbalance, slices.Concat(rows, r.expertRows(), r.options.Recorded.Imbalance)...)
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

// rows are the imbalance of time over ranks, none where nobody knows how long the experts of a rank took.
func (r *reduction) rows(t *imbalance.Times) []imbalance.Row {
	if r.fused {
		return nil
	}
	return t.Rows(r.options.Threshold)
}

// expertRows are the imbalance of each layer over the experts that own kernels, in the steps that count.
func (r *reduction) expertRows() (rows []imbalance.Row) {
	owned := sums(r, func(g group) (location, bool) {
		return location{Layer: g.at.Layer, Step: g.at.Step, Expert: g.at.Expert},
			g.at.Expert != NoID && g.ns > 0 && r.judged(router.OptInt(g.at.Layer))
	})
	if len(owned) == 0 {
		return nil
	}
	experts, steps := r.expertParts(owned), map[int32][]int32{} // that count, by layer
	for l := range owned {
		if r.counts(l.Step) {
			steps[l.Layer] = append(steps[l.Layer], l.Step)
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(steps)) {
		m := imbalance.Mean{Row: imbalance.Row{Layer: router.OptInt(layer), Level: router.LevelExpert,
			Quantity: imbalance.Time, Basis: imbalance.Observed}}
		for _, step := range slices.Compact(slices.Sorted(slices.Values(steps[layer]))) {
			parts := make([]float64, len(experts))
			for i, e := range experts {
				parts[i] = float64(owned[location{Layer: layer, Step: step, Expert: int32(e)}].ns)
			}
			m.Add(router.BalanceOf(parts))
		}
		rows = append(rows, m.Over(experts, r.options.Threshold))
	}
	return rows
}

// expertParts are the experts among which times are compared, in order: those that own kernels and, where all
// ranks are there, the numbers between. One that never ran had no time.
func (r *reduction) expertParts(owned map[location]sum) []int {
	own := map[int]bool{}
	for l := range owned {
		own[int(l.Expert)] = true
	}
	experts := slices.Sorted(maps.Keys(own))
	all := int(r.trace.World) <= len(r.ranks)
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
