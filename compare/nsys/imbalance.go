package nsys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// The quantities of an ImbalanceStat.
const (
	QuantityTime = "time"
	QuantityLoad = "load"
)

// steps lists the steps that every rank has, and how many only some ranks have.
// Without step ranges the whole capture is one step, None.
func (r *reduction) steps() (common []router.Whole, partial int) {
	ranks := map[router.Whole]map[int]bool{}
	for _, c := range r.trace.Cells {
		if ranks[c.Step] == nil {
			ranks[c.Step] = map[int]bool{}
		}
		ranks[c.Step][c.Rank] = true
	}
	if len(ranks) > 1 {
		delete(ranks, None)
	}
	for _, step := range slices.Sorted(maps.Keys(ranks)) {
		if len(ranks[step]) == len(r.parts) {
			common = append(common, step)
		} else {
			partial++
		}
	}
	return common, partial
}

// lookForRanges warns where the ranges do not give steps or layers.
func (r *reduction) lookForRanges() {
	r.counted = r.trace.counted()
	if slices.ContainsFunc(r.parts, func(p part) bool { return len(p.graphs) > 0 }) {
		return // the ranges may be there, and what ran inside them is hidden
	}
	if !slices.ContainsFunc(r.trace.Cells, func(c Cell) bool { return c.Step.Defined() }) {
		r.warn("no_steps", "", "no range names a step: the whole capture counts as one ('trace --step-pattern' tells which names do)")
	}
	if ranks := r.otherLayers(); len(ranks) > 0 {
		r.warn("other_layers", "", fmt.Sprintf("rank %d has other layers than rank %d: a pipeline's stages do, and exports of different runs", ranks[1], ranks[0]))
	}
	if r.counted(None) {
		r.warn("no_layers", "", "no range names a layer: all layers count as one ('trace --layer-pattern' tells which names do)")
	}
}

// otherLayers is the first two ranks that have different layers, nil if none have.
func (r *reduction) otherLayers() []int {
	layers := map[int]map[router.Whole]bool{}
	for _, c := range r.trace.Cells {
		if c.Layer.Defined() {
			if layers[c.Rank] == nil {
				layers[c.Rank] = map[router.Whole]bool{}
			}
			layers[c.Rank][c.Layer] = true
		}
	}
	for _, p := range r.parts[1:] {
		if first := r.parts[0].rank.Rank; !maps.Equal(layers[first], layers[p.rank.Rank]) {
			return []int{first, p.rank.Rank}
		}
	}
	return nil
}

// imbalance fills Imbalance: per layer the time of the ranks in the phase
// experts, the time of the experts that have ranges of their own, and the
// recorded load.
func (r *reduction) imbalance() {
	steps, partial := r.steps()
	if partial > 0 {
		r.warn("partial_steps", "", fmt.Sprintf("%s not on every rank: left out of imbalance and loss", quantity.Count(partial, "step")))
	}
	lost := 0
	for _, g := range r.trace.layerGrids(steps, func(p Phase) bool { return p == PhaseExperts }) {
		lost += g.lost
		if len(g.ranks) > 1 {
			t := newTally(g.layer, router.LevelRank, g.ranks)
			for _, row := range g.times {
				t.add(row)
			}
			r.addImbalance(t)
		}
	}
	if lost > 0 {
		r.warn("lost_kernels", "", fmt.Sprintf("in %s of layers some ranks have no kernel while others do: their kernels were lost, and those steps are left out of imbalance and loss", quantity.Count(lost, "step")))
	}
	r.expertImbalance()
	for _, s := range r.options.Recorded.Imbalance {
		r.trace.Imbalance = append(r.trace.Imbalance, s)
	}
	slices.SortStableFunc(r.trace.Imbalance, func(a, b ImbalanceStat) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(b.Level, a.Level), cmp.Compare(b.Quantity, a.Quantity))
	})
	r.overall()
}

// overall averages the layers of each level and quantity.
func (r *reduction) overall() {
	for _, level := range []string{router.LevelRank, router.LevelExpert} {
		for _, quantity := range []string{QuantityTime, QuantityLoad} {
			o := OverallStat{Level: level, Quantity: quantity, WorstLayer: None}
			for _, s := range r.trace.Imbalance {
				if s.Level != level || s.Quantity != quantity || !s.MaxOverMean.Defined() {
					continue
				}
				o.Layers++
				o.MaxOverMean += s.MaxOverMean
				if s.Flagged {
					o.Flagged++
				}
				if !o.WorstLayer.Defined() || s.MaxOverMean > o.WorstMaxOverMean {
					o.WorstLayer, o.WorstMaxOverMean = s.Layer, s.MaxOverMean
				}
			}
			if o.Layers > 0 {
				o.MaxOverMean /= router.Number(o.Layers)
				o.Imbalance = o.MaxOverMean - 1
				r.trace.Overall = append(r.trace.Overall, o)
			}
		}
	}
}

// tally averages max/mean over the steps of one layer in which anybody worked.
type tally struct {
	ImbalanceStat
	parts []int // numbers of the ranks or experts
	worst []int // steps in which each is the largest
}

