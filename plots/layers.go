package plots

import (
	"fmt"
	"maps"
	"slices"
)

// LayerLosses is the straggler loss of every layer: per step, how much longer
// the slowest rank computes than the mean rank.
func LayerLosses(arms ...Arm) BarSpec {
	seen := map[int]bool{}
	for _, a := range arms {
		for _, s := range a.Stragglers() {
			seen[int(s.Layer)] = true
		}
	}
	layers := slices.Sorted(maps.Keys(seen))
	at := position(layers)
	s := BarSpec{
		Name: "layer-loss", Title: "Which layers lose most to their slowest rank?",
		GroupLabel: "layer", ValueLabel: "straggler loss " + per(arms), Groups: layers, Nanoseconds: true,
		Caption: fmt.Sprintf("%s. Maximum minus mean over the ranks of each arm of compute time, per step and layer, then the mean over steps; "+
			"collectives are left out, because they hold the wait for that slowest rank.", timedShape(arms, Arm.steps)),
	}
	for _, a := range arms {
		values := unknowns(len(layers))
		for _, l := range a.Stragglers() {
			values[at[int(l.Layer)]] = l.LossNS.Float64()
		}
		s.Series = append(s.Series, BarSeries{a.Name, values, nan})
	}
	s.Alt = s.answer()
	return s
}
