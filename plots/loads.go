package plots

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// recordedSteps are the steps over which each layer's slots were counted, which
// need not be those of the trace. A layer is missing where no load is recorded.
func recordedSteps(t *nsys.Trace) map[router.Whole]float64 {
	steps := map[router.Whole]float64{}
	for _, s := range t.Imbalance {
		if s.Level == router.LevelExpert && s.Quantity == imbalance.Load {
			steps[s.Layer] = float64(s.Steps)
		}
	}
	return steps
}

// expertLoad is the recorded slots of an expert on its rank, as a mean over the
// recorded steps; NaN where none are recorded.
func (a Arm) expertLoad() func(nsys.ExpertStat) float64 {
	steps := recordedSteps(a.Trace)
	return func(e nsys.ExpertStat) float64 {
		if !e.Known || steps[e.Layer] == 0 {
			return nan
		}
		return float64(e.Slots) / steps[e.Layer]
	}
}

// Recorded is the load that expert statistics hold, by layer, under the name
// that figures show it by.
type Recorded struct {
	Name   string
	Layers map[int]router.Load
}

// RecordedLoads is the heat map of slots by layer and expert, one panel per
// source. Layers and experts that a source lacks are unknown in its panel.
func RecordedLoads(sources ...Recorded) HeatSpec {
	seen, experts := map[int]bool{}, 0
	for _, r := range sources {
		for layer, load := range r.Layers {
			seen[layer] = true
			experts = max(experts, len(load.PerExpert))
		}
	}
	layers := slices.Sorted(maps.Keys(seen))
	columns := make([]int, experts)
	for e := range columns {
		columns[e] = e
	}
	s := HeatSpec{
		Name: "recorded-load", Title: "Which experts did the engine send the slots to?",
		RowLabel: "layer", ColumnLabel: "expert", Quantity: "load",
		Caption: fmt.Sprintf("%s, %s. Recorded load in slots over all recorded steps. Each cell is relative to the mean of its layer. %s",
			quantity.Count(len(layers), "layer"), quantity.Count(experts, "expert"), cancels("expert", "step to step")),
	}
	var answers []string
	for _, r := range sources {
		g := unknownGrid(r.Name, layers, columns)
		for i, layer := range layers {
			for e, n := range r.Layers[layer].PerExpert {
				g.Values[i][e] = float64(n)
			}
		}
		s.Grids = append(s.Grids, g)
		answers = append(answers, g.extreme("layer", "expert"))
	}
	s.Alt = strings.Join(answers, " ")
	return s
}
