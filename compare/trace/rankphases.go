package trace

import (
	"math"
	"slices"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/kernel"
)

// RankPhases is the time of one rank by phase in nanoseconds, mean over the steps that count. Work holds no time in
// collectives. Wait and transfer are the parts of a collective before and after its last rank arrived;
// both are unknown, NaN, where the steps that count cannot be replayed.
type RankPhases struct {
	Work                        map[Phase]float64
	Collectives, Wait, Transfer float64
}

// RankPhases is the time of each rank that has any in the steps that count.
func (t *Trace) RankPhases() map[int]*RankPhases {
	byRank, counted := map[int]*RankPhases{}, imbalance.Places(t.Times(nil).StepsOf(imbalance.Counts))
	n := float64(len(counted))
	for i := range t.Cells {
		c := &t.Cells[i]
		if _, counts := counted[int(c.Step)]; !counts {
			continue
		}
		r := byRank[c.Rank]
		if r == nil {
			r = &RankPhases{map[Phase]float64{}, 0, math.NaN(), math.NaN()}
			byRank[c.Rank] = r
		}
		phase := c.Phase
		if !slices.Contains(kernel.Phases, phase) {
			phase = PhaseUnknown
		}
		r.Work[phase] += float64(c.ComputeNS()) / n
		r.Collectives += float64(c.CollectiveNS) / n
	}
	if replay := t.Replay(); replay != nil {
		for _, stay := range replay.Stays {
			if r := byRank[stay.Rank]; r != nil {
				r.Wait, r.Transfer = stay.WaitNS.Float64(), stay.TransferNS.Float64()
			}
		}
	}
	return byRank
}