func newTally(layer router.Whole, level string, parts []int) *tally {
	return &tally{ImbalanceStat{Layer: layer, Level: level, Quantity: QuantityTime, Parts: len(parts)}, parts, make([]int, len(parts))}
}

func (t *tally) add(row []int64) {
	if b := router.BalanceOf(row); b.MaxOverMean.Defined() {
		t.MaxOverMean += b.MaxOverMean
		t.worst[b.Worst]++
		t.Steps++
	}
}

// addImbalance finishes a tally; one without steps says nothing.
func (r *reduction) addImbalance(t *tally) {
	if t.Steps == 0 {
		return
	}
	s := t.ImbalanceStat
	s.MaxOverMean /= router.Number(s.Steps)
	s.Imbalance = s.MaxOverMean - 1
	s.Floor, s.NullP95 = router.Undefined(), router.Undefined()
	s.Worst = router.Whole(t.parts[slices.Index(t.worst, slices.Max(t.worst))])
	s.Flagged = router.Flagged(s.MaxOverMean, s.Floor, s.NullP95, r.options.Threshold)
	r.trace.Imbalance = append(r.trace.Imbalance, s)
}

// expertTime is the time of one expert in one step of one layer, over all ranks.
type expertTime struct {
	place
	ns int64
}

// sumExperts lists the experts that own kernels, by layer, step and expert. One
// may come several times, from several phases or exports.
func (r *reduction) sumExperts() {
	ns := map[*digest][]int64{}
	for i, p := range r.parts {
		if ns[p.of] == nil {
			ns[p.of] = make([]int64, len(p.of.places))
		}
		for place, sum := range r.sums[i] {
			ns[p.of][place] += sum
		}
	}
	var list []expertTime
	for _, d := range r.digests {
		for i, at := range d.places {
			if len(ns[d]) > 0 && ns[d][i] > 0 && at.Expert != None && r.counted(router.Whole(at.Layer)) {
				list = append(list, expertTime{at, ns[d][i]})
			}
		}
	}
	slices.SortFunc(list, func(a, b expertTime) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Expert, b.Expert))
	})
	r.expertTimes = list
}

// expertImbalance is over the experts of expertParts.
func (r *reduction) expertImbalance() {
	list := r.expertTimes
	if len(list) == 0 {
		return
	}
	experts, ok := r.expertParts()
	if !ok {
		return
	}
	steps, _ := r.steps()
	row := make([]int64, len(experts))
	for len(list) > 0 {
		layer := list[0].Layer
		t := newTally(router.Whole(layer), router.LevelExpert, experts)
		for len(list) > 0 && list[0].Layer == layer {
			step := list[0].Step
			clear(row)
			for ; len(list) > 0 && list[0].Layer == layer && list[0].Step == step; list = list[1:] {
				at, _ := slices.BinarySearch(experts, int(list[0].Expert))
				row[at] += list[0].ns
			}
			if _, ok := slices.BinarySearch(steps, router.Whole(step)); ok {
				t.add(row)
			}
		}
		r.addImbalance(t)
	}
}

// expertParts are the experts among which times are compared, in order: those of
// the ranks that are there, by the recorded layout or, without one, by the numbers
// of the experts that own kernels. One that never ran had no time.
func (r *reduction) expertParts() (experts []int, ok bool) {
	held := r.recordedExperts()
	if len(held) > 0 {
		for _, e := range r.expertTimes {
			held[int(e.Expert)] = true
		}
		return slices.Sorted(maps.Keys(held)), true
	}
	neighbour, last := None, 0 // the rank before with experts, and its last one
	for i, p := range r.parts {
		first, end := r.expertSpan(i)
		if first == end {
			continue
		}
		if p.rank.Rank == neighbour+1 && last < first {
			first = last + 1 // experts between two neighbours that never ran belong to one of them
		}
		if end-first > maxParts {
			r.warn("expert_numbers", "", fmt.Sprintf("experts are numbered from %d to %d, which no model has: their imbalance is not computed", first, end-1))
			return nil, false
		}
		for e := first; e < end; e++ {
			held[e] = true
		}
		neighbour, last = p.rank.Rank, end-1
	}
	return slices.Sorted(maps.Keys(held)), true
}

// recordedExperts is the experts that the recorded layout puts on the ranks that
// are there.
func (r *reduction) recordedExperts() map[int]bool {
	held := map[int]bool{}
	for _, layout := range r.options.Recorded.Layout {
		for _, p := range r.parts {
			if p.rank.Rank < layout.Ranks() {
				for _, e := range layout.Held(p.rank.Rank) {
					held[int(e)] = true
				}
			}
		}
	}
	return held
}

// expertSpan is the half-open range of the numbers of the experts that own kernels
// of a part.
func (r *reduction) expertSpan(part int) (first, end int) {
	for place, sum := range r.sums[part] {
		at := r.parts[part].of.places[place]
		if sum == 0 || at.Expert == None || !r.counted(router.Whole(at.Layer)) {
			continue
		}
		if first == end {
			first, end = int(at.Expert), int(at.Expert)+1
		}
		first, end = min(first, int(at.Expert)), max(end, int(at.Expert)+1)
	}
	return first, end
}

// maxParts bounds the experts of a layer, far above any model.
const maxParts = 1 << 16
