package nsys

import (
	"slices"

	"github.com/moebalance/moebalance/router"
)

// StragglersIn is what each layer loses to its slowest rank in the steps given,
// ascending, each of which every rank has. Stragglers are over all such steps.
func (t *Trace) StragglersIn(steps []router.Whole) []StragglerStat {
	stats := []StragglerStat{}
	for _, g := range t.layerGrids(steps, func(Phase) bool { return true }) {
		if len(g.ranks) > 1 {
			stats = append(stats, g.straggler())
		}
	}
	return stats
}

// straggler averages over the steps in which anybody worked.
func (g *layerGrid) straggler() StragglerStat {
	s := StragglerStat{Layer: g.layer, WorstRank: None, LossNS: router.Undefined(), MeanNS: router.Undefined(), MaxNS: router.Undefined()}
	var most, mean float64
	worst := make([]int, len(g.ranks))
	for _, row := range g.times {
		b := router.BalanceOf(row)
		if b.Total == 0 {
			continue
		}
		s.Steps++
		most += float64(b.Max)
		mean += float64(b.Total) / float64(len(g.ranks))
		worst[b.Worst]++
	}
	if n := float64(s.Steps); n > 0 {
		s.LossNS, s.MeanNS, s.MaxNS = router.Number((most-mean)/n), router.Number(mean/n), router.Number(most/n)
		s.WorstSteps = slices.Max(worst)
		s.WorstRank = router.Whole(g.ranks[slices.Index(worst, s.WorstSteps)])
	}
	return s
}
