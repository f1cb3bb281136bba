package trace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/replay"
	"github.com/moebalance/moebalance/router"
)

// Times are the compute times of the trace by step, layer and rank.
func (t *Trace) Times() *imbalance.Times {
	if t.times == nil {
		t.times = imbalance.New(t.Cells)
	}
	return t.times
}

// warnMissingRanges warns where the ranges do not give steps or layers, or ranks have different layers.
func (r *reduction) warnMissingRanges() {
	if r.trace.Hidden.Launches > 0 {
		return // the ranges may be there, and what ran inside them is hidden
	}
	if r.trace.times.Unmarked || len(r.trace.times.Steps) == 0 {
		r.warn("no_steps")
	}
	if !r.layered {
		r.warn("no_layers")
		return
	}
	for _, l := range r.trace.times.Judged() {
		for _, rank := range r.trace.times.Ranks {
			if !slices.Contains(l.Ranks, rank) {
				r.warn(ranksDiffer, "rank", l.Ranks[0], "other", rank)
				return
			}
		}
	}
}

// imbalance fills Imbalance and Overall: per layer the time of the ranks
// in the phase experts, the time of the experts that have ranges of their own, and
// the recorded load.
func (r *reduction) imbalance() {
	times := r.trace.times
	r.trace.Warnings = append(r.trace.Warnings, times.Warnings()...)
	r.placedExperts()
	r.stepTimes()
	for i := range r.trace.StepKinds {
		own := r.rows(times.OfKind(router.OptInt(r.trace.StepKinds[i].Kind)))
		r.trace.StepKinds[i].Time = imbalance.Summarize(own, router.LevelRank, imbalance.Time)
	}
	rows := r.rows(times)
	r.trace.Bound = Bound{replay.NoGain(), times.Loss(rows), r.trace.StepNS(times), len(r.counted), times.Of}
	if r.inferred() {
		for i := range rows {
			rows[i].Basis = imbalance.Inferred
		}
	}
	r.trace.Imbalance = slices.Concat(rows, r.expertRows(), r.options.Recorded.Imbalance)
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

// rows are the imbalance of time over ranks; none where kernels exchange tokens and run experts in one.
func (r *reduction) rows(t *imbalance.Times) []imbalance.Row {
	if r.trace.Warned(FusedExperts) {
		return nil
	}
	return t.Rows(r.options.Threshold)
}

// expertRows are the imbalance of each layer over the experts that own kernels, in the steps that count. Where all
// ranks are there, the experts between are compared, too: one that never ran had no time.
func (r *reduction) expertRows() (rows []imbalance.Row) {
	type place struct{ layer, step, expert int32 }
	times := sums(r, func(g group) (place, bool) {
		return place{g.at.Layer, g.at.Step, g.at.Expert}, g.at.Expert != NoID && g.TotalNS > 0 &&
			r.judged(router.OptInt(g.at.Layer))
	})
	own, ran := map[int]bool{}, map[place]bool{}
	for at := range times {
		own[int(at.expert)] = true
		if at.expert = NoID; r.counts(at.step) {
			ran[at] = true
		}
	}
	experts := slices.Sorted(maps.Keys(own))
	if n := len(experts); n > 0 && int(r.trace.World) <= len(r.ranks) && experts[n-1]-experts[0] < maxParts {
		first, last := experts[0], experts[n-1]
		for experts = experts[:0]; first <= last; first++ {
			experts = append(experts, first)
		}
	}
	inOrder := func(a, b place) int { return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.step, b.step)) }
	steps := map[int32][]router.Balance{} // by layer
	for _, at := range slices.SortedFunc(maps.Keys(ran), inOrder) {
		parts := make([]int64, len(experts))
		for i, e := range experts {
			parts[i] = times[place{at.layer, at.step, int32(e)}].TotalNS
		}
		steps[at.layer] = append(steps[at.layer], router.BalanceOf(parts))
	}
	for _, layer := range slices.Sorted(maps.Keys(steps)) {
		row := imbalance.Row{Layer: router.OptInt(layer), Level: router.LevelExpert, Quantity: imbalance.Time,
			Basis: imbalance.Observed}
		rows = append(rows, row.Over(steps[layer], experts, r.options.Threshold))
	}
	return rows
}

// maxParts bounds the experts of a layer, far above any model.
const maxParts = 1 << 16
