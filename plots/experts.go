package plots

import (
	"fmt"

	"github.com/moebalance/moebalance/compare/imbalance"
	"github.com/moebalance/moebalance/compare/nsys/perstep"
	"github.com/moebalance/moebalance/router"
	"github.com/moebalance/moebalance/router/quantity"
)

// ExpertTimes is the heat map of time by layer and expert. An expert on several ranks
// has the sum over its copies. The caption says whether times are observed or
// allocated.
func ExpertTimes(arms ...Arm) HeatSpec {
	s := expertHeat(arms, func(e perstep.Expert) float64 { return e.TimeNS })
	s.Name, s.Quantity = "expert-time", "time"
	s.Title = "Which experts take the time, and in which layers?"
	s.Caption = fmt.Sprintf("%s. %s Mean over all steps of the rank. Each cell is relative to the mean of its layer. %s", extent(arms), basis(arms), cancels("expert", "step to step"))
	return s
}

// ExpertLoads is the heat map of recorded slots by layer and expert.
func ExpertLoads(arms ...Arm) HeatSpec {
	s := expertHeat(arms, func(e perstep.Expert) float64 { return e.Slots })
	s.Name, s.Quantity = "expert-load", "load"
	s.Title = "Which experts get the slots, and in which layers?"
	s.Caption = fmt.Sprintf("%s. Recorded load in slots (a token times one of its chosen experts). Each cell is relative to the mean of its layer. %s", extent(arms), cancels("expert", "step to step"))
	return s
}

func basis(arms []Arm) string {
	seen := map[imbalance.Basis]bool{}
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			seen[e.Basis] = true
		}
	}
	switch {
	case seen[imbalance.Observed] && seen[imbalance.Allocated]:
		return "Some times are observed, the others are allocated by load, which is a model."
	case seen[imbalance.Allocated]:
		return "Times are allocated: the time of grouped kernels split by load, which is a model and no measurement of single experts."
	}
	return "Times are observed: kernels launched inside the expert's own range."
}

// expertAxes are the layers and experts that any arm has a row for.
func expertAxes(arms []Arm) (layers, experts []int) {
	seenLayers, seenExperts := map[int]bool{}, map[int]bool{}
	for _, a := range arms {
		for _, e := range a.Trace.Experts {
			seenLayers[int(e.Layer)], seenExperts[e.Expert] = true, true
		}
	}
	return sortedKeys(seenLayers), sortedKeys(seenExperts)
}

func expertHeat(arms []Arm, value func(perstep.Expert) float64) HeatSpec {
	s := HeatSpec{RowLabel: "layer", ColumnLabel: "expert"}
	layers, experts := expertAxes(arms)
	rows, columns := position(layers), position(experts)
	for _, a := range arms {
		g := unknownGrid(a.Name, layers, experts)
		g.Cuts = rankCuts(a, columns)
		for _, e := range a.PerStep.Experts() {
			if v, cell := value(e), &g.Values[rows[int(e.Layer)]][columns[e.Expert]]; known(*cell) && known(v) {
				*cell += v
			} else if known(v) {
				*cell = v
			}
		}
		s.Grids = append(s.Grids, g)
	}
	s.Alt = s.answer()
	return s
}

// rankCuts are the columns at which the owning rank changes, and nil unless
// every expert has one owner and the owners are contiguous.
func rankCuts(a Arm, columns map[int]int) []int {
	owner := unknowns(len(columns))
	for _, e := range a.Trace.Experts {
		at := &owner[columns[e.Expert]]
		if known(*at) && *at != float64(e.Rank) {
			return nil
		}
		*at = float64(e.Rank)
	}
	var cuts []int
	for i := 1; i < len(owner); i++ {
		switch {
		case !known(owner[i-1]) || !known(owner[i]) || owner[i] < owner[i-1]:
			return nil
		case owner[i] > owner[i-1]:
			cuts = append(cuts, i)
		}
	}
	return cuts
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
	layers, columns := sortedKeys(seen), make([]int, experts)
	for e := range columns {
		columns[e] = e
	}
	s := HeatSpec{
		Name: "recorded-load", Title: "Which experts did the engine send the slots to?",
		RowLabel: "layer", ColumnLabel: "expert", Quantity: "load",
		Caption: fmt.Sprintf("%s, %s. Recorded load in slots over all recorded steps. Each cell is relative to the mean of its layer. %s",
			quantity.Count(len(layers), "layer"), quantity.Count(experts, "expert"), cancels("expert", "step to step")),
	}
	for _, r := range sources {
		g := unknownGrid(r.Name, layers, columns)
		for i, layer := range layers {
			for e, n := range r.Layers[layer].PerExpert {
				g.Values[i][e] = float64(n)
			}
		}
		s.Grids = append(s.Grids, g)
	}
	s.Alt = s.answer()
	return s
}
