package nsys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/moebalance/moebalance/router"
)

// The levels and quantities of an ImbalanceStat.
const (
	LevelRank    = "rank"
	LevelExpert  = "expert"
	QuantityTime = "time"
	QuantityLoad = "load"
)

// grid is a layer's times by step and part (ranks or experts).
type grid struct {
	steps []int
	rows  [][]int64 // [step][part]
}

// steps lists the steps that every rank has, and how many only some ranks have.
// Without step ranges the whole capture is one step, None.
func (r *reduction) steps() (common []int, partial int) {
	ranks := map[int]map[int]bool{}
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

// layerGrids collects, for every layer, the compute time of the ranks that have
// the layer at all, in the steps that all ranks have. Time in collectives is
// not compute.
func (r *reduction) layerGrids(counts func(Phase) bool) (layers []int, ranks map[int][]int, grids map[int]*grid) {
	steps, _ := r.steps()
	ranks, grids = map[int][]int{}, map[int]*grid{}
	for _, c := range r.trace.Cells {
		if c.Layer != None && !slices.Contains(ranks[c.Layer], c.Rank) {
			ranks[c.Layer] = append(ranks[c.Layer], c.Rank) // cells come in rank order
		}
	}
	layers = slices.Sorted(maps.Keys(ranks))
	for _, layer := range layers {
		g := &grid{steps: steps}
		for range steps {
			g.rows = append(g.rows, make([]int64, len(ranks[layer])))
		}
		grids[layer] = g
	}
	for _, c := range r.trace.Cells {
		if c.Layer == None || !counts(c.Phase) {
			continue
		}
		step, ok := slices.BinarySearch(steps, c.Step)
		if !ok {
			continue
		}
		rank, _ := slices.BinarySearch(ranks[c.Layer], c.Rank)
		grids[c.Layer].rows[step][rank] += c.TotalNS - c.CollectiveNS
	}
	return layers, ranks, grids
}

// imbalance fills Imbalance: per layer the time of the ranks in the phase
// experts, the time of the experts that have ranges of their own, and the
// recorded load.
func (r *reduction) imbalance() {
	if _, partial := r.steps(); partial > 0 {
		r.warn("partial_steps", "", fmt.Sprintf("%d steps are not on every rank: left out of imbalance and loss", partial))
	}
	layers, ranks, grids := r.layerGrids(func(p Phase) bool { return p == PhaseExperts })
	for _, layer := range layers {
		if len(ranks[layer]) > 1 {
			r.addImbalance(layer, LevelRank, ranks[layer], grids[layer])
		}
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
	for _, level := range []string{LevelRank, LevelExpert} {
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
				if o.WorstLayer == None || s.MaxOverMean > o.WorstMaxOverMean {
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

// addImbalance averages max/mean over the steps in which anybody worked.
func (r *reduction) addImbalance(layer int, level string, parts []int, g *grid) {
	s := ImbalanceStat{
		Layer: layer, Level: level, Quantity: QuantityTime, Parts: len(parts), Worst: None,
		Floor: router.Undefined(), NullP95: router.Undefined(), MaxOverMean: router.Undefined(), Imbalance: router.Undefined(),
	}
	var sum router.Number
	worst := make([]int, len(parts))
	for _, row := range g.rows {
		if b := router.BalanceOf(row); b.MaxOverMean.Defined() {
			sum += b.MaxOverMean
			worst[b.Worst]++
			s.Steps++
		}
	}
	if s.Steps == 0 {
		return
	}
	s.MaxOverMean = sum / router.Number(s.Steps)
	s.Imbalance = s.MaxOverMean - 1
	s.Worst = parts[slices.Index(worst, slices.Max(worst))]
	s.Flagged = router.Flagged(s.MaxOverMean, s.Floor, s.NullP95, r.options.Threshold)
	r.trace.Imbalance = append(r.trace.Imbalance, s)
}

// expertImbalance is over the experts that own kernels. An expert that never
// ran within the span of the expert numbers seen had no time and counts as a
// part; the recorded load's experts are the span where there is one.
func (r *reduction) expertImbalance() {
	steps, _ := r.steps()
	grids := map[int]*grid{}
	low, high := int32(-1), int32(-1)
	each := func(visit func(p place, e *event)) {
		for _, p := range r.parts {
			for i := range p.events {
				e := &p.events[i]
				if at := p.of.places[e.place]; at.Expert != None && at.Layer != None {
					visit(at, e)
				}
			}
		}
	}
	for _, p := range r.parts {
		for _, at := range p.of.places {
			if at.Expert != None && at.Layer != None {
				if low < 0 || at.Expert < low {
					low = at.Expert
				}
				high = max(high, at.Expert)
			}
		}
	}
	for _, l := range r.options.Recorded.Load {
		if n := int32(len(l.PerExpert)); high >= 0 && n > high {
			low, high = 0, n-1
		}
	}
	if high < 0 || high-low >= maxParts {
		return
	}
	experts := make([]int, high-low+1)
	for i := range experts {
		experts[i] = int(low) + i
	}
	each(func(at place, e *event) {
		step, ok := slices.BinarySearch(steps, int(at.Step))
		if !ok {
			return
		}
		g := grids[int(at.Layer)]
		if g == nil {
			g = &grid{steps: steps}
			for range steps {
				g.rows = append(g.rows, make([]int64, len(experts)))
			}
			grids[int(at.Layer)] = g
		}
		g.rows[step][at.Expert-low] += e.duration
	})
	for _, layer := range slices.Sorted(maps.Keys(grids)) {
		r.addImbalance(layer, LevelExpert, experts, grids[layer])
	}
}

// maxParts bounds the experts of a layer, far above any model.
const maxParts = 1 << 16

// stragglers fills Stragglers from the compute time of all phases of a layer.
func (r *reduction) stragglers() {
	layers, ranks, grids := r.layerGrids(func(Phase) bool { return true })
	for _, layer := range layers {
		parts := ranks[layer]
		if len(parts) < 2 {
			continue
		}
		s := StragglerStat{Layer: layer, WorstRank: None, LossNS: router.Undefined(), MeanNS: router.Undefined(), MaxNS: router.Undefined()}
		var most, mean float64
		worst := make([]int, len(parts))
		for _, row := range grids[layer].rows {
			b := router.BalanceOf(row)
			if b.Total == 0 {
				continue
			}
			s.Steps++
			most += float64(b.Max)
			mean += float64(b.Total) / float64(len(parts))
			worst[b.Worst]++
		}
		if n := float64(s.Steps); n > 0 {
			s.LossNS, s.MeanNS, s.MaxNS = router.Number((most-mean)/n), router.Number(mean/n), router.Number(most/n)
			s.WorstSteps = slices.Max(worst)
			s.WorstRank = parts[slices.Index(worst, s.WorstSteps)]
		}
		r.trace.Stragglers = append(r.trace.Stragglers, s)
	}
}
