package plots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/router/quantity"
)

// RankTimes is the time of each rank's expert kernels. A rank without a single such
// kernel is unknown, not idle.
func RankTimes(arms ...Arm) BarSpec {
	s := BarSpec{
		Name: "rank-time", Title: "Which ranks spend most time on their experts?",
		GroupLabel: "rank", ValueLabel: "expert time " + per(arms), Groups: ranks(arms), Nanoseconds: true, Mean: true,
		Caption: fmt.Sprintf("%s. Observed time of kernels in the experts phase without collectives, added over layers, mean over steps. %s",
			timedExtent(arms), cancels("rank", "layer to layer or step to step")),
	}
	for _, a := range arms {
		s.Series = append(s.Series, BarSeries{a.Name, a.spread(a.PerStep.ExpertsByRank(), s.Groups), nan})
	}
	s.Alt = s.answer()
	return s
}

// cancels is the caveat of every figure that adds up steps before it compares.
func cancels(part, changes string) string {
	return fmt.Sprintf("A hot %s that changes from %s cancels here and shows in the imbalance per layer, which is computed step by step.", part, changes)
}

// RankLoads is the recorded slots of each rank over all layers, and their floor.
func RankLoads(arms ...Arm) BarSpec {
	s := BarSpec{
		Name: "rank-load", Title: "Which ranks get the load?",
		GroupLabel: "rank", ValueLabel: "load per recorded step", Groups: ranks(arms), Unit: "slots", Mean: true,
		Caption: fmt.Sprintf("%s. Recorded slots of the experts of each rank, added over layers, mean over the recorded steps. The floor is the least that the largest can be. %s",
			extent(arms), cancels("rank", "layer to layer or step to step")),
	}
	for _, a := range arms {
		slots, floor := a.PerStep.Load()
		s.Series = append(s.Series, BarSeries{a.Name, a.spread(slots, s.Groups), floor})
	}
	s.Alt = s.answer()
	return s
}

// LayerLosses is the straggler loss of every layer.
func LayerLosses(arms ...Arm) BarSpec {
	seen := map[int]bool{}
	for _, a := range arms {
		for _, s := range a.Trace.Stragglers {
			seen[int(s.Layer)] = true
		}
	}
	layers := sortedKeys(seen)
	at := position(layers)
	s := BarSpec{
		Name: "layer-loss", Title: "Which layers lose most to their slowest rank?",
		GroupLabel: "layer", ValueLabel: "straggler loss " + per(arms), Groups: layers, Nanoseconds: true,
		Caption: fmt.Sprintf("%s. Maximum − mean over ranks of compute time, per step and layer, then the mean over steps. "+
			"Collectives are excluded: they hold the wait for the slowest rank.", timedExtent(arms)),
	}
	for _, a := range arms {
		values := unknowns(len(layers))
		for _, l := range a.Trace.Stragglers {
			values[at[int(l.Layer)]] = l.LossNS.Float64()
		}
		s.Series = append(s.Series, BarSeries{a.Name, values, nan})
	}
	s.Alt = s.answer()
	return s
}

// RankLayerTimes is the heat map of expert time by layer and rank.
func RankLayerTimes(arms ...Arm) HeatSpec {
	columns, seen := ranks(arms), map[int]bool{}
	for _, a := range arms {
		for layer := range a.PerStep.ExpertsByLayer() {
			seen[layer] = true
		}
	}
	layers := sortedKeys(seen)
	s := HeatSpec{
		Name: "rank-layer-time", Title: "Which ranks are slow in which layers?",
		RowLabel: "layer", ColumnLabel: "rank", Quantity: "time",
		Caption: fmt.Sprintf("%s. Observed time of kernels in the experts phase without collectives. Each cell is relative to the mean over ranks of its layer. %s",
			timedExtent(arms), cancels("rank", "step to step")),
	}
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, columns)
		for layer, times := range a.PerStep.ExpertsByLayer() {
			g.Values[position(layers)[layer]] = a.spread(times, columns)
		}
		s.Grids = append(s.Grids, g)
	}
	s.Alt = s.answer()
	return s
}

// value writes one bar's height.
func (s BarSpec) value(v float64) string {
	if s.Nanoseconds {
		return quantity.Duration(v)
	}
	return quantity.Digits4(v) + " " + s.Unit
}

// answer says in words what the bars show: the largest group of each series and its
// ratio to the mean.
func (s BarSpec) answer() string {
	var out []string
	for _, series := range s.Series {
		values := knowns(series.Values)
		if len(values) == 0 {
			out = append(out, series.Name+": nothing recorded.")
			continue
		}
		most, mean := slices.Max(values), mean(values)
		switch {
		case mean > 0 && isEven(most/mean):
			out = append(out, fmt.Sprintf("%s: on average every %s has %s.", series.Name, s.GroupLabel, s.value(mean)))
		case mean > 0:
			out = append(out, fmt.Sprintf("%s: %s %d is largest, %s, %s × the mean.", series.Name, s.GroupLabel, s.Groups[slices.Index(series.Values, most)], s.value(most), quantity.Decimals(most/mean, 2)))
		default:
			out = append(out, series.Name+": all zero.")
		}
	}
	return strings.Join(out, " ")
}
